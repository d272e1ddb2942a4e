// SPDX-License-Identifier: Apache-2.0
// Ports and network namespaces.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "world/machine/facts.h"

namespace cairn::machine {

namespace {

// errno of listening on the port at every address; 0 when it is free.
int listen_error(uint16_t port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return errno;
  const int yes = 1;  // without it, connections that ended a minute ago still hold the port
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  const bool free = ::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0 &&
                    ::listen(fd, 1) == 0;
  const int error = free ? 0 : errno;
  ::close(fd);
  return error;
}

}  // namespace

std::vector<PortFacts> gather_ports() {
  std::vector<PortFacts> ports = {
      {4420, "NVMe/TCP"}, {8009, "NVMe discovery"}, {8080, "console and metrics"}};
  for (PortFacts& facts : ports) facts.error = listen_error(facts.port);
  return ports;
}

NamespaceRight gather_network_namespaces() {
  // In a child, because a process cannot leave the namespace it has tried.
  const pid_t child = ::fork();
  if (child < 0) return NamespaceRight::kNone;
  if (child == 0) {
    NamespaceRight right = NamespaceRight::kNone;
    if (::unshare(CLONE_NEWNET) == 0) {
      right = NamespaceRight::kYes;
    } else if (::unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0) {
      right = NamespaceRight::kWithUserNamespace;
    }
    ::_exit(static_cast<int>(right));
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return NamespaceRight::kNone;
  }
  if (!WIFEXITED(status)) return NamespaceRight::kNone;
  return static_cast<NamespaceRight>(WEXITSTATUS(status));
}

}  // namespace cairn::machine
