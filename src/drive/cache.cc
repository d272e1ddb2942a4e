// SPDX-License-Identifier: Apache-2.0
#include "drive/cache.h"

#include "drive/memory_cache.h"

namespace cairn::drive {

namespace {

constexpr ServiceOption kOptions[] = {
    {.key = "memory",
     .kind = ServiceOption::Kind::kSize,
     .standard = "64M",
     .what = "memory for blocks",
     .least = 65536,
     .most = uint64_t{1} << 40},
};

}  // namespace

constexpr Service kCache{.name = "cache",
                         .what = "blocks that are used often are kept where they are faster",
                         .example = "cache({}, memory=1M)",
                         .options = kOptions,
                         .open = open_memory_cache};

}  // namespace cairn::drive
