// SPDX-License-Identifier: Apache-2.0
// A test may include a world, and what the table marks.
#include "drive/drive.h"
#include "stack/stack.h"
#include "world/sim/world.h"
