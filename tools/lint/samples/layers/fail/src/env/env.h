// SPDX-License-Identifier: Apache-2.0
#pragma once
namespace cairn::env::detail {
class Env {};
}  // namespace cairn::env::detail
