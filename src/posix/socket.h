// SPDX-License-Identifier: Apache-2.0
// Sockets as the two real worlds make them: non-blocking, close-on-exec, errors as Results.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include "base/error.h"
#include "env/address.h"
#include "env/env.h"
#include "env/stream.h"
#include "posix/fd.h"

namespace cairn::posix {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

SocketAddress to_socket_address(const env::Address& address);
env::Address from_socket_address(const sockaddr_storage& storage, socklen_t length);
env::Address local_address(int fd);
env::Address peer_address(int fd);

// A socket of the address's family with the options applied, not yet connected.
Result<Fd> make_socket(const env::Address& address, const env::StreamOptions& options);
// A listening socket. A stale local socket path that nobody listens on is replaced.
Result<Fd> make_listener(const env::Address& at, const env::ListenOptions& options);
// What a failed connect means, as Env::connect says it.
Error connect_error(int err);
// For accepted sockets: what they do not inherit from the listener.
void apply_options(int fd, const env::StreamOptions& options);

// Whether the connection (TCP) is gone although this side has not finished: then a read that finds
// nothing met a reset, which the kernel may have told somebody else, and not the peer's end.
bool is_aborted(int fd);

// Sends a reset to the peer (TCP), or ends both directions (local), while the descriptor stays
// valid: operations in flight on it fail.
void reset_connection(int fd);

}  // namespace cairn::posix
