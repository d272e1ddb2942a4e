// SPDX-License-Identifier: Apache-2.0
// Programs that serve a file over NBD at a local socket, each in a process of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "bench/process.h"

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

// Serves while it exists.
class NbdServerProcess {
 public:
  // Once it accepts connections. kIo: it ended before; kTimedOut: it did neither.
  static Result<std::unique_ptr<NbdServerProcess>> start(const std::vector<std::string>& command,
                                                         const std::string& socket, int cpu);
  // Asks it to end, and waits for that.
  ~NbdServerProcess();
  NbdServerProcess(const NbdServerProcess&) = delete;
  NbdServerProcess& operator=(const NbdServerProcess&) = delete;

  // Of all its threads.
  Duration cpu_time() const { return process_.cpu_time(); }

 private:
  explicit NbdServerProcess(Process process) : process_(std::move(process)) {}
  Process process_;
};

// Whether a program of that name can be started.
bool has_program(std::string_view name);

}  // namespace cairn::bench
