// SPDX-License-Identifier: Apache-2.0
// A folder may include what its line adds.
#include "stack/stack.h"
#include "world/posix/world.h"
