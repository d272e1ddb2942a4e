// SPDX-License-Identifier: Apache-2.0
#include "world/sim/world.h"
