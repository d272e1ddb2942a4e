// SPDX-License-Identifier: Apache-2.0
#include "world/posix/local_stream.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "env/sharing.h"
#include "world/posix/descriptors.h"
#include "world/posix/socket.h"

namespace cairn::posix {

namespace {
bool has_option(int fd, int option, int value) {
  int found = 0;
  socklen_t length = sizeof(found);
  return ::getsockopt(fd, SOL_SOCKET, option, &found, &length) == 0 && found == value;
}
}  // namespace

Result<void> check_local(int fd) {
  const bool is_local = has_option(fd, SO_DOMAIN, AF_UNIX) &&
                        has_option(fd, SO_TYPE, SOCK_STREAM) && has_option(fd, SO_ACCEPTCONN, 0);
  if (!is_local) {
    return fail(Errc::kInvalid, "what carries descriptors is a connection of a local socket");
  }
  return {};
}

LocalSocket::~LocalSocket() {
  CHECK(read_ == nullptr && write_ == nullptr && hang_up_ == nullptr,
        "no operation is in flight when a stream goes");
}

void LocalSocket::reset() {
  was_reset_ = true;
  reset_connection(fd_->get());
  if (read_ != nullptr) end_read(fail(Errc::kReset, "read"));
  if (write_ != nullptr) end_write(fail(Errc::kReset, "write"));
  if (hang_up_ != nullptr) end_hang_up(fail(Errc::kReset, "wait for the peer's leaving"));
}

void LocalSocket::start_read(env::LocalReadOp& op) {
  CHECK(read_ == nullptr, "one read at a time");
  if (was_reset_) return op.complete(fail(Errc::kReset, "read"));
  if (op.into.empty()) return op.complete(env::Received{});
  read_ = &op;
  try_read();
}

void LocalSocket::try_read() {
  if (read_ == nullptr) return;
  ReceivedFds received;
  {
    const StreamCall call(core_, StreamCall::Kind::kReceive);
    received = receive_with_fds(fd_->get(), read_->into);
  }
  if (received.bytes < 0) {
    if (errno == EAGAIN || errno == EWOULDBLOCK) return watch_->want_readable();
    return end_read(fail(Error::from_errno(errno, "read")));
  }
  const size_t count = received.fds.size();
  if (count > read_->descriptors.size()) {
    return end_read(fail(Errc::kLimit, "more descriptors than expected came, and were closed",
                         static_cast<int32_t>(count)));
  }
  for (size_t i = 0; i < count; ++i) {
    read_->descriptors[i] = core_.descriptor(std::move(received.fds[i]));
  }
  end_read(env::Received{.bytes = static_cast<size_t>(received.bytes), .descriptors = count});
}

void LocalSocket::end_read(Result<env::Received> result) {
  std::exchange(read_, nullptr)->complete(result);
}

void LocalSocket::cancel_read(env::LocalReadOp& op) { end_read(op.cancelled()); }

void LocalSocket::start_write(env::LocalWriteOp& op) {
  CHECK(write_ == nullptr, "one write at a time");
  if (was_reset_) return op.complete(fail(Errc::kReset, "write"));
  if (write_broken_) return op.complete(fail(Errc::kReset, "write after a failed write"));
  if (const Result<void> can = env::check_descriptors(op.descriptors); !can) {
    return op.complete(can);
  }
  if (op.from.empty()) return op.complete({});
  write_ = &op;
  written_ = 0;
  try_write();
}

void LocalSocket::try_write() {
  while (write_ != nullptr) {
    std::array<int, env::LocalStream::kDescriptorsMax> fds;
    size_t count = 0;
    if (written_ == 0) {
      for (const env::Descriptor* descriptor : write_->descriptors) {
        fds[count++] = static_cast<int>(descriptor->handle());
      }
    }
    ssize_t sent = 0;
    {
      const StreamCall call(core_, StreamCall::Kind::kSend);
      sent = send_with_fds(fd_->get(), write_->from.subspan(written_), std::span(fds).first(count));
    }
    if (sent < 0) {
      if (errno == EAGAIN || errno == EWOULDBLOCK) return watch_->want_writable();
      return end_write(fail(Error::from_errno(errno, "write")));
    }
    written_ += static_cast<size_t>(sent);
    if (written_ == write_->from.size()) end_write({});
  }
}

void LocalSocket::end_write(Result<void> result) {
  if (!result) write_broken_ = true;
  std::exchange(write_, nullptr)->complete(result);
}

void LocalSocket::cancel_write(env::LocalWriteOp& op) { end_write(op.cancelled()); }

void LocalSocket::start_hang_up(env::LocalHangUpOp& op) {
  CHECK(hang_up_ == nullptr, "one wait for the peer's leaving at a time");
  if (was_reset_) return op.complete(fail(Errc::kReset, "wait for the peer's leaving"));
  hang_up_ = &op;
  look_for_peer();
}

void LocalSocket::look_for_peer() {
  if (hang_up_ == nullptr) return;
  pollfd peer{.fd = fd_->get(), .events = POLLRDHUP, .revents = 0};
  core_.count_system_call();
  if (::poll(&peer, 1, 0) <= 0) return watch_->want_hang_up();
  end_hang_up({});
}

void LocalSocket::end_hang_up(Result<void> result) {
  std::exchange(hang_up_, nullptr)->complete(result);
}

void LocalSocket::cancel_hang_up(env::LocalHangUpOp& op) { end_hang_up(op.cancelled()); }

}  // namespace cairn::posix
