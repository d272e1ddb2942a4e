// SPDX-License-Identifier: Apache-2.0
#include "bench/raw_pair.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "bench/process.h"

namespace cairn::bench {

namespace {

std::unexpected<Error> fail_errno(const char* what) { return fail(Error::from_errno(errno, what)); }

Result<void> set_no_delay(const Descriptor& socket) {
  const int yes = 1;
  if (::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes)) != 0) {
    return fail_errno("set TCP_NODELAY");
  }
  return {};
}

Result<void> set_non_blocking(const Descriptor& socket) {
  const int flags = ::fcntl(socket.get(), F_GETFL);
  if (::fcntl(socket.get(), F_SETFL, flags | O_NONBLOCK) != 0) return fail_errno("set O_NONBLOCK");
  return {};
}

}  // namespace

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

Result<SocketPair> connect_pair(PairOptions options) {
  const Descriptor listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  SocketPair pair;
  pair.client = Descriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!listener.is_valid() || !pair.client.is_valid()) return fail_errno("make a socket");
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* raw_address = reinterpret_cast<sockaddr*>(&address);
  socklen_t length = sizeof(address);
  if (::bind(listener.get(), raw_address, length) != 0 || ::listen(listener.get(), 1) != 0 ||
      ::getsockname(listener.get(), raw_address, &length) != 0) {
    return fail_errno("listen on loopback");
  }
  // The backlog takes the connection before anybody accepts it.
  if (::connect(pair.client.get(), raw_address, length) != 0) return fail_errno("connect");
  pair.server = Descriptor(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!pair.server.is_valid()) return fail_errno("accept");
  for (const Descriptor* socket : {&pair.server, &pair.client}) {
    if (const Result<void> set = set_no_delay(*socket); !set) return fail(set.error());
    if (options.blocking) continue;
    if (const Result<void> set = set_non_blocking(*socket); !set) return fail(set.error());
  }
  return pair;
}

Result<void> run_pair(const Load& load, SocketPair pair, const Side& server, const Side& client) {
  Result<void> server_result;
  Result<void> client_result;
  const auto run = [](int cpu, const Side& side, Descriptor socket, Result<void>& result) {
    result = pin_to(cpu);
    if (result) result = side(std::move(socket));
  };
  {
    const std::jthread server_thread(run, load.server_cpu, std::cref(server),
                                     std::move(pair.server), std::ref(server_result));
    const std::jthread client_thread(run, load.client_cpu, std::cref(client),
                                     std::move(pair.client), std::ref(client_result));
  }
  if (!server_result) return server_result;
  return client_result;
}

}  // namespace cairn::bench
