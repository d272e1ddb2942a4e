// SPDX-License-Identifier: Apache-2.0
#include "base/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace cairn {

uint32_t Histogram::bucket_of(uint64_t value) {
  if (value < (uint64_t{1} << kSubBits)) return static_cast<uint32_t>(value);
  const int exponent = std::bit_width(value) - 1;
  if (exponent >= kMaxBits) return kBuckets - 1;
  const int shift = exponent - kSubBits;
  const auto sub = static_cast<uint32_t>(value >> shift) - (1U << kSubBits);
  return (static_cast<uint32_t>(shift + 1) << kSubBits) + sub;
}

uint64_t Histogram::upper_bound_of(uint32_t bucket) {
  if (bucket < (1U << kSubBits)) return bucket;
  const uint32_t shift = (bucket >> kSubBits) - 1;
  const uint64_t sub = (bucket & ((1U << kSubBits) - 1)) + (1U << kSubBits);
  return ((sub + 1) << shift) - 1;
}

void Histogram::record_many(uint64_t value, uint64_t times) {
  if (times == 0) return;
  buckets_[bucket_of(value)] += times;
  count_ += times;
  min_ = std::min(min_, value);
  max_ = std::max(max_, value);
  sum_ += static_cast<double>(value) * static_cast<double>(times);
}

void Histogram::merge(const Histogram& other) {
  for (uint32_t i = 0; i < kBuckets; ++i) buckets_[i] += other.buckets_[i];
  count_ += other.count_;
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
  sum_ += other.sum_;
}

uint64_t Histogram::percentile(double fraction) const {
  if (count_ == 0) return 0;
  fraction = std::clamp(fraction, 0.0, 1.0);
  const auto rank = std::max<uint64_t>(
      1, static_cast<uint64_t>(std::ceil(fraction * static_cast<double>(count_))));
  uint64_t seen = 0;
  for (uint32_t i = 0; i < kBuckets; ++i) {
    seen += buckets_[i];
    if (seen >= rank) return i == kBuckets - 1 ? max_ : std::clamp(upper_bound_of(i), min_, max_);
  }
  return max_;
}

}  // namespace cairn
