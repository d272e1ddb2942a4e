// SPDX-License-Identifier: Apache-2.0
// Files as memory that processes share: ours, and what others send.
#pragma once

#include <cstdint>
#include <memory>

#include "base/error.h"
#include "env/sharing.h"
#include "world/posix/fd.h"

namespace cairn::posix {

// As Sharing::make_shared_memory: whoever gets it can neither shrink nor grow it.
Result<Fd> make_memory_file(uint64_t size);

// As Sharing::map_shared. Only what cannot make a page fault wait for another process is mapped:
// memory, and files of local file systems.
Result<std::unique_ptr<env::SharedMemory>> map_memory_file(int fd, const env::SharedRange& range);

}  // namespace cairn::posix
