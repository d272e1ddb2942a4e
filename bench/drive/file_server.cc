// SPDX-License-Identifier: Apache-2.0
#include "bench/drive/file_server.h"

#include <fmt/format.h>

namespace cairn::bench {

namespace {

std::string_view aio_of(FileServer server) {
  return server == FileServer::kQemuUring ? "io_uring" : "threads";
}

}  // namespace

std::string_view name_of(FileServer server) {
  switch (server) {
    case FileServer::kCairn:
      return "cairn";
    case FileServer::kQemuUring:
      return "qsd_io_uring";
    case FileServer::kQemuThreads:
      return "qsd_threads";
  }
  return "";
}

std::vector<std::string> nbd_command(FileServer server, const FileService& service) {
  const char* direct = service.direct ? "on" : "off";
  if (server == FileServer::kCairn) {
    return {service.program,
            "serve",
            fmt::format("d0=file:{},direct={}", service.file, direct),
            "--nbd",
            "unix:" + service.socket,
            "--cores",
            fmt::format("{}", service.cpu)};
  }
  return {"qemu-storage-daemon",
          "--blockdev",
          fmt::format("driver=file,node-name=file0,filename={},aio={},cache.direct={}",
                      service.file, aio_of(server), direct),
          "--nbd-server",
          fmt::format("addr.type=unix,addr.path={},max-connections=64", service.socket),
          "--export",
          "type=nbd,id=export0,node-name=file0,name=d0,writable=on"};
}

std::vector<std::string> vhost_command(FileServer server, const FileService& service) {
  if (server == FileServer::kCairn) {
    return {service.program, "serve",        fmt::format("d0=file:{}", service.file),
            "--vhost-user",  service.socket, "--control",
            "off",           "--cores",      fmt::format("{}", service.cpu)};
  }
  return {"qemu-storage-daemon", "--blockdev",
          fmt::format("driver=file,node-name=file0,filename={},aio={},cache.direct=on,locking=off",
                      service.file, aio_of(server)),
          "--export",
          fmt::format("type=vhost-user-blk,id=export0,node-name=file0,writable=on,"
                      "addr.type=unix,addr.path={}",
                      service.socket)};
}

}  // namespace cairn::bench
