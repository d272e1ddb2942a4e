// SPDX-License-Identifier: Apache-2.0
#include "bench/drive/server_process.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <sstream>
#include <thread>

#include "bench/workload.h"

namespace cairn::bench {

namespace {

constexpr Duration kStartMax = 20_s;

bool accepts_at(const std::string& socket) {
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  if (socket.size() >= sizeof(at.sun_path)) return false;
  std::memcpy(at.sun_path, socket.c_str(), socket.size());
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  const bool accepts = ::connect(fd, reinterpret_cast<const sockaddr*>(&at), sizeof(at)) == 0;
  ::close(fd);
  return accepts;
}

}  // namespace

Result<std::unique_ptr<ServerProcess>> ServerProcess::start(const std::vector<std::string>& command,
                                                            const std::string& socket, int cpu) {
  Result<Process> process = Process::start_program(command, cpu);
  if (!process) return fail(process.error());
  std::unique_ptr<ServerProcess> server(new ServerProcess(std::move(*process)));
  const Time limit = now() + kStartMax;
  while (!accepts_at(socket)) {
    if (!server->process_.is_running()) return fail(Errc::kIo, "a server of the benchmark ended");
    if (now() > limit) return fail(Errc::kTimedOut, "a server of the benchmark does not accept");
    std::this_thread::yield();
  }
  return server;
}

ServerProcess::~ServerProcess() {
  process_.terminate();
  (void)process_.wait();
}

bool has_program(std::string_view name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (::access(fmt::format("{}/{}", folder, name).c_str(), X_OK) == 0) return true;
  }
  return false;
}

}  // namespace cairn::bench
