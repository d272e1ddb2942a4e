// SPDX-License-Identifier: Apache-2.0
#include "stack/stack_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "drive/source.h"

namespace cairn::drive {

namespace {

// What can stand without quotes.
constexpr std::string_view kEndsWord = " \t\r\n\"(),";

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }
bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}
// The first byte of a character, so that columns count what people see.
bool begins_character(char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  std::expected<Stack, StackError> parse() {
    if (text_.size() > kStackTextMax) {
      return wrong(0, fmt::format("a stack has at most {} bytes: write smaller ones and put "
                                  "them together through a box",
                                  kStackTextMax));
    }
    auto stack = layer(1);
    if (!stack) return stack;
    skip_space();
    if (at_ < text_.size()) {
      return wrong(at_, "the stack is complete before this: remove it, or put it into parentheses");
    }
    return stack;
  }

 private:
  using Word = std::expected<std::string, StackError>;

  static std::unexpected<StackError> wrong(size_t place, std::string text) {
    return std::unexpected(StackError{place, std::move(text)});
  }
  void skip_space() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  }
  bool is_at(char c) const { return at_ < text_.size() && text_[at_] == c; }
  bool take(char c) {
    skip_space();
    if (!is_at(c)) return false;
    ++at_;
    return true;
  }
  std::string_view peek_name() const {
    size_t end = at_;
    while (end < text_.size() && is_name(text_[end])) ++end;
    return text_.substr(at_, end - at_);
  }

  std::expected<Stack, StackError> layer(size_t depth) {
    skip_space();
    const size_t place = at_;
    if (depth > kStackDepthMax) {
      return wrong(place, fmt::format("a stack is at most {} layers deep", kStackDepthMax));
    }
    if (++layers_ > kStackLayersMax) {
      return wrong(place, fmt::format("a stack has at most {} layers", kStackLayersMax));
    }
    if (is_at('"')) return leaf(place);
    const std::string_view name = peek_name();
    const size_t after = place + name.size();
    const char next = after < text_.size() ? text_[after] : '\0';
    if (!name.empty() && next == '(') {
      at_ = after + 1;
      return service(std::string(name), place, depth);
    }
    if (!name.empty() && next == ':') return leaf(place);
    if (name.empty()) {
      return wrong(place,
                   "a drive is missing here: write a service such as mirror(...), or a "
                   "drive such as mem:size=1G");
    }
    return wrong(place, fmt::format("'{}' is neither a service nor a drive: write {}(...), or a "
                                    "drive such as mem:size=1G, file:PATH or nvme-tcp://HOST/NQN",
                                    name, name));
  }

  // After "name(".
  std::expected<Stack, StackError> service(std::string name, size_t place, size_t depth) {
    Stack stack{.name = std::move(name), .place = place};
    do {
      skip_space();
      const size_t start = at_;
      const std::string_view key = peek_name();
      const size_t after = at_ + key.size();
      if (!key.empty() && after < text_.size() && text_[after] == '=') {
        const bool is_double = std::ranges::any_of(
            stack.options, [key](const Stack::Option& had) { return had.key == key; });
        if (is_double) return wrong(start, fmt::format("{} is given twice: remove one", key));
        if (is_source_option(key)) {
          return wrong(start, fmt::format("{} is an option of mem:, file: and flash: drives: write "
                                          "it right after one",
                                          key));
        }
        at_ = after + 1;
        Word value = word();
        if (!value) return std::unexpected(value.error());
        if (value->empty()) {
          return wrong(at_, fmt::format("{} has no value: write {}=VALUE", key, key));
        }
        stack.options.push_back({std::string(key), std::move(*value), start});
        continue;
      }
      auto below = layer(depth + 1);
      if (!below) return below;
      stack.below.push_back(std::move(*below));
    } while (take(','));
    if (take(')')) return stack;
    if (at_ == text_.size()) {
      return wrong(at_, fmt::format("the stack ends here: close {}( with ')'", stack.name));
    }
    return wrong(
        at_, fmt::format("write ',' before what else {} takes, or ')' to close it", stack.name));
  }

  std::expected<Stack, StackError> leaf(size_t place) {
    const bool is_quoted = is_at('"');
    Word text = word();
    if (!text) return std::unexpected(text.error());
    if (text->find(':') == std::string::npos) {
      return wrong(place,
                   "this is no drive: write one such as \"file:/a path\" or "
                   "nvme-tcp://HOST/NQN");
    }
    if (is_at('(') || is_at('"')) {
      return wrong(at_, "a drive with such a character is written in double quotes");
    }
    const bool is_source = !is_quoted && text->find("://") == std::string::npos;
    while (is_source && next_is_source_option()) {
      *text += ',';
      take(',');
      skip_space();
      Word option = word();
      if (!option) return std::unexpected(option.error());
      *text += *option;
    }
    return Stack{.name = std::move(*text), .is_leaf = true, .place = place};
  }

  // A comma, then KEY= of a source.
  bool next_is_source_option() {
    const size_t kept = at_;
    bool found = false;
    if (take(',')) {
      skip_space();
      const std::string_view key = peek_name();
      at_ += key.size();
      found = is_at('=') && is_source_option(key);
    }
    at_ = kept;
    return found;
  }

  // In quotes, or up to what ends a word; may be empty.
  Word word() {
    if (!is_at('"')) {
      const size_t end = std::min(text_.find_first_of(kEndsWord, at_), text_.size());
      const size_t start = std::exchange(at_, end);
      return std::string(text_.substr(start, end - start));
    }
    const size_t start = at_++;
    std::string out;
    while (at_ < text_.size() && text_[at_] != '"') {
      if (text_[at_] == '\\') ++at_;
      if (at_ < text_.size()) out += text_[at_++];
    }
    if (at_ >= text_.size()) return wrong(start, "this quote is not closed: add '\"'");
    ++at_;
    return out;
  }

  std::string_view text_;
  size_t at_ = 0;
  size_t layers_ = 0;
};

// Whether the text reads back without quotes as this one leaf.
bool is_plain_leaf(const std::string& text) {
  const auto read = Parser(text).parse();
  return read && read->is_leaf && read->name == text;
}
bool is_plain_value(const std::string& text) {
  return text.find_first_of(kEndsWord) == std::string::npos;
}

}  // namespace

std::string StackError::show(std::string_view stack) const {
  constexpr size_t kBefore = 60;  // characters of the line before the caret
  constexpr size_t kAfter = 30;
  const size_t caret = std::min(place, stack.size());
  size_t begin = caret;
  for (size_t seen = 0; begin > 0 && seen < kBefore; --begin) {
    if (begins_character(stack[begin - 1])) ++seen;
  }
  size_t end = caret;
  for (size_t seen = 0; end < stack.size() && seen < kAfter; ++end) {
    if (begins_character(stack[end])) ++seen;
  }
  std::string line = begin > 0 ? "... " : "";
  std::string under(line.size(), ' ');
  for (size_t i = begin; i < end; ++i) {
    const bool is_control = static_cast<unsigned char>(stack[i]) < 0x20 || stack[i] == 0x7f;
    line += is_control ? ' ' : stack[i];
    if (i < caret && begins_character(stack[i])) under += ' ';
  }
  if (end < stack.size()) line += " ...";
  return fmt::format("{}\n{}^ {}", line, under, text);
}

std::expected<Stack, StackError> Stack::parse(std::string_view text) {
  return Parser(text).parse();
}

std::string Stack::text() const {
  if (is_leaf) return is_plain_leaf(name) ? name : quoted(name);
  std::string out = name + '(';
  std::string_view between;
  for (const Stack& one : below) {
    out += fmt::format("{}{}", between, one.text());
    between = ", ";
  }
  for (const Option& option : options) {
    out += fmt::format("{}{}={}", between, option.key,
                       is_plain_value(option.value) ? option.value : quoted(option.value));
    between = ", ";
  }
  return out + ')';
}

}  // namespace cairn::drive
