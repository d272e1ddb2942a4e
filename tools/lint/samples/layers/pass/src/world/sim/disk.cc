// SPDX-License-Identifier: Apache-2.0
#include "env/disk.h"
#include "model/flash.h"
/* #include "drive/drive.h" is a comment,
#include "drive/drive.h" and so is this. */
