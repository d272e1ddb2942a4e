// SPDX-License-Identifier: Apache-2.0
// trace: records every request, with its latency and result, in a file.
//
//   trace(DRIVE, to=/var/log/cairn/d0.trace)
//
// The file is what src/trace/cairn_format.h says; `cairn drive replay` runs it again. A file that
// exists is never touched: FILE, else FILE.1, FILE.2 and so on. Requests wait for nothing: lines
// are gathered and written in the background, and are dropped, and counted, when that is too slow
// or the file cannot be written. A crash loses the last 16 KiB of lines. Requests pass as they are.
//
// tell: "stop" ends the file, "start" begins the next, "rotate" does both. recording=no begins
// stopped. An error of the file does not keep a stack from opening: facts count it, and "start"
// says which.
#pragma once

#include "service/common/service.h"

namespace cairn::drive {

extern const Service kTrace;

}  // namespace cairn::drive
