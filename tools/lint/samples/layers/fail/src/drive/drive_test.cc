// SPDX-License-Identifier: Apache-2.0
// A world is allowed in a test; a higher layer is not.
#include "sim/world.h"
#include "volume/volume.h"
