// SPDX-License-Identifier: Apache-2.0
// Programs that serve a file at a local socket, over NBD or vhost-user: ours and qemu's.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cairn::bench {

enum class FileServer : uint8_t {
  kCairn,
  kQemuUring,    // qemu-storage-daemon, aio=io_uring
  kQemuThreads,  // aio=threads
};
inline constexpr std::array<FileServer, 3> kFileServers = {
    FileServer::kCairn, FileServer::kQemuUring, FileServer::kQemuThreads};
std::string_view name_of(FileServer server);

// What is served, and how.
struct FileService {
  std::string program;  // for kCairn
  std::string file;
  std::string socket;  // made by the server, under a name that is free
  bool direct = true;  // past the page cache
  int cpu = 0;         // all its threads
};

// The commands that serve so. Over vhost-user the file is always direct, and others may have it
// open too.
using ServeCommand = std::vector<std::string> (*)(FileServer server, const FileService& service);
std::vector<std::string> nbd_command(FileServer server, const FileService& service);
std::vector<std::string> vhost_command(FileServer server, const FileService& service);

}  // namespace cairn::bench
