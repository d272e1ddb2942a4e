// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/result.h"
namespace cairn {
class Result;
template <class T, int kSize>
struct Array;
enum class Kind : int;
}  // namespace cairn
namespace cairn::env {
namespace detail {
struct Inside {};
}  // namespace detail
class Env {};
}  // namespace cairn::env
