// SPDX-License-Identifier: Apache-2.0
// limit: at most so many requests, and so many bytes, per second.
//
//   limit(DRIVE, iops=5000, bytes=200M, burst_ms=100)
//
// Reads, writes and compares cost one request and their bytes; flushes, discards and write-zeroes
// cost one request. After a pause, as much as burst_ms gives at the full rate passes at once.
// Requests go in the order they came; one that is cancelled while it waits costs nothing.
#pragma once

#include "service/common/service.h"

namespace cairn::drive {

extern const Service kLimit;

}  // namespace cairn::drive
