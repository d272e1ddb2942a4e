// SPDX-License-Identifier: Apache-2.0
#include "base/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace cairn {

namespace {

constexpr size_t kQuotedMax = 60;
constexpr size_t kWordMax = 48;  // longer ones are nobody's typing error

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

// The length of the UTF-8 sequence that starts `text`; 0 when there is none.
size_t utf8_length(std::string_view text) {
  const auto lead = static_cast<uint8_t>(text[0]);
  const size_t length = lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 0;
  if (length == 0 || length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((static_cast<uint8_t>(text[i]) & 0xC0) != 0x80) return 0;
  }
  // U+0080 to U+009F are controls that some terminals obey.
  if (lead == 0xC2 && static_cast<uint8_t>(text[1]) < 0xA0) return 0;
  return length;
}

// Takes one character off `text` and adds it to `out`, in a form fit for a terminal.
void move_escaped(std::string_view& text, std::string& out) {
  const auto byte = static_cast<uint8_t>(text[0]);
  size_t length = byte >= 0x20 && byte < 0x7F ? 1 : utf8_length(text);
  if (length == 0) {
    out += fmt::format("\\x{:02x}", byte);
    length = 1;
  } else {
    out += text.substr(0, length);
  }
  text.remove_prefix(length);
}

// Edits between the two: insert, drop, replace, or swap two neighbours.
size_t distance(std::string_view a, std::string_view b) {
  using Row = std::array<size_t, kWordMax + 1>;
  Row before_last{};
  Row last{};
  Row row{};
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const bool same = lower(a[i - 1]) == lower(b[j - 1]);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same ? 0 : 1)});
      if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
          lower(a[i - 2]) == lower(b[j - 1])) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
    before_last = last;
    last = row;
  }
  return last[b.size()];
}

}  // namespace

std::string in_quotes(std::string_view text) {
  std::string out = "'";
  while (!text.empty()) {
    if (out.size() > kQuotedMax) return out + "...'";
    move_escaped(text, out);
  }
  return out + "'";
}

std::string escaped(std::string_view text) {
  std::string out;
  while (!text.empty()) move_escaped(text, out);
  return out;
}

std::string comma_list(std::span<const std::string> words) {
  return fmt::format("{}", fmt::join(words, ", "));
}

std::string first_few(std::span<const std::string> names) {
  constexpr size_t kMax = 10;
  if (names.size() <= kMax) return comma_list(names);
  return fmt::format("{} and {} more", comma_list(names.first(kMax)), names.size() - kMax);
}

std::string range_list(std::span<const int> numbers) {
  std::string out;
  for (size_t i = 0; i < numbers.size();) {
    size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    if (!out.empty()) out += ",";
    out +=
        last == i ? fmt::format("{}", numbers[i]) : fmt::format("{}-{}", numbers[i], numbers[last]);
    i = last + 1;
  }
  return out;
}

std::string_view nearest(std::string_view typed, std::span<const std::string> words) {
  std::string_view best;
  size_t best_distance = SIZE_MAX;
  if (typed.size() > kWordMax) return best;
  for (const std::string& word : words) {
    if (word.size() > kWordMax) continue;
    const size_t away = distance(typed, word);
    const size_t allowed = std::max<size_t>(1, std::max(typed.size(), word.size()) / 3);
    if (away < best_distance && away <= allowed && away < word.size()) {
      best = word;
      best_distance = away;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view typed, std::span<const std::string> words) {
  const std::string_view meant = nearest(typed, words);
  return meant.empty() ? "" : fmt::format("; did you mean '{}'?", meant);
}

}  // namespace cairn
