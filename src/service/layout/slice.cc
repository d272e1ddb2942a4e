// SPDX-License-Identifier: Apache-2.0
#include "service/layout/slice.h"

#include <utility>

#include "service/layout/layout.h"

namespace cairn::drive {

namespace {

class Slice final : public LegsDrive {
 public:
  Slice(std::vector<std::unique_ptr<Drive>> below, uint64_t first, uint64_t blocks)
      : LegsDrive(std::move(below)), first_(first) {
    geometry_ = common_geometry(first);
    geometry_.blocks = blocks;
  }

 private:
  LegPosition locate(uint64_t block) const override {
    return {.leg = 0, .block = first_ + block, .run = geometry_.blocks - block};
  }
  Range leg_range(size_t, Range blocks) const override {
    return {first_ + blocks.first, blocks.count};
  }

  uint64_t first_;
};

task::Task<Result<std::unique_ptr<Drive>>> open_slice(ServiceParts parts) {
  const Geometry& whole = parts.below[0]->geometry();
  const uint64_t offset = parts.options.number("offset");
  const uint64_t length = parts.options.number("length");
  if (!is_aligned(offset, whole.block_size) || !is_aligned(length, whole.block_size)) {
    co_return fail(Errc::kInvalid, "offset and length are multiples of the block size, which is",
                   static_cast<int32_t>(whole.block_size));
  }
  if (offset >= whole.bytes() || length > whole.bytes() - offset) {
    co_return fail(Errc::kInvalid, "the slice is past the end of its drive: make it smaller");
  }
  const uint64_t bytes = length > 0 ? length : whole.bytes() - offset;
  co_return std::make_unique<Slice>(std::move(parts.below), offset / whole.block_size,
                                    bytes / whole.block_size);
}

constexpr ServiceOption kOptions[] = {
    {.key = "offset",
     .kind = ServiceOption::Kind::kSize,
     .default_value = "0",
     .what = "its first byte"},
    {.key = "length",
     .kind = ServiceOption::Kind::kSize,
     .default_value = "0",
     .what = "its bytes; 0: to the end"},
};

}  // namespace

constexpr Service kSlice{.name = "slice",
                         .what = "a part of a drive",
                         .example = "slice({}, offset=1M)",
                         .options = kOptions,
                         .open = open_slice};

}  // namespace cairn::drive
