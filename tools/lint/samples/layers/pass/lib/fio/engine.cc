// SPDX-License-Identifier: Apache-2.0
// Judged as lib is.
#include "lib/handle.h"
#include "other.h"
#include "server/server.h"
#include "world/sim/world.h"
namespace cairn::anything {
int thing;
}  // namespace cairn::anything
