// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <expected>
namespace cairn {
class Result;
int value();
}  // namespace cairn
