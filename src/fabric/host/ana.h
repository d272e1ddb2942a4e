// SPDX-License-Identifier: Apache-2.0
// How well a namespace is reached through a controller (asymmetric namespace access).
#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "base/error.h"
#include "fabric/host/session.h"
#include "nvme/format/ana_format.h"
#include "task/cancel.h"
#include "task/task.h"

namespace cairn::fabric {

// The state of `group` in an ANA log page, read as hostile input. None when the page does not hold
// the group, or breaks off before it.
std::optional<nvme::AnaState> find_ana_state(Bytes page, uint32_t group);

// The state of `group` as the controller tells it now; kOptimized when it does not report ANA, or
// does not name the group. Reading the page lets it send the next event. Errors as get_log.
task::Task<Result<nvme::AnaState>> read_ana_state(HostSession& session, uint32_t group,
                                                  task::CancelToken token);

}  // namespace cairn::fabric
