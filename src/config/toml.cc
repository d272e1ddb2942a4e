// SPDX-License-Identifier: Apache-2.0
// The only file that includes toml++: its exceptions end here.
#include "config/toml.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <utility>

namespace cairn::config {

namespace {

// Finds a dotted key of too many parts before toml++ sees it: toml++ 3.3 limits how deep brackets
// nest (256) but not dots, and frees what it built by recursion. Reads just enough TOML for that:
// strings and comments are skipped, and whatever cannot be part of a key starts a new one.
class DottedKeys {
 public:
  explicit DottedKeys(std::string_view text) : text_(text) {}

  std::optional<TomlError> find_too_long() {
    size_t dots = 0;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '"' || c == '\'') {
        skip_string(c);
        continue;
      }
      if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
        continue;
      }
      if (c == '.' && ++dots >= kDottedPartsMax) {
        return TomlError{place(), fmt::format("a dotted key has at most {} parts; write a [table] "
                                              "header instead",
                                              kDottedPartsMax)};
      }
      if (ends_key(c)) dots = 0;
      ++at_;
    }
    return std::nullopt;
  }

 private:
  static bool ends_key(char c) {
    return std::string_view("\n\r=,[]{}").find(c) != std::string_view::npos;
  }

  // A string runs to its closing quotes; a one-line string also ends, wrongly, with its line.
  void skip_string(char quote) {
    const std::string triple(3, quote);
    const bool is_long = text_.substr(at_).starts_with(triple);
    at_ += is_long ? 3 : 1;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (quote == '"' && c == '\\') {
        at_ += 2;
      } else if (is_long && text_.substr(at_).starts_with(triple)) {
        at_ += 3;
        // Up to two more quotes belong to the text: """a""""".
        for (int i = 0; i < 2 && at_ < text_.size() && text_[at_] == quote; ++i) ++at_;
        return;
      } else if (!is_long && (c == quote || c == '\n')) {
        ++at_;
        return;
      } else {
        ++at_;
      }
    }
    at_ = text_.size();
  }

  Position place() const {
    const std::string_view before = text_.substr(0, at_);
    const auto lines = static_cast<uint32_t>(std::count(before.begin(), before.end(), '\n'));
    const size_t start = before.rfind('\n') + 1;  // npos + 1 is 0
    return {lines + 1, static_cast<uint32_t>(at_ - start) + 1};
  }

  std::string_view text_;
  size_t at_ = 0;
};

Position place_of(const toml::source_region& region) {
  return {std::max<uint32_t>(region.begin.line, 1), std::max<uint32_t>(region.begin.column, 1)};
}

// Recursion is bounded: 256 brackets, each with at most kDottedPartsMax dots.
TomlValue copy(const toml::node& node) {
  TomlValue out{.place = place_of(node.source())};
  switch (node.type()) {
    case toml::node_type::table: {
      TomlValue::Table table;
      for (const auto& [key, value] : *node.as_table()) {
        table.push_back({std::string(key.str()), place_of(key.source()), copy(value)});
      }
      std::ranges::sort(table, {}, &TomlEntry::place);
      out.data = std::move(table);
      break;
    }
    case toml::node_type::array: {
      TomlValue::List list;
      for (const toml::node& value : *node.as_array()) list.push_back(copy(value));
      out.data = std::move(list);
      break;
    }
    case toml::node_type::boolean:
      out.data = node.as_boolean()->get();
      break;
    case toml::node_type::integer:
      out.data = node.as_integer()->get();
      break;
    case toml::node_type::floating_point:
      out.data = node.as_floating_point()->get();
      break;
    case toml::node_type::string:
      out.data = node.as_string()->get();
      break;
    default:
      out.data = TomlValue::DateOrTime{};
  }
  return out;
}

}  // namespace

std::string_view kind_of(const TomlValue& value) {
  static constexpr std::string_view kKinds[] = {"a table",  "a list", "a boolean",     "an integer",
                                                "a number", "text",   "a date or time"};
  return kKinds[value.data.index()];
}

std::expected<TomlValue, TomlError> parse_toml(std::string_view text) {
  if (std::optional<TomlError> error = DottedKeys(text).find_too_long()) {
    return std::unexpected(std::move(*error));
  }
  try {
    const toml::table root = toml::parse(text);
    return copy(root);
  } catch (const toml::parse_error& error) {
    std::string_view what = error.description();
    constexpr std::string_view kPrefix = "Error while parsing ";
    if (what.starts_with(kPrefix)) what.remove_prefix(kPrefix.size());
    return std::unexpected(TomlError{place_of(error.source()), std::string(what)});
  } catch (const std::exception& error) {
    return std::unexpected(TomlError{{}, error.what()});
  }
}

}  // namespace cairn::config
