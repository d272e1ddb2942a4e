// SPDX-License-Identifier: Apache-2.0
// What a status means to whoever asked for the command.
#pragma once

#include "base/error.h"
#include "nvme/format/status_format.h"

namespace cairn::fabric {

// The error of a status that is not success; its detail is the status code, as people write it.
Error error_of(nvme::Status status, nvme::StatusContext context = nvme::StatusContext::kNvm);

// The namespace cannot be reached this way now, but perhaps another way, or later.
bool is_path_status(nvme::Status status);
// Something was in the way of this command which need not be in the way of the next try.
bool is_transient_status(nvme::Status status);

}  // namespace cairn::fabric
