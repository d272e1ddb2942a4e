// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/result.h"
#include "drive/block.h"
#include "env/env.h"
// namespace cairn::env { int in_a_comment; }
namespace cairn::drive {
class Drive {};
}  // namespace cairn::drive
