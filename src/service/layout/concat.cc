// SPDX-License-Identifier: Apache-2.0
#include "service/layout/concat.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "service/layout/layout.h"

namespace cairn::drive {

namespace {

class Concat final : public LegsDrive {
 public:
  explicit Concat(std::vector<std::unique_ptr<Drive>> legs) : LegsDrive(std::move(legs)) {
    uint64_t seams = 0;  // what all of them are a multiple of
    uint64_t end = 0;
    for (size_t leg = 0; leg < below_count(); ++leg) {
      seams = std::gcd(seams, end);
      ends_.push_back(end += below(leg).geometry().blocks);
    }
    geometry_ = common_geometry(seams);
    geometry_.blocks = end;
  }

 private:
  LegPosition locate(uint64_t block) const override {
    const auto leg = static_cast<size_t>(std::ranges::upper_bound(ends_, block) - ends_.begin());
    return {.leg = leg, .block = block - begin(leg), .run = ends_[leg] - block};
  }
  Range leg_range(size_t leg, Range blocks) const override {
    const uint64_t first = std::clamp(blocks.first, begin(leg), ends_[leg]);
    const uint64_t end = std::clamp(blocks.first + blocks.count, begin(leg), ends_[leg]);
    return {first - begin(leg), end - first};
  }
  uint64_t begin(size_t leg) const { return leg == 0 ? 0 : ends_[leg - 1]; }

  std::vector<uint64_t> ends_;  // the block after each leg's last
};

task::Task<Result<std::unique_ptr<Drive>>> open_concat(ServiceParts parts) {
  if (Result<void> same = check_same_blocks(parts.below); !same) co_return fail(same.error());
  co_return std::make_unique<Concat>(std::move(parts.below));
}

}  // namespace

constexpr Service kConcat{.name = "concat",
                          .what = "drives one after the other",
                          .example = "concat({}, {})",
                          .below_min = 2,
                          .below_max = 32,
                          .open = open_concat};

}  // namespace cairn::drive
