// SPDX-License-Identifier: Apache-2.0
#pragma once
namespace cairn {
class Declared;
int defined;
}  // namespace cairn
