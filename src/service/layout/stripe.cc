// SPDX-License-Identifier: Apache-2.0
#include "service/layout/stripe.h"

#include <algorithm>
#include <utility>

#include "base/units.h"
#include "service/layout/layout.h"

namespace cairn::drive {

namespace {

class Stripe final : public LegsDrive {
 public:
  Stripe(std::vector<std::unique_ptr<Drive>> legs, uint64_t chunk, uint64_t leg_blocks)
      : LegsDrive(std::move(legs)), chunk_(chunk), row_(chunk * below_count()) {
    geometry_ = common_geometry(chunk);
    geometry_.blocks = leg_blocks * below_count();
    geometry_.optimal_blocks =
        static_cast<uint32_t>(std::min<uint64_t>(chunk, geometry_.transfer_blocks));
  }

 private:
  LegPosition locate(uint64_t block) const override {
    const uint64_t within = block % row_;
    const uint64_t into = within % chunk_;
    return {.leg = within / chunk_, .block = block / row_ * chunk_ + into, .run = chunk_ - into};
  }
  Range leg_range(size_t leg, Range blocks) const override {
    const uint64_t first = before(leg, blocks.first);
    return {first, before(leg, blocks.first + blocks.count) - first};
  }
  // How many blocks before this one lie on that leg.
  uint64_t before(size_t leg, uint64_t block) const {
    const uint64_t begin = leg * chunk_;
    const uint64_t within = std::clamp(block % row_, begin, begin + chunk_) - begin;
    return block / row_ * chunk_ + within;
  }

  uint64_t chunk_;  // in blocks
  uint64_t row_;    // a chunk of each leg
};

task::Task<Result<std::unique_ptr<Drive>>> open_stripe(ServiceParts parts) {
  if (Result<void> same = check_same_blocks(parts.below); !same) co_return fail(same.error());
  const uint32_t block_size = parts.below[0]->geometry().block_size;
  const uint64_t bytes = parts.options.number("chunk");
  if (!is_aligned(bytes, block_size)) {
    co_return fail(Errc::kInvalid, "chunk is a multiple of the block size, which is",
                   static_cast<int32_t>(block_size));
  }
  const uint64_t chunk = bytes / block_size;
  uint64_t smallest = UINT64_MAX;
  for (const std::unique_ptr<Drive>& leg : parts.below) {
    smallest = std::min(smallest, leg->geometry().blocks);
  }
  if (smallest < chunk) co_return fail(Errc::kInvalid, "a drive is smaller than a chunk");
  co_return std::make_unique<Stripe>(std::move(parts.below), chunk, align_down(smallest, chunk));
}

constexpr ServiceOption kOptions[] = {{.key = "chunk",
                                       .kind = ServiceOption::Kind::kSize,
                                       .default_value = "64K",
                                       .what = "bytes on one drive before the next has its turn",
                                       .min = 512,
                                       .max = 1_GiB}};

}  // namespace

constexpr Service kStripe{.name = "stripe",
                          .what = "chunks on one drive after the other (RAID 0)",
                          .example = "stripe({}, {}, chunk=64K)",
                          .below_min = 2,
                          .below_max = 32,
                          .options = kOptions,
                          .open = open_stripe};

}  // namespace cairn::drive
