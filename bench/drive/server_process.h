// SPDX-License-Identifier: Apache-2.0
// A program that serves at a local socket, in a process of its own.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "bench/process.h"

namespace cairn::bench {

// Serves while it exists.
class ServerProcess {
 public:
  // Once it accepts connections. kIo: it ended before; kTimedOut: it did neither.
  static Result<std::unique_ptr<ServerProcess>> start(const std::vector<std::string>& command,
                                                      const std::string& socket, int cpu);
  // Asks it to end, and waits for that.
  ~ServerProcess();
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  // Of all its threads.
  Duration cpu_time() const { return process_.cpu_time(); }

 private:
  explicit ServerProcess(Process process) : process_(std::move(process)) {}
  Process process_;
};

// Whether a program of that name can be started.
bool has_program(std::string_view name);

}  // namespace cairn::bench
