// SPDX-License-Identifier: Apache-2.0
// Programs that serve a file over NBD at a local socket.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cairn::bench {

enum class NbdServerKind : uint8_t {
  kCairn,
  kQemuUring,    // qemu-storage-daemon, aio=io_uring
  kQemuThreads,  // aio=threads
};
std::string_view name_of(NbdServerKind kind);

// What is served, and how.
struct NbdService {
  std::string program;  // for kCairn
  std::string file;
  std::string socket;   // made by the server, under a name that is free
  bool direct = false;  // past the page cache
  int cpu = 0;          // all its threads
};

// The command that serves so.
std::vector<std::string> nbd_command(NbdServerKind kind, const NbdService& service);

}  // namespace cairn::bench
