// SPDX-License-Identifier: Apache-2.0
#include "base/metrics_text.h"

#include <fmt/format.h>

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

// "0.0025": without zeroes at its end.
std::string seconds_text(Duration time) {
  const uint64_t ns = static_cast<uint64_t>(std::max<int64_t>(time.ns, 0));
  constexpr uint64_t kSecond = 1'000'000'000;
  std::string text = fmt::format("{}.{:09}", ns / kSecond, ns % kSecond);
  text.resize(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
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
  line("", labels, "", std::to_string(value));
}

void MetricsText::seconds(Labels labels, Duration value) {
  CHECK(!name_.empty() && type_ != Type::kHistogram);
  line("", labels, "", seconds_text(value));
}

void MetricsText::ratio(Labels labels, uint64_t part, uint64_t whole) {
  CHECK(type_ == Type::kGauge && !name_.empty());
  const double value = whole == 0 ? 1 : static_cast<double>(part) / static_cast<double>(whole);
  line("", labels, "", fmt::format("{:.6g}", value));
}

void MetricsText::histogram(Labels labels, std::span<const uint64_t> bounds,
                            std::span<const uint64_t> counts, uint64_t sum) {
  CHECK(type_ == Type::kHistogram && counts.size() == bounds.size() + 1);
  uint64_t total = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    total += counts[i];
    line("_bucket", labels, i < bounds.size() ? std::to_string(bounds[i]) : "+Inf",
         std::to_string(total));
  }
  line("_sum", labels, "", std::to_string(sum));
  line("_count", labels, "", std::to_string(total));
}

void MetricsText::histogram(Labels labels, const LatencyBuckets& latency) {
  CHECK(type_ == Type::kHistogram);
  uint64_t total = 0;
  for (size_t i = 0; i < latency.counts.size(); ++i) {
    total += latency.counts[i];
    line("_bucket", labels,
         i < LatencyBuckets::kBounds.size() ? seconds_text(LatencyBuckets::kBounds[i]) : "+Inf",
         std::to_string(total));
  }
  line("_sum", labels, "", seconds_text(latency.sum));
  line("_count", labels, "", std::to_string(total));
}

void MetricsText::line(std::string_view suffix, Labels labels, std::string_view bound,
                       std::string_view value) {
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
  text_ += fmt::format(" {}\n", value);
}

}  // namespace cairn
