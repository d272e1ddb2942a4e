// SPDX-License-Identifier: Apache-2.0
#include "server/support/redact.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace cairn::server {

namespace {

constexpr std::string_view kRemoved = "[removed]";
constexpr size_t kDrawnMin = 32;
constexpr size_t kCommit = 40;  // letters of a commit's hash
// Longer ones are none. So what is looked at again and again is short.
constexpr size_t kPathMax = 512;
constexpr size_t kHeadMax = 128;  // of what stands before a key in PEM

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}
char small(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Of a base64 or a hex text, or of the names that keys have.
bool is_word(char c) { return is_letter(c) || c == '+' || c == '_' || c == '-'; }
// What can be within a value that has no quotes around it.
bool is_value(char c) {
  return static_cast<unsigned char>(c) > ' ' && c != '"' && c != '\'' && c != ',' && c != ')' &&
         c != '}' && c != '&' && c != ';';
}

bool names_a_secret(std::string_view name) {
  std::string lower(name);
  std::ranges::transform(lower, lower.begin(), small);
  for (const std::string_view part :
       {"password", "passwd", "secret", "token", "psk", "credential"}) {
    if (lower.find(part) != lower.npos) return true;
  }
  return lower.ends_with("key") || lower.ends_with("auth") || lower == "authorization";
}

// A path is where a secret is, and none.
bool is_path(std::string_view value) {
  if (value.size() > kPathMax) return false;
  if (value.starts_with('/') || value.starts_with("./") || value.starts_with("../")) return true;
  static constexpr std::array<std::string_view, 7> kEndings = {".key", ".keys", ".pem",  ".psk",
                                                               ".txt", ".toml", ".token"};
  return std::ranges::any_of(kEndings, [&](std::string_view end) { return value.ends_with(end); });
}

bool is_plain(std::string_view value) {
  return value.empty() || value == "true" || value == "false" || value == "null" ||
         value == kRemoved || std::ranges::all_of(value, [](char c) { return c == '['; });
}

bool is_drawn(std::string_view word) {
  if (word.size() < kDrawnMin) return false;
  const bool is_hex = std::ranges::all_of(
      word, [](char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; });
  if (is_hex) return word.size() != kCommit;
  const bool has_digit = std::ranges::any_of(word, [](char c) { return c >= '0' && c <= '9'; });
  const bool has_large = std::ranges::any_of(word, [](char c) { return c >= 'A' && c <= 'Z'; });
  const bool has_small = std::ranges::any_of(word, [](char c) { return c >= 'a' && c <= 'z'; });
  return has_digit && has_large && has_small;
}

// Takes the text from its front to its end.
class Redactor {
 public:
  explicit Redactor(std::string_view text) : rest_(text) {}

  std::string run() {
    while (!rest_.empty()) {
      if (take_pem() || take_scheme() || take_known_key() || take_user() || take_word()) continue;
      out_ += rest_.front();
      rest_.remove_prefix(1);
    }
    return std::move(out_);
  }

 private:
  void remove(size_t size) {
    out_ += kRemoved;
    rest_.remove_prefix(size);
  }
  size_t value_size(std::string_view text) const {
    return static_cast<size_t>(std::ranges::find_if_not(text, is_value) - text.begin());
  }

  bool take_pem() {
    constexpr std::string_view kBegin = "-----BEGIN ";
    if (!rest_.starts_with(kBegin)) return false;
    const size_t head = rest_.substr(0, kHeadMax).find("-----", kBegin.size());
    const bool is_private = head != rest_.npos &&
                            rest_.substr(0, head).find("PRIVATE") != rest_.npos &&
                            rest_.substr(0, head).find('\n') == rest_.npos;
    if (!is_private) return false;
    const size_t end = rest_.find("-----END ", head);
    const size_t line = end == rest_.npos ? rest_.npos : rest_.find("-----", end + 9);
    remove(line == rest_.npos ? rest_.size() : line + 5);
    return true;
  }

  // "Bearer XYZ", "Basic XYZ".
  bool take_scheme() {
    if (!out_.empty() && is_letter(out_.back())) return false;
    for (const std::string_view scheme : {"Bearer ", "Basic "}) {
      if (!rest_.starts_with(scheme)) continue;
      const size_t size = value_size(rest_.substr(scheme.size()));
      if (size == 0) return false;
      out_ += scheme;
      rest_.remove_prefix(scheme.size());
      remove(size);
      return true;
    }
    return false;
  }

  bool take_known_key() {
    if (!rest_.starts_with("DHHC-1:") && !rest_.starts_with("NVMeTLSkey-1:")) return false;
    remove(value_size(rest_));
    return true;
  }

  // "//user:password@host".
  bool take_user() {
    if (!rest_.starts_with("//")) return false;
    const std::string_view authority = rest_.substr(2, rest_.find_first_of("/ \n\"'?", 2) - 2);
    const size_t at = authority.rfind('@');
    if (at == authority.npos || authority.substr(0, at).find(':') == authority.npos) return false;
    out_ += "//";
    rest_.remove_prefix(2);
    remove(at);
    return true;
  }

  // A word; with a value behind it, where it names a secret: name=value, "name": "value",
  // name = 'value'.
  bool take_word() {
    if (!is_word(rest_.front())) return false;
    const auto size = static_cast<size_t>(std::ranges::find_if_not(rest_, is_word) - rest_.begin());
    const std::string_view word = rest_.substr(0, size);
    // Base64 has slashes and ends with equals signs; paths have slashes too.
    const std::string_view near = rest_.substr(0, kPathMax);
    const auto long_size = static_cast<size_t>(
        std::ranges::find_if_not(near, [](char c) { return is_word(c) || c == '/' || c == '='; }) -
        near.begin());
    const bool is_in_path = !out_.empty() && (out_.back() == '/' || out_.back() == '.');
    if (!is_in_path && is_drawn(rest_.substr(0, long_size)) &&
        rest_.substr(0, long_size).find('=') >= long_size - 2) {
      remove(long_size);
      return true;
    }
    if (is_drawn(word)) {
      remove(size);
      return true;
    }
    out_ += word;
    rest_.remove_prefix(size);
    // The scheme of an Authorization stands before what it shows.
    if (names_a_secret(word)) take_value(small(word.front()) == 'a' && small(word.back()) == 'n');
    return true;
  }

  void take_value(bool to_line_end) {
    size_t at = 0;
    while (at < rest_.size() && (rest_[at] == '"' || rest_[at] == '\'' || rest_[at] == ' ')) ++at;
    if (at >= rest_.size() || (rest_[at] != '=' && rest_[at] != ':')) return;
    ++at;
    while (at < rest_.size() && (rest_[at] == ' ' || rest_[at] == '\t')) ++at;
    const char quote = at < rest_.size() && (rest_[at] == '"' || rest_[at] == '\'') ? rest_[at] : 0;
    if (quote != 0) ++at;
    const std::string_view after = rest_.substr(at);
    size_t size = value_size(after);
    if (to_line_end) size = std::min(after.find_first_of("\r\n\"'"), after.size());
    if (quote != 0) size = std::min(after.find(quote), after.size());
    const std::string_view value = after.substr(0, size);
    if (is_plain(value) || is_path(value)) return;
    out_ += rest_.substr(0, at);
    rest_.remove_prefix(at);
    remove(size);
  }

  std::string_view rest_;
  std::string out_;
};

}  // namespace

std::string redact(std::string_view text) { return Redactor(text).run(); }

}  // namespace cairn::server
