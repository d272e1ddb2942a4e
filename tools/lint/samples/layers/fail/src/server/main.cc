// SPDX-License-Identifier: Apache-2.0
#include "fabric/host.h"
#include "world/posix/world.h"
#include "world/sim/world.h"
