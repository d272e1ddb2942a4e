// SPDX-License-Identifier: Apache-2.0
#include "base/metrics_text.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "base/check.h"

namespace cairn {

namespace {

constexpr std::array<std::string_view, 3> kTypes = {"counter", "gauge", "histogram"};

bool is_sound_name(std::string_view name) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; };
  return !name.empty() && is_letter(name.front()) &&
         std::ranges::all_of(name, [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

// Backslashes and ends of lines are written as two characters, and quotes where they end a value.
std::string escaped(std::string_view text, bool quotes) {
  std::string out;
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '\\' || (quotes && c == '"')) out += '\\';
    out += c;
  }
  return out;
}

}  // namespace

void MetricsText::family(Type type, std::string_view name, std::string_view help) {
  CHECK(is_sound_name(name) && std::ranges::find(names_, name) == names_.end());
  CHECK(name.ends_with("_total") == (type == Type::kCounter), "as Prometheus names counters");
  names_.emplace_back(name);
  name_ = name;
  type_ = type;
  text_ += "# HELP " + name_ + " " + escaped(help, false) + "\n";
  text_ += "# TYPE " + name_ + " " + std::string(kTypes[static_cast<size_t>(type)]) + "\n";
}

void MetricsText::sample(Labels labels, uint64_t value) {
  CHECK(!name_.empty() && type_ != Type::kHistogram);
  line("", labels, "", value);
}

void MetricsText::histogram(Labels labels, std::span<const uint64_t> bounds,
                            std::span<const uint64_t> counts, uint64_t sum) {
  CHECK(type_ == Type::kHistogram && counts.size() == bounds.size() + 1);
  uint64_t total = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    total += counts[i];
    line("_bucket", labels, i < bounds.size() ? std::to_string(bounds[i]) : "+Inf", total);
  }
  line("_sum", labels, "", sum);
  line("_count", labels, "", total);
}

void MetricsText::line(std::string_view suffix, Labels labels, std::string_view bound,
                       uint64_t value) {
  text_ += name_;
  text_ += suffix;
  std::string inside;
  const auto add = [&inside](std::string_view name, std::string_view text) {
    CHECK(is_sound_name(name));
    inside += inside.empty() ? "" : ",";
    inside += std::string(name) + "=\"" + escaped(text, true) + "\"";
  };
  for (const auto& [name, text] : labels) add(name, text);
  if (!bound.empty()) add("le", bound);
  if (!inside.empty()) text_ += "{" + inside + "}";
  text_ += " " + std::to_string(value) + "\n";
}

}  // namespace cairn
