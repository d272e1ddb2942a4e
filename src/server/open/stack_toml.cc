// SPDX-License-Identifier: Apache-2.0
#include "server/open/stack_toml.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/words.h"
#include "config/files.h"
#include "config/toml.h"
#include "stack/services.h"

namespace cairn::server {

namespace {

using drive::Stack;

constexpr size_t kStackFileMax = 256 << 10;

class Reader {
 public:
  explicit Reader(const std::string& file) : file_(file) {}

  Attempt<Stack> layer(const config::TomlValue& value, size_t depth) {
    if (depth > drive::kStackDepthMax) return wrong(value.place, "the stack is too deep");
    if (const auto* text = value.get<std::string>()) return from_text(*text, value.place);
    const auto* table = value.get<config::TomlValue::Table>();
    if (table == nullptr) {
      return wrong(value.place, fmt::format("this is {}: write a text such as \"mem:size=1G\", or "
                                            "a table with service = \"...\"",
                                            config::kind_of(value)));
    }
    Stack stack;
    for (const config::TomlEntry& entry : *table) {
      Attempt<void> taken = take(stack, entry, depth);
      if (!taken) return std::unexpected(taken.error());
    }
    if (stack.name.empty()) {
      return wrong(value.place, "a service has no name here: write service = \"mirror\"");
    }
    return stack;
  }

 private:
  std::unexpected<Problem> wrong(config::Position place, std::string_view text) const {
    return refuse(fmt::format("{}:{}:{}: {}", file_, place.line, place.column, text));
  }

  Attempt<Stack> from_text(const std::string& text, config::Position place) const {
    auto stack = Stack::parse(text);
    if (!stack) return wrong(place, "\n" + stack.error().show(text));
    return std::move(*stack);
  }

  Attempt<void> take(Stack& stack, const config::TomlEntry& entry, size_t depth) {
    if (entry.key == "service") {
      const auto* name = entry.value.get<std::string>();
      if (name == nullptr || drive::find_service(*name) == nullptr) {
        return wrong(entry.value.place, "this is no service: see docs/services.md");
      }
      stack.name = *name;
      return {};
    }
    if (entry.key == "below") {
      const auto* list = entry.value.get<config::TomlValue::List>();
      if (list == nullptr) return wrong(entry.value.place, "below is a list of drives");
      for (const config::TomlValue& one : *list) {
        Attempt<Stack> below = layer(one, depth + 1);
        if (!below) return std::unexpected(below.error());
        stack.below.push_back(std::move(*below));
      }
      return {};
    }
    Stack::Option option{.key = entry.key};
    if (const auto* text = entry.value.get<std::string>()) {
      option.value = *text;
    } else if (const auto* number = entry.value.get<int64_t>()) {
      option.value = fmt::format("{}", *number);
    } else if (const auto* flag = entry.value.get<bool>()) {
      option.value = *flag ? "yes" : "no";
    }
    if (option.value.empty()) {
      return wrong(entry.value.place, fmt::format("{} is a text, a whole number, or true or false",
                                                  escaped(entry.key)));
    }
    stack.options.push_back(std::move(option));
    return {};
  }

  const std::string& file_;
};

std::string toml_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string inline_toml(const Stack& stack) {
  if (stack.is_leaf) return toml_string(stack.text());
  std::string out = fmt::format("{{service = {}", toml_string(stack.name));
  for (const Stack::Option& option : stack.options) {
    out += fmt::format(", {} = {}", option.key, toml_string(option.value));
  }
  out += ", below = [";
  for (size_t i = 0; i < stack.below.size(); ++i) {
    out += fmt::format("{}{}", i == 0 ? "" : ", ", inline_toml(stack.below[i]));
  }
  return out + "]}";
}

}  // namespace

Attempt<Stack> parse_stack_toml(std::string_view toml, const std::string& file) {
  const auto root = config::parse_toml(toml);
  if (!root) {
    const config::TomlError& error = root.error();
    return refuse(fmt::format("{}:{}:{}: {}", file, error.place.line, error.place.column,
                              escaped(error.text)));
  }
  const Attempt<Stack> read = Reader(file).layer(*root, 1);
  if (!read) return read;
  // What the file says as a line: its limits hold, and mistakes have a place to point at.
  const std::string text = read->text();
  auto stack = Stack::parse(text);
  if (!stack) return refuse(fmt::format("{}:\n{}", file, stack.error().show(text)));
  if (auto checked = drive::check_stack(*stack); !checked) {
    return refuse(fmt::format("{}:\n{}", file, checked.error().show(text)));
  }
  return std::move(*stack);
}

Attempt<drive::Stack> read_stack_toml(const std::string& file) {
  const Attempt<std::string> toml = config::read_file(file, kStackFileMax);
  if (!toml) return std::unexpected(toml.error());
  return parse_stack_toml(*toml, file);
}

std::string stack_toml(const Stack& stack) {
  std::string out = fmt::format("service = {}\n", toml_string(stack.name));
  for (const Stack::Option& option : stack.options) {
    out += fmt::format("{} = {}\n", option.key, toml_string(option.value));
  }
  out += "below = [\n";
  for (const Stack& below : stack.below) out += fmt::format("  {},\n", inline_toml(below));
  return out + "]\n";
}

}  // namespace cairn::server
