// SPDX-License-Identifier: Apache-2.0
// Sockets as the two real worlds make them: non-blocking, close-on-exec, errors as Results.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <optional>
#include <span>

#include "base/bytes.h"
#include "base/error.h"
#include "env/address.h"
#include "env/env.h"
#include "env/stream.h"
#include "world/posix/fd.h"

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

// A connection (TCP) ends with kTimedOut when its peer has been silent for so long: it answers no
// probe, or does not take what is sent.
inline constexpr int kPeerLostSeconds = 120;
inline constexpr int kProbeAfterSeconds = 30;
inline constexpr int kProbeEverySeconds = 10;

// A socket of the address's family with the options applied, not yet connected.
Result<Fd> make_socket(const env::Address& address, const env::StreamOptions& options);
// A listening socket. A stale local socket path that nobody listens on is replaced.
Result<Fd> make_listener(const env::Address& at, const env::ListenOptions& options);
// What a failed connect means, as Env::connect says it.
Error connect_error(int err);
// For accepted sockets: what they do not inherit from the listener.
void apply_options(int fd, const env::StreamOptions& options);

// Why a connection is lost. The kernel tells it once, to whichever read or write comes first; after
// that reads see what looks like the peer's end. So a stream keeps one of these.
class Loss {
 public:
  // What the errno of a failed read or write means.
  Error note(int err, const char* what) {
    const Error error = Error::from_errno(err, what);
    // EPIPE tells a writer that the peer's end came before the loss: for reads it stays an end.
    if (err != EPIPE && !why_) why_ = error;
    return error;
  }
  // What a read that found nothing has met, if not the peer's end.
  const std::optional<Error>& why() const { return why_; }

 private:
  std::optional<Error> why_;
};

// Whether a connection (TCP) that this side has not finished is gone.
bool is_aborted(int fd);

// One sendmsg that does not wait: the bytes it took, or -1 and errno.
ssize_t send_now(int fd, std::span<const Bytes> pieces);

// Sends a reset to the peer (TCP), or ends both directions (local), while the descriptor stays
// valid: operations in flight on it fail.
void reset_connection(int fd);

}  // namespace cairn::posix
