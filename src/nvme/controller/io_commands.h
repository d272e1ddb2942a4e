// SPDX-License-Identifier: Apache-2.0
// What IoQueue's files share: statuses and counting.
#pragma once

#include "base/error.h"
#include "drive/drive.h"
#include "nvme/controller/core_namespace.h"
#include "nvme/format/status_format.h"

namespace cairn::nvme {

// The same command would fail again.
inline Status final(StatusCode code) { return Status(code).with_do_not_retry(); }

// The status for an error of a drive.
Status status_of(const Error& error, bool writes);
// The status for an error of moving the command's data.
Status data_status(const Error& error);

// Keeps the namespace's counters after one request.
void count_io(CoreNamespace& space, const drive::Request& request, const Result<void>& done);

}  // namespace cairn::nvme
