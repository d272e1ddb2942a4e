// SPDX-License-Identifier: Apache-2.0
#include "rack/rack.h"
#include "server/server.h"
namespace cairn::rack_tests {
int thing;
}  // namespace cairn::rack_tests
