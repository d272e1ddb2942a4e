// SPDX-License-Identifier: Apache-2.0
// Programs that serve a file over vhost-user at a local socket.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cairn::bench {

enum class VhostServerKind : uint8_t {
  kCairn,
  kQemuUring,    // qemu-storage-daemon, aio=io_uring
  kQemuThreads,  // aio=threads
};
inline constexpr std::array<VhostServerKind, 3> kVhostServers = {
    VhostServerKind::kCairn, VhostServerKind::kQemuUring, VhostServerKind::kQemuThreads};
std::string_view name_of(VhostServerKind kind);

// What is served, past the page cache; others may have the file open too.
struct VhostService {
  std::string program;  // for kCairn
  std::string file;
  std::string socket;  // made by the server, under a name that is free
  int cpu = 0;
};

// The command that serves so.
std::vector<std::string> vhost_command(VhostServerKind kind, const VhostService& service);

}  // namespace cairn::bench
