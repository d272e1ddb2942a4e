// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "drive/drive.h"
namespace cairn::drive {
int stack();
}  // namespace cairn::drive
