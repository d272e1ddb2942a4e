// SPDX-License-Identifier: Apache-2.0
#include "world/posix/socket.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

namespace cairn::posix {

namespace {

int family_of(const env::Address& address) {
  switch (address.family) {
    case env::Address::Family::kIp4:
      return AF_INET;
    case env::Address::Family::kIp6:
      return AF_INET6;
    case env::Address::Family::kLocal:
      return AF_UNIX;
  }
  return AF_UNSPEC;
}

void set_option(int fd, int level, int option, int value) {
  // Options are wishes: a socket without them still works, so failure is not an error.
  (void)::setsockopt(fd, level, option, &value, sizeof(value));
}

// A peer that vanishes without a word is noticed although nothing is sent, by probes, and although
// what is sent is never acknowledged. The limit also ends a connection whose peer reads nothing for
// so long, so it is longer than the deadlines of those who serve such peers.
void end_with_peer(int fd) {
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, kProbeAfterSeconds);
  set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, kProbeEverySeconds);
  set_option(fd, IPPROTO_TCP, TCP_KEEPCNT,
             (kPeerLostSeconds - kProbeAfterSeconds) / kProbeEverySeconds);
  set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, kPeerLostSeconds * 1000);
}

// A socket file left by a process that died cannot be bound to again; one in use must stay.
void remove_stale_local(const SocketAddress& address, const std::string& path) {
  struct stat info{};
  if (::lstat(path.c_str(), &info) != 0 || !S_ISSOCK(info.st_mode)) return;
  const Fd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!probe.is_open()) return;
  const int refused = ::connect(probe.get(), address.get(), address.length);
  if (refused != 0 && errno == ECONNREFUSED) ::unlink(path.c_str());
}

}  // namespace

SocketAddress to_socket_address(const env::Address& address) {
  SocketAddress out;
  switch (address.family) {
    case env::Address::Family::kIp4: {
      auto* in = reinterpret_cast<sockaddr_in*>(&out.storage);
      in->sin_family = AF_INET;
      in->sin_port = htons(address.port);
      std::memcpy(&in->sin_addr, address.ip.data(), 4);
      out.length = sizeof(sockaddr_in);
      break;
    }
    case env::Address::Family::kIp6: {
      auto* in = reinterpret_cast<sockaddr_in6*>(&out.storage);
      in->sin6_family = AF_INET6;
      in->sin6_port = htons(address.port);
      std::memcpy(&in->sin6_addr, address.ip.data(), 16);
      out.length = sizeof(sockaddr_in6);
      break;
    }
    case env::Address::Family::kLocal: {
      auto* un = reinterpret_cast<sockaddr_un*>(&out.storage);
      un->sun_family = AF_UNIX;
      const size_t length = std::min(address.path.size(), sizeof(un->sun_path) - 1);
      std::memcpy(un->sun_path, address.path.data(), length);
      out.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length + 1);
      break;
    }
  }
  return out;
}

env::Address from_socket_address(const sockaddr_storage& storage, socklen_t length) {
  env::Address address;
  if (storage.ss_family == AF_INET) {
    const auto* in = reinterpret_cast<const sockaddr_in*>(&storage);
    std::memcpy(address.ip.data(), &in->sin_addr, 4);
    address.port = ntohs(in->sin_port);
  } else if (storage.ss_family == AF_INET6) {
    const auto* in = reinterpret_cast<const sockaddr_in6*>(&storage);
    address.family = env::Address::Family::kIp6;
    std::memcpy(address.ip.data(), &in->sin6_addr, 16);
    address.port = ntohs(in->sin6_port);
  } else if (storage.ss_family == AF_UNIX) {
    const auto* un = reinterpret_cast<const sockaddr_un*>(&storage);
    address.family = env::Address::Family::kLocal;
    if (length > offsetof(sockaddr_un, sun_path)) {
      const size_t room = length - offsetof(sockaddr_un, sun_path);
      address.path.assign(un->sun_path, ::strnlen(un->sun_path, room));
    }
  }
  return address;
}

env::Address local_address(int fd) {
  sockaddr_storage storage{};
  socklen_t length = sizeof(storage);
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &length) != 0) return {};
  return from_socket_address(storage, length);
}

env::Address peer_address(int fd) {
  sockaddr_storage storage{};
  socklen_t length = sizeof(storage);
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&storage), &length) != 0) return {};
  return from_socket_address(storage, length);
}

void apply_options(int fd, const env::StreamOptions& options) {
  end_with_peer(fd);
  if (options.no_delay) set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  if (options.send_buffer_size != 0) {
    set_option(fd, SOL_SOCKET, SO_SNDBUF, static_cast<int>(options.send_buffer_size));
  }
  if (options.receive_buffer_size != 0) {
    set_option(fd, SOL_SOCKET, SO_RCVBUF, static_cast<int>(options.receive_buffer_size));
  }
}

Result<Fd> make_socket(const env::Address& address, const env::StreamOptions& options) {
  Fd fd(::socket(family_of(address), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.is_open()) return fail(Error::from_errno(errno, "make a socket"));
  apply_options(fd.get(), options);
  return fd;
}

Error connect_error(int err) {
  // A local socket's missing file is nobody at the address, as a refused port is.
  if (err == ENOENT) return {Errc::kUnreachable, "connect", err};
  return Error::from_errno(err, "connect");
}

Result<Fd> make_listener(const env::Address& at, const env::ListenOptions& options) {
  Result<Fd> fd = make_socket(at, options.stream);
  if (!fd) return fd;
  const SocketAddress address = to_socket_address(at);
  if (at.family == env::Address::Family::kLocal) {
    remove_stale_local(address, at.path);
  } else {
    set_option(fd->get(), SOL_SOCKET, SO_REUSEADDR, 1);
    if (options.share_port) set_option(fd->get(), SOL_SOCKET, SO_REUSEPORT, 1);
  }
  if (at.family == env::Address::Family::kIp6) set_option(fd->get(), IPPROTO_IPV6, IPV6_V6ONLY, 1);
  if (::bind(fd->get(), address.get(), address.length) != 0) {
    return fail(Error::from_errno(errno, "listen at the address"));
  }
  if (::listen(fd->get(), options.backlog) != 0) {
    return fail(Error::from_errno(errno, "listen at the address"));
  }
  return fd;
}

ssize_t send_now(int fd, std::span<const Bytes> pieces) {
  static_assert(sizeof(Bytes) == sizeof(iovec), "a span of bytes reads as an iovec");
  msghdr message{};
  message.msg_iov = reinterpret_cast<iovec*>(const_cast<Bytes*>(pieces.data()));
  message.msg_iovlen = std::min<size_t>(pieces.size(), UIO_MAXIOV);
  return ::sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

bool is_aborted(int fd) {
  tcp_info info{};
  socklen_t length = sizeof(info);
  return ::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) == 0 &&
         info.tcpi_state == TCP_CLOSE;
}

void reset_connection(int fd) {
  sockaddr nowhere{};
  nowhere.sa_family = AF_UNSPEC;
  // Dissolving a TCP association sends RST and fails what waits on it; local sockets cannot.
  if (::connect(fd, &nowhere, sizeof(nowhere)) != 0) ::shutdown(fd, SHUT_RDWR);
}

}  // namespace cairn::posix
