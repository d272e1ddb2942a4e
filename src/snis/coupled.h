// SPDX-License-Identifier: Apache-2.0
// The truth that the iteration approaches: storage and network in one loop of events.
#pragma once

#include <functional>
#include <span>

#include "snis/iteration.h"

namespace cairn::snis {

// Reads go to the network when their drive served them, writes to their drive when the network
// carried them. The order of events of one moment is that of models.h, so the times are exactly
// those of an iteration that no longer changes anything. `told` as run_network's.
Iteration run_coupled(const Models& models, std::span<const trace::Record> requests,
                      const std::function<void(double)>& told = {});

}  // namespace cairn::snis
