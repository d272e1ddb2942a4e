// SPDX-License-Identifier: Apache-2.0
#include "env/disk.h"
#include "model/flash.h"
/* #include "volume/volume.h" is a comment,
#include "volume/volume.h" and so is this. */
