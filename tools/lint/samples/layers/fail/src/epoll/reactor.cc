// SPDX-License-Identifier: Apache-2.0
#include "drive/drive.h"
#include "sim/world.h"
