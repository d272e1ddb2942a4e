// SPDX-License-Identifier: Apache-2.0
#include "drive/drive.h"
#include "model/flash.h"
#include "world/posix/socket.h"
