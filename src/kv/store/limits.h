// SPDX-License-Identifier: Apache-2.0
// Limits: how much of each log may live, and who may take how much of the rest.
//
// A log never stands still as long as compaction can do its next step. A step writes at most a
// window and the end of one chain or record, and frees what it has read, which is no less; so room
// for one step is enough for all, and once a lap as much is lost as one write can have. What each
// kind of user keeps away from (LogSpace::Limits) follows from that; what lives is held below the
// rest, so there is always something dead in a lap.
#pragma once

#include <cstdint>

#include "kv/store/layout.h"
#include "kv/store/log_space.h"

namespace cairn::kv::store {

LogSpace::Limits key_limits(const Layout& layout);
LogSpace::Limits value_limits(const Layout& layout);
uint64_t live_buckets_max(const Layout& layout);
uint64_t live_units_max(const Layout& layout);

// Of one commit.
uint64_t commit_buckets_max(const Layout& layout);
// Of one segment: a part of a commit, kChainMax at most.
uint64_t chain_buckets_max(const Layout& layout);
// What compaction takes at a time.
uint64_t key_window_buckets(const Layout& layout);
uint64_t value_window_units(const Layout& layout);

}  // namespace cairn::kv::store
