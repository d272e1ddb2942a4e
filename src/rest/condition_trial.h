// SPDX-License-Identifier: Apache-2.0
// Whether conditions at an HTTP server bring changes into an order, found out by trying.
#pragma once

#include <string>

#include "base/bytes.h"
#include "base/error.h"
#include "rest/client.h"
#include "task/task.h"

namespace cairn::rest {

// No server gives an object this ETag.
inline constexpr const char* kNeverMatches = "If-Match: \"cairn-never\"\r\n";

// Puts, replaces and deletes the object `target`, which nobody else uses. True: PUT and DELETE are
// refused when their condition does not hold, and the same bytes put again have another ETag, so
// that a change sent for one version is never carried out on a later one. False: not so, or the
// server has no strong ETags.
task::Task<Result<bool>> conditions_order_changes(Client& client, std::string target, Bytes body);

}  // namespace cairn::rest
