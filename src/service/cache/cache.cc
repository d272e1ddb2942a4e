// SPDX-License-Identifier: Apache-2.0
#include "service/cache/cache.h"

#include "service/cache/fast_cache.h"
#include "service/cache/memory_cache.h"

namespace cairn::drive {

namespace {

task::Task<Result<std::unique_ptr<Drive>>> open_cache(ServiceParts parts) {
  return parts.below.size() == 1 ? open_memory_cache(std::move(parts))
                                 : open_fast_cache(std::move(parts));
}

constexpr ServiceOption kOptions[] = {
    {.key = "memory",
     .kind = ServiceOption::Kind::kSize,
     .default_value = "64M",
     .what = "without a fast drive: memory for blocks",
     .min = 65536,
     .max = uint64_t{1} << 40},
    {.key = "mode",
     .kind = ServiceOption::Kind::kText,
     .default_value = "through",
     .what = "on a fast drive: write through or back"},
    {.key = "dirty",
     .default_value = "50",
     .what = "back: percent of the fast drive that may wait to be written back",
     .max = 100},
    {.key = "drain",
     .kind = ServiceOption::Kind::kYesNo,
     .default_value = "no",
     .what = "back: all is written back before it closes"},
};

}  // namespace

constexpr Service kCache{.name = "cache",
                         .what = "blocks that are used often are kept where they are faster",
                         .example = "cache({}, {}, mode=back, dirty=20)",
                         .below_max = 2,
                         .options = kOptions,
                         .open = open_cache};

}  // namespace cairn::drive
