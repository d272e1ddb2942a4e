// SPDX-License-Identifier: Apache-2.0
// Histograms of latencies: one in logarithmic buckets, of constant size, without allocation, 1.6%
// wide; and one in few buckets that are never cleared, for Prometheus.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "base/units.h"

namespace cairn {

// Counts values from 0 up to 2^42-1 (in nanoseconds: 73 minutes); larger ones land in the last
// bucket, and max() still tells the truth. A value and its bucket differ by less than 1/64.
// One core records; merge() brings cores together.
class Histogram {
 public:
  void record(uint64_t value) { record_many(value, 1); }
  void record_many(uint64_t value, uint64_t times);
  void merge(const Histogram& other);
  void clear() { *this = Histogram{}; }

  uint64_t count() const { return count_; }
  uint64_t min() const { return count_ == 0 ? 0 : min_; }
  uint64_t max() const { return max_; }
  double mean() const { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }

  // The smallest bucket bound that at least `fraction` of the values do not exceed, never above
  // max(); 0 when nothing was recorded. percentile(0.99) is p99.
  uint64_t percentile(double fraction) const;
  uint64_t p50() const { return percentile(0.50); }
  uint64_t p99() const { return percentile(0.99); }
  uint64_t p999() const { return percentile(0.999); }

 private:
  static constexpr int kSubBits = 6;  // 64 buckets to each power of two
  static constexpr int kMaxBits = 42;
  static constexpr uint32_t kBuckets = (kMaxBits - kSubBits + 1) << kSubBits;

  static uint32_t bucket_of(uint64_t value);
  static uint64_t upper_bound_of(uint32_t bucket);

  std::array<uint64_t, kBuckets> buckets_{};
  uint64_t count_ = 0;
  uint64_t min_ = UINT64_MAX;
  uint64_t max_ = 0;
  double sum_ = 0;
};

// How long things took, since there is something to count.
struct LatencyBuckets {
  // Upper bounds, inclusive; a last bucket has none.
  static constexpr std::array<Duration, 16> kBounds = {
      Duration{50'000},       Duration{100'000},       Duration{250'000},
      Duration{500'000},      Duration{1'000'000},     Duration{2'500'000},
      Duration{5'000'000},    Duration{10'000'000},    Duration{25'000'000},
      Duration{50'000'000},   Duration{100'000'000},   Duration{250'000'000},
      Duration{500'000'000},  Duration{1'000'000'000}, Duration{2'500'000'000},
      Duration{5'000'000'000}};

  void record(Duration took) {
    const auto at = std::ranges::lower_bound(kBounds, took);
    ++counts[static_cast<size_t>(at - kBounds.begin())];
    sum = sum + took;
  }

  std::array<uint64_t, kBounds.size() + 1> counts{};  // of each bucket, not summed up
  Duration sum;
};

}  // namespace cairn
