// SPDX-License-Identifier: Apache-2.0
#include "bench/drive/nbd_server.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <sstream>
#include <thread>
#include <utility>

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

std::vector<std::string> qemu_command(const NbdService& service, std::string_view aio) {
  return {"qemu-storage-daemon",
          "--blockdev",
          fmt::format("driver=file,node-name=file0,filename={},aio={},cache.direct={}",
                      service.file, aio, service.direct ? "on" : "off"),
          "--nbd-server",
          fmt::format("addr.type=unix,addr.path={},max-connections=64", service.socket),
          "--export",
          "type=nbd,id=export0,node-name=file0,name=d0,writable=on"};
}

}  // namespace

std::string_view name_of(NbdServerKind kind) {
  switch (kind) {
    case NbdServerKind::kCairn:
      return "cairn";
    case NbdServerKind::kQemuUring:
      return "qsd_io_uring";
    case NbdServerKind::kQemuThreads:
      return "qsd_threads";
  }
  return "";
}

std::vector<std::string> nbd_command(NbdServerKind kind, const NbdService& service) {
  switch (kind) {
    case NbdServerKind::kQemuUring:
      return qemu_command(service, "io_uring");
    case NbdServerKind::kQemuThreads:
      return qemu_command(service, "threads");
    case NbdServerKind::kCairn:
      break;
  }
  return {service.program,
          "drive",
          "serve",
          fmt::format("d0=file:{},direct={}", service.file, service.direct ? "on" : "off"),
          "--nbd",
          "unix:" + service.socket,
          "--cores",
          fmt::format("{}", service.cpu)};
}

Result<std::unique_ptr<NbdServerProcess>> NbdServerProcess::start(
    const std::vector<std::string>& command, const std::string& socket, int cpu) {
  Result<Process> process = Process::start_program(command, cpu);
  if (!process) return fail(process.error());
  std::unique_ptr<NbdServerProcess> server(new NbdServerProcess(std::move(*process)));
  const Time limit = now() + kStartMax;
  while (!accepts_at(socket)) {
    if (!server->process_.is_running()) return fail(Errc::kIo, "a server of the benchmark ended");
    if (now() > limit) return fail(Errc::kTimedOut, "a server of the benchmark does not accept");
    std::this_thread::yield();
  }
  return server;
}

NbdServerProcess::~NbdServerProcess() {
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
