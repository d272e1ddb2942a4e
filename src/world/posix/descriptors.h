// SPDX-License-Identifier: Apache-2.0
// Bytes and descriptors through a local socket, by calls that do not wait.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "world/posix/fd.h"

namespace cairn::posix {

// The most that the kernel lets one message carry.
inline constexpr size_t kDescriptorsPerMessage = 253;

struct ReceivedFds {
  ssize_t bytes = 0;  // or -1 and errno; EMFILE: there was no room here for all descriptors
  std::vector<Fd> fds;
};
// What is there, up to the end of the first message that brings descriptors.
ReceivedFds receive_with_fds(int socket, MutableBytes into);

// The bytes accepted, perhaps not all, or -1 and errno. The descriptors go with the first byte.
ssize_t send_with_fds(int socket, Bytes from, std::span<const int> fds);

}  // namespace cairn::posix
