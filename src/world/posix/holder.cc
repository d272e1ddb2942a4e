// SPDX-License-Identifier: Apache-2.0
#include "world/posix/holder.h"

#include <sys/file.h>
#include <sys/socket.h>
#include <time.h>

#include "env/address.h"
#include "world/posix/fd.h"
#include "world/posix/socket.h"

namespace cairn::posix {

bool lock_alone(int fd, Duration timeout) {
  constexpr Duration kPause = 20_ms;
  const timespec pause{.tv_sec = 0, .tv_nsec = kPause.ns};
  for (Duration waited; ::flock(fd, LOCK_EX | LOCK_NB) != 0; waited = waited + kPause) {
    if (waited >= timeout) return false;
    ::clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, nullptr);
  }
  return true;
}

std::optional<int> listening_process(const std::string& path) {
  const Fd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!probe.is_open()) return std::nullopt;
  const SocketAddress at =
      to_socket_address({.family = env::Address::Family::kLocal, .path = path});
  if (::connect(probe.get(), at.get(), at.length) != 0) return std::nullopt;
  // Of whoever called listen().
  ucred peer{};
  socklen_t length = sizeof(peer);
  if (::getsockopt(probe.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return std::nullopt;
  return peer.pid > 0 ? std::optional<int>(peer.pid) : std::nullopt;
}

}  // namespace cairn::posix
