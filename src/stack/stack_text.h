// SPDX-License-Identifier: Apache-2.0
// Stack: drives over drives, as people write them in one line.
//
//   priority(mirror(nvme-tcp://10.0.0.1/nqn.2026-11.io.cairn:a, file:/var/d0,size=8G,
//   degraded=yes))
//
// SERVICE(BELOW, ..., KEY=VALUE, ...), where each BELOW is a stack again or a leaf: a source
// ("mem:size=1G") or a URI. The options a source knows (is_source_option) belong to the source they
// follow, all others to the service. A leaf or value with spaces, quotes, commas or parentheses in
// it is written in double quotes, with \" and \\ inside.
#pragma once

#include <cstddef>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

namespace cairn::drive {

// A text longer, deeper or of more layers than this is refused.
inline constexpr size_t kStackTextMax = 16384;
inline constexpr size_t kStackDepthMax = 16;
inline constexpr size_t kStackLayersMax = 256;

// What is wrong with a stack, as a sentence, and the byte of its text that it is about.
struct StackError {
  size_t place = 0;
  std::string text;

  // The line, a caret under the place, and the sentence. `stack` is the text that was parsed.
  std::string show(std::string_view stack) const;
};

// One layer and all below it. Places are bytes of the text it was read from.
struct Stack {
  struct Option {
    std::string key;
    std::string value;
    size_t place = 0;
    friend bool operator==(const Option& a, const Option& b) {
      return a.key == b.key && a.value == b.value;
    }
  };

  std::string name;  // of the service; of a leaf, the whole of it
  bool is_leaf = false;
  bool is_shared = false;  // a leaf that layers here and elsewhere share (mark_shared_leaves)
  std::vector<Stack> below;
  std::vector<Option> options;
  size_t place = 0;

  // The form only: check_stack (services.h) knows the services.
  static std::expected<Stack, StackError> parse(std::string_view text);
  // The canonical form: parse(text()) is equal.
  std::string text() const;
  // Equal but for the places.
  friend bool operator==(const Stack& a, const Stack& b) {
    return a.name == b.name && a.is_leaf == b.is_leaf && a.is_shared == b.is_shared &&
           a.below == b.below && a.options == b.options;
  }
};

}  // namespace cairn::drive
