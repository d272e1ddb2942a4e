// SPDX-License-Identifier: Apache-2.0
// A test may include a world.
#include "drive/drive.h"
#include "sim/world.h"
