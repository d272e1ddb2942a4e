// SPDX-License-Identifier: Apache-2.0
#include "bench/drive/nbd_server.h"

#include <fmt/format.h>

namespace cairn::bench {

namespace {

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

}  // namespace cairn::bench
