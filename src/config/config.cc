// SPDX-License-Identifier: Apache-2.0
#include "config/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>

#include "base/words.h"
#include "config/files.h"

namespace cairn::config {

namespace {

constexpr size_t kLinesMax = 20;

// "runtime.io must be text; this is an integer".
std::string wrong_kind(std::string_view path, std::string_view wanted, const TomlValue& value) {
  return fmt::format("{} must be {}; this is {}", path, wanted, kind_of(value));
}

std::string text_of(IntegerRange range) {
  constexpr IntegerRange kAny;
  if (range.max == kAny.max) return fmt::format("{} or more", range.min);
  return fmt::format("{} to {}", range.min, range.max);
}

// The number, or nothing after refusing it.
std::optional<int64_t> integer_in(const TomlValue& value, IntegerRange range, std::string_view path,
                                  ConfigCheck& check) {
  const auto* number = value.get<int64_t>();
  if (number == nullptr) {
    const std::string wanted = fmt::format("a whole number, {}", text_of(range));
    check.refuse(value.place, wrong_kind(path, wanted, value));
    return std::nullopt;
  }
  if (*number < range.min || *number > range.max) {
    check.refuse(value.place, fmt::format("{} is {} (allowed: {})", path, *number, text_of(range)));
    return std::nullopt;
  }
  return *number;
}

void take_text(const TomlValue& value, const std::string& path,
               const std::function<Attempt<void>(const std::string&)>& take, ConfigCheck& check) {
  const auto* text = value.get<std::string>();
  if (text == nullptr) {
    check.refuse(value.place, wrong_kind(path, "text in quotes", value));
  } else if (const Attempt<void> taken = take(*text); !taken) {
    check.refuse(value.place, fmt::format("{}: {}", path, taken.error().text));
  }
}

std::string path_below(const std::string& table, std::string_view key) {
  return table.empty() ? std::string(key) : fmt::format("{}.{}", table, key);
}

}  // namespace

void ConfigCheck::refuse(Position place, std::string_view text) {
  lines_.push_back(fmt::format("{}:{}:{}: {}", file_, place.line, place.column, text));
}

Problem ConfigCheck::problem() const {
  const size_t shown = std::min(lines_.size(), kLinesMax);
  const std::span<const std::string> first = std::span(lines_).first(shown);
  std::string text = fmt::format("{}", fmt::join(first, "\n"));
  if (lines_.size() > shown) {
    text += fmt::format("\n{}: {} more like these; mend the first ones and check again", file_,
                        lines_.size() - shown);
  }
  return {std::move(text)};
}

Section& Section::add(std::string name, Read read) {
  keys_.push_back({std::move(name), std::move(read)});
  return *this;
}

Section& Section::boolean(std::string name, bool& into) {
  return add(std::move(name), [&into](const auto& value, const auto& path, ConfigCheck& check) {
    if (const auto* flag = value.template get<bool>()) {
      into = *flag;
    } else {
      check.refuse(value.place, wrong_kind(path, "true or false", value));
    }
  });
}

Section& Section::text(std::string name, std::string& into) {
  return add(std::move(name), [&into](const auto& value, const auto& path, ConfigCheck& check) {
    if (const auto* text = value.template get<std::string>()) {
      into = *text;
    } else {
      check.refuse(value.place, wrong_kind(path, "text in quotes", value));
    }
  });
}

Section& Section::whole_number(std::string name, IntegerRange range,
                               std::function<void(int64_t)> store) {
  return add(std::move(name), [range, store = std::move(store)](const auto& value, const auto& path,
                                                                ConfigCheck& check) {
    if (const auto number = integer_in(value, range, path, check)) store(*number);
  });
}

Section& Section::integers(std::string name, std::vector<int>& into, IntegerRange range,
                           size_t count_max) {
  return add(std::move(name), [&into, range, count_max](const auto& value, const auto& path,
                                                        ConfigCheck& check) {
    const auto* list = value.template get<TomlValue::List>();
    if (list == nullptr) {
      check.refuse(value.place, wrong_kind(path, "a list of whole numbers like [0, 1]", value));
      return;
    }
    if (list->size() > count_max) {
      check.refuse(value.place, fmt::format("{} has {} numbers; at most {} are allowed", path,
                                            list->size(), count_max));
      return;
    }
    std::vector<int> numbers;
    for (size_t i = 0; i < list->size(); ++i) {
      const auto number = integer_in((*list)[i], range, fmt::format("{}[{}]", path, i), check);
      if (number) numbers.push_back(static_cast<int>(*number));
    }
    into = std::move(numbers);
  });
}

Section& Section::word(std::string name, std::vector<std::string> known,
                       std::function<void(size_t)> store) {
  return add(std::move(name), [known = std::move(known), store = std::move(store)](
                                  const auto& value, const auto& path, ConfigCheck& check) {
    const auto* text = value.template get<std::string>();
    if (text == nullptr) {
      const std::string wanted = fmt::format("one of {}", comma_list(known));
      check.refuse(value.place, wrong_kind(path, wanted, value));
      return;
    }
    const auto found = std::ranges::find(known, *text);
    if (found == known.end()) {
      check.refuse(value.place, fmt::format("{} is {}{} (allowed: {})", path, in_quotes(*text),
                                            did_you_mean(*text, known), comma_list(known)));
      return;
    }
    store(static_cast<size_t>(found - known.begin()));
  });
}

Section& Section::custom(std::string name, std::string example,
                         std::function<Result<void>(std::string_view)> store) {
  return add(std::move(name), [example = std::move(example), store = std::move(store)](
                                  const auto& value, const auto& path, ConfigCheck& check) {
    const auto* text = value.template get<std::string>();
    if (text == nullptr) {
      const std::string wanted = fmt::format("text like \"{}\"", example);
      check.refuse(value.place, wrong_kind(path, wanted, value));
      return;
    }
    if (const Result<void> stored = store(*text); !stored) {
      check.refuse(value.place, fmt::format("{} is {}: {}; write something like \"{}\"", path,
                                            in_quotes(*text), stored.error().what(), example));
    }
  });
}

Section& Section::taken(std::string name, std::function<Attempt<void>(const std::string&)> take) {
  return add(std::move(name),
             [take = std::move(take)](const auto& value, const auto& path, ConfigCheck& check) {
               take_text(value, path, take, check);
             });
}

Section& Section::taken_list(std::string name, size_t count_max, std::function<void()> begin,
                             std::function<Attempt<void>(const std::string&)> take) {
  return add(std::move(name), [count_max, begin = std::move(begin), take = std::move(take)](
                                  const auto& value, const auto& path, ConfigCheck& check) {
    const auto* list = value.template get<TomlValue::List>();
    if (list == nullptr || list->size() > count_max) {
      const std::string wanted = fmt::format("a list of at most {} texts in quotes", count_max);
      check.refuse(value.place, wrong_kind(path, wanted, value));
      return;
    }
    begin();
    for (size_t i = 0; i < list->size(); ++i) {
      take_text((*list)[i], fmt::format("{}[{}]", path, i), take, check);
    }
  });
}

Section& Section::table(std::string name, Section section) {
  return add(std::move(name), [section = std::move(section)](const auto& value, const auto& path,
                                                             ConfigCheck& check) {
    check_table(section, path, value, check);
  });
}

Section& Section::tables(std::string name, size_t count_max, std::function<Section()> add_one) {
  return add(std::move(name), [count_max, add_one = std::move(add_one)](
                                  const auto& value, const auto& path, ConfigCheck& check) {
    const auto* list = value.template get<TomlValue::List>();
    if (list == nullptr) {
      check.refuse(value.place,
                   wrong_kind(path, fmt::format("tables, each headed [[{}]]", path), value));
      return;
    }
    if (list->size() > count_max) {
      check.refuse(value.place, fmt::format("there are {} of [[{}]]; at most {} are allowed",
                                            list->size(), path, count_max));
      return;
    }
    for (size_t i = 0; i < list->size(); ++i) {
      check_table(add_one(), fmt::format("{}[{}]", path, i), (*list)[i], check);
    }
  });
}

Section& Section::required() {
  keys_.back().required = true;
  return *this;
}

std::vector<std::string> Section::names() const {
  std::vector<std::string> names;
  names.reserve(keys_.size());
  for (const Key& key : keys_) names.push_back(key.name);
  return names;
}

void check_table(const Section& section, const std::string& path, const TomlValue& value,
                 ConfigCheck& check) {
  const auto* table = value.get<TomlValue::Table>();
  const std::string title = path.empty() ? "this file" : fmt::format("[{}]", path);
  if (table == nullptr) {
    check.refuse(value.place, wrong_kind(path, fmt::format("a table headed {}", title), value));
    return;
  }
  const size_t mistakes = check.count();
  for (const TomlEntry& entry : *table) {
    const auto key = std::ranges::find(section.keys_, entry.key, &Section::Key::name);
    if (key != section.keys_.end()) {
      key->read(entry.value, path_below(path, entry.key), check);
      continue;
    }
    const std::vector<std::string> names = section.names();
    check.refuse(entry.place,
                 fmt::format("unknown key {} in {}{} (allowed: {})", in_quotes(entry.key), title,
                             did_you_mean(entry.key, names), comma_list(names)));
  }
  for (const Section::Key& key : section.keys_) {
    if (!key.required || std::ranges::find(*table, key.name, &TomlEntry::key) != table->end()) {
      continue;
    }
    check.refuse(value.place, fmt::format("{} needs the key '{}'; add it", title, key.name));
  }
  if (section.whole_check_ && check.count() == mistakes) {
    if (const Attempt<void> sound = section.whole_check_(); !sound) {
      check.refuse(value.place, fmt::format("{}: {}", title, sound.error().text));
    }
  }
}

Attempt<void> check_config(std::string_view text, const std::string& file, const Section& root) {
  ConfigCheck check(file);
  const auto tree = parse_toml(text);
  if (!tree) {
    check.refuse(tree.error().place,
                 fmt::format("this is not TOML: {}; mend this line", tree.error().text));
  } else {
    check_table(root, "", *tree, check);
  }
  if (!check.ok()) return std::unexpected(check.problem());
  return {};
}

Attempt<void> read_config(const std::string& path, const Section& root) {
  const Attempt<std::string> text = read_file(path, kConfigSizeMax);
  if (!text) return std::unexpected(text.error());
  return check_config(*text, path, root);
}

}  // namespace cairn::config
