// SPDX-License-Identifier: Apache-2.0
// How many bytes an admin command moves. A fabric's data pointers say it; PRPs do not, so it
// follows from the command (NVMe Base 2.0, 5).
#pragma once

#include <cstddef>
#include <expected>

#include "nvme/format/command_format.h"
#include "nvme/format/status_format.h"

namespace cairn::nvme {

// 0: none, also of commands that are not served. Refuses, with DNR, what moves more than MDTS
// allows (kInvalidField).
std::expected<size_t, Status> admin_data_size(const Sqe& sqe);

}  // namespace cairn::nvme
