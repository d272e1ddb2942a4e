// SPDX-License-Identifier: Apache-2.0
// The way into the flash model: a drive that says when requests are done.
#pragma once

#include <memory>
#include <string>

#include "model/flash/engine.h"

namespace cairn::flash {

using FlashModel = Engine;

}  // namespace cairn::flash
