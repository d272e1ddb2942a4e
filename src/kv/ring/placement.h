// SPDX-License-Identifier: Apache-2.0
// Where keys should be: consistent hashing. Each drive of a member puts tokens on the ring; a
// range belongs to the members of the tokens from its end on, racks and machines kept apart as far
// as there are enough of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "kv/ring/view.h"

namespace cairn::kv::ring {

class Placement {
 public:
  // Copies what it needs.
  explicit Placement(const std::vector<Member>& members);

  // The tokens of all, in order: where ranges end.
  std::vector<uint64_t> ends() const;
  bool is_end(uint64_t token) const;
  // Who should keep a range that ends there, best first: `count` members, or all.
  std::vector<MemberId> owners(uint64_t end, size_t count) const;

 private:
  struct Token {
    uint64_t at = 0;
    size_t member = 0;
  };
  std::vector<Member> members_;
  std::vector<Token> tokens_;
};

}  // namespace cairn::kv::ring
