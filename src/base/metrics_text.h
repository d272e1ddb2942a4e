// SPDX-License-Identifier: Apache-2.0
// MetricsText: counters and gauges in the text form that Prometheus reads (version 0.0.4).
//
//   MetricsText text;
//   text.family(MetricsText::Type::kCounter, "cairn_reads_total", "Reads that were served.");
//   text.sample({{"nqn", nqn}}, reads);
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/histogram.h"
#include "base/units.h"

namespace cairn {

class MetricsText {
 public:
  enum class Type : uint8_t { kCounter, kGauge, kHistogram };
  using Label = std::pair<std::string_view, std::string_view>;
  using Labels = std::initializer_list<Label>;

  // Begins a family: samples that follow are its. Names are of small letters, digits and
  // underscores, each once; a counter's ends in _total and no other's does (CHECK).
  void family(Type type, std::string_view name, std::string_view help);

  // Label values may be any bytes.
  void sample(Labels labels, uint64_t value);
  // As seconds, exact to the nanosecond.
  void seconds(Labels labels, Duration value);
  // How much of `whole` is there: 0 to 1, and 1 of nothing at all.
  void ratio(Labels labels, uint64_t part, uint64_t whole);

  // A histogram's samples. `counts` are those of its buckets, not summed up; `bounds` their upper
  // bounds, one fewer, because the last bucket has none. `sum` is that of all values.
  void histogram(Labels labels, std::span<const uint64_t> bounds, std::span<const uint64_t> counts,
                 uint64_t sum);
  // The same of times, in seconds.
  void histogram(Labels labels, const LatencyBuckets& latency);

  const std::string& text() const { return text_; }

 private:
  void line(std::string_view suffix, Labels labels, std::string_view bound, std::string_view value);

  std::string text_;
  std::string name_;
  Type type_ = Type::kGauge;
  std::vector<std::string> names_;
};

}  // namespace cairn
