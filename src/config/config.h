// SPDX-License-Identifier: Apache-2.0
// Configuration: a command declares the keys it knows, and a file is checked against them.
//
//   Settings settings;
//   Section runtime;
//   runtime.boolean("poll", settings.poll).integers("cores", settings.cores, {.max = 1023});
//   Section root;
//   root.table("runtime", std::move(runtime));
//   Attempt<void> read = read_config("cairn.toml", root);
//
// On success every key present in the file was stored where its declaration points; absent ones
// keep their value. On failure the Problem has a line for each mistake, FILE:LINE:COLUMN first.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/problem.h"
#include "config/toml.h"

namespace cairn::config {

// A larger file is refused unread.
inline constexpr size_t kConfigSizeMax = 1 << 20;

// Collects mistakes while a file is checked.
class ConfigCheck {
 public:
  explicit ConfigCheck(std::string file) : file_(std::move(file)) {}
  // Adds "FILE:LINE:COLUMN: text".
  void refuse(Position place, std::string_view text);
  bool ok() const { return lines_.empty(); }
  size_t count() const { return lines_.size(); }
  // All lines; after the first 20 only how many more there are.
  Problem problem() const;

 private:
  std::string file_;
  std::vector<std::string> lines_;
};

struct IntegerRange {
  int64_t min = 0;
  int64_t max = std::numeric_limits<int64_t>::max();
};

// The keys of one table. What a declaration points to must outlive the reading.
class Section {
 public:
  Section& boolean(std::string name, bool& into);
  Section& text(std::string name, std::string& into);

  template <std::integral T>
  Section& integer(std::string name, T& into, IntegerRange range) {
    return whole_number(std::move(name), range, [&into](int64_t n) { into = static_cast<T>(n); });
  }
  // At most `count_max` of them.
  Section& integers(std::string name, std::vector<int>& into, IntegerRange range,
                    size_t count_max = 1024);

  // Text that is one of the given words.
  template <class T>
  Section& choice(std::string name, T& into, std::vector<std::pair<std::string, T>> choices) {
    std::vector<std::string> known;
    for (const auto& [word, value] : choices) known.push_back(word);
    return word(std::move(name), std::move(known),
                [&into, choices](size_t index) { into = choices[index].second; });
  }

  // Text that `parse` understands: an address, a size. `example` is shown when it does not.
  template <class T>
  Section& parsed(std::string name, T& into, Result<T> (*parse)(std::string_view),
                  std::string example) {
    return custom(std::move(name), std::move(example),
                  [&into, parse](std::string_view text) -> Result<void> {
                    Result<T> value = parse(text);
                    if (!value) return fail(value.error());
                    into = std::move(*value);
                    return {};
                  });
  }

  // Text that `take` stores, or refuses with what is wrong about it.
  Section& taken(std::string name, std::function<Attempt<void>(const std::string&)> take);
  // A list of such texts, at most `count_max`; `take` is told each in turn. An empty list counts
  // as given: `begin` is called first.
  Section& taken_list(std::string name, size_t count_max, std::function<void()> begin,
                      std::function<Attempt<void>(const std::string&)> take);

  // [name] with keys of its own.
  Section& table(std::string name, Section section);
  // Any number of [[name]] up to `count_max`; `add` makes room for one more and declares its keys.
  Section& tables(std::string name, size_t count_max, std::function<Section()> add);

  // The key that was declared last must be there.
  Section& required();
  // Asked when all keys of the table were read without a mistake: what they say together.
  Section& whole(std::function<Attempt<void>()> check) {
    whole_check_ = std::move(check);
    return *this;
  }

  std::vector<std::string> names() const;

 private:
  friend void check_table(const Section&, const std::string&, const TomlValue&, ConfigCheck&);
  // `path` is the key's full name, "runtime.io".
  using Read = std::function<void(const TomlValue&, const std::string& path, ConfigCheck&)>;
  struct Key {
    std::string name;
    Read read;
    bool required = false;
  };
  Section& add(std::string name, Read read);
  Section& whole_number(std::string name, IntegerRange range, std::function<void(int64_t)> store);
  Section& word(std::string name, std::vector<std::string> known,
                std::function<void(size_t index)> store);
  Section& custom(std::string name, std::string example,
                  std::function<Result<void>(std::string_view)> store);

  std::vector<Key> keys_;
  std::function<Attempt<void>()> whole_check_;
};

// Checks `text` as the contents of `file`, which is only named in messages.
Attempt<void> check_config(std::string_view text, const std::string& file, const Section& root);

// Reads and checks a file.
Attempt<void> read_config(const std::string& path, const Section& root);

}  // namespace cairn::config
