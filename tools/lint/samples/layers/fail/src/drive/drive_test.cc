// SPDX-License-Identifier: Apache-2.0
// A world and src/stack are allowed in a test; another higher layer is not.
#include "fabric/host.h"
#include "stack/stack.h"
#include "world/sim/world.h"
