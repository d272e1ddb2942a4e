// SPDX-License-Identifier: Apache-2.0
// The cache in memory of cache.h, which has the contract. Internal.
#pragma once

#include "service/common/service.h"

namespace cairn::drive {

task::Task<Result<std::unique_ptr<Drive>>> open_memory_cache(ServiceParts parts);

}  // namespace cairn::drive
