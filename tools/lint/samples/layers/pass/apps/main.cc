// SPDX-License-Identifier: Apache-2.0
#include "epoll/world.h"
#include "options.h"
#include "sim/world.h"
#include "volume/volume.h"
