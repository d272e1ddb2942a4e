// SPDX-License-Identifier: Apache-2.0
#include "bench/drive/vhost_server.h"

#include <fmt/format.h>

namespace cairn::bench {

namespace {

std::vector<std::string> qemu_command(const VhostService& service, std::string_view aio) {
  return {"qemu-storage-daemon", "--blockdev",
          fmt::format("driver=file,node-name=file0,filename={},aio={},cache.direct=on,locking=off",
                      service.file, aio),
          "--export",
          fmt::format("type=vhost-user-blk,id=export0,node-name=file0,writable=on,"
                      "addr.type=unix,addr.path={}",
                      service.socket)};
}

}  // namespace

std::string_view name_of(VhostServerKind kind) {
  switch (kind) {
    case VhostServerKind::kCairn:
      return "cairn";
    case VhostServerKind::kQemuUring:
      return "qsd_io_uring";
    case VhostServerKind::kQemuThreads:
      return "qsd_threads";
  }
  return "";
}

std::vector<std::string> vhost_command(VhostServerKind kind, const VhostService& service) {
  switch (kind) {
    case VhostServerKind::kQemuUring:
      return qemu_command(service, "io_uring");
    case VhostServerKind::kQemuThreads:
      return qemu_command(service, "threads");
    case VhostServerKind::kCairn:
      break;
  }
  return {service.program, "drive",
          "serve",         fmt::format("d0=file:{}", service.file),
          "--vhost-user",  service.socket,
          "--control",     "off",
          "--cores",       fmt::format("{}", service.cpu)};
}

}  // namespace cairn::bench
