// SPDX-License-Identifier: Apache-2.0
#include "world/epoll/stream.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/check.h"
#include "world/posix/socket.h"

namespace cairn::epoll {

namespace {

constexpr size_t kIovecsPerCall = 64;
static_assert(sizeof(MutableBytes) == sizeof(iovec), "a span of bytes reads as an iovec");

}  // namespace

EpollStream::EpollStream(EpollCore& core, posix::Fd fd) : core_(core), fd_(std::move(fd)) {
  watched_ = core_.watch(fd_.get(), EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, *this);
}

EpollStream::~EpollStream() {
  CHECK(!has_reader() && write_ == nullptr, "no operation is in flight when a stream goes");
  for (const Buffer& chunk : chunks_)
    CHECK(chunk.empty(), "chunks return before their stream goes");
}

env::Address EpollStream::local() const { return posix::local_address(fd_.get()); }
env::Address EpollStream::peer() const { return posix::peer_address(fd_.get()); }

Result<void> EpollStream::finish() {
  CHECK(write_ == nullptr, "no write is in flight at a half close");
  finished_ = true;
  if (was_reset_) return fail(Errc::kReset, "finish");
  if (::shutdown(fd_.get(), SHUT_WR) != 0) return fail(Error::from_errno(errno, "finish"));
  return {};
}

void EpollStream::reset() {
  was_reset_ = true;
  posix::reset_connection(fd_.get());
  if (env::ReadOp* op = std::exchange(read_, nullptr)) op->complete(fail(Errc::kReset, "read"));
  if (env::ReceiveOp* op = std::exchange(receive_, nullptr)) {
    op->complete(fail(Errc::kReset, "receive"));
  }
  if (write_ != nullptr) end_write(fail(Errc::kReset, "write"));
}

void EpollStream::on_events(uint32_t events) {
  if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) ended_ = true;
  if ((events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) {
    readable_ = true;
    if (read_ != nullptr) try_read();
    if (receive_ != nullptr) try_receive();
  }
  if ((events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0) {
    writable_ = true;
    if (write_ != nullptr) try_write();
  }
}

void EpollStream::start_read(env::ReadOp& op) {
  CHECK(!has_reader(), "one read at a time");
  if (!watched_) return op.complete(fail(watched_.error()));
  if (was_reset_) return op.complete(fail(Errc::kReset, "read"));
  read_ = &op;
  if (readable_ || ended_) try_read();
}

void EpollStream::try_read() {
  const auto pieces = read_->pieces();
  ssize_t got = 0;
  size_t asked = 0;
  do {
    const posix::StreamCall call(core_, posix::StreamCall::Kind::kReceive);
    if (pieces.size() == 1) {
      asked = pieces[0].size();
      got = ::recv(fd_.get(), pieces[0].data(), asked, 0);
    } else {
      const auto some = pieces.first(std::min<size_t>(pieces.size(), UIO_MAXIOV));
      asked = total_size(some);
      msghdr message{};
      message.msg_iov = reinterpret_cast<iovec*>(const_cast<MutableBytes*>(some.data()));
      message.msg_iovlen = some.size();
      got = ::recvmsg(fd_.get(), &message, 0);
    }
  } while (got < 0 && errno == EINTR);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
    readable_ = false;
    return;
  }
  Result<size_t> result = static_cast<size_t>(got);
  core_.count_received(static_cast<size_t>(std::max<ssize_t>(got, 0)));
  if (got < 0) result = fail(loss_.note(errno, "read"));
  if (got == 0 && loss_.why()) result = fail(*loss_.why());
  if (got > 0 && static_cast<size_t>(got) < asked) readable_ = false;
  if (got <= 0) ended_ = true;
  std::exchange(read_, nullptr)->complete(std::move(result));
}

void EpollStream::cancel_read(env::ReadOp& op) {
  read_ = nullptr;
  op.complete(op.cancelled());
}

void EpollStream::start_receive(env::ReceiveOp& op) {
  CHECK(!has_reader(), "one read at a time");
  if (!watched_) return op.complete(fail(watched_.error()));
  if (was_reset_) return op.complete(fail(Errc::kReset, "receive"));
  receive_ = &op;
  if (readable_ || ended_) try_receive();
}

void EpollStream::try_receive() {
  const auto slot = std::find_if(chunks_.begin(), chunks_.end(),
                                 [](const Buffer& chunk) { return chunk.empty(); });
  if (slot == chunks_.end()) return;  // take_back() tries again
  Result<Buffer> buffer = core_.buffers().allocate(kChunkSize);
  if (!buffer) return core_.add_starved(*this);
  ssize_t got = 0;
  do {
    const posix::StreamCall call(core_, posix::StreamCall::Kind::kReceive);
    got = ::recv(fd_.get(), buffer->data(), buffer->size(), 0);
  } while (got < 0 && errno == EINTR);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
    readable_ = false;
    return;
  }
  env::ReceiveOp& op = *std::exchange(receive_, nullptr);
  if (got <= 0) ended_ = true;
  if (got < 0) return op.complete(fail(loss_.note(errno, "receive")));
  if (got == 0 && loss_.why()) return op.complete(fail(*loss_.why()));
  if (got == 0) return op.complete(env::Chunk());
  if (static_cast<size_t>(got) < buffer->size()) readable_ = false;
  *slot = std::move(*buffer);
  core_.count_received(static_cast<size_t>(got));
  const auto id = static_cast<uint64_t>(slot - chunks_.begin());
  op.complete(env::Chunk(slot->first(static_cast<size_t>(got)), this, id));
}

void EpollStream::retry_receive() {
  if (receive_ != nullptr && (readable_ || ended_)) try_receive();
}

void EpollStream::take_back(uint64_t id) {
  chunks_[id] = Buffer();
  retry_receive();
  core_.feed_starved();
}

void EpollStream::cancel_receive(env::ReceiveOp& op) {
  receive_ = nullptr;
  ListHook<StarvedTag>::unlink();
  op.complete(op.cancelled());
}

Result<void> EpollStream::can_write() const {
  CHECK(write_ == nullptr, "one write at a time");
  if (!watched_) return watched_;
  if (was_reset_) return fail(Errc::kReset, "write");
  if (finished_) return fail(Errc::kClosed, "write after finish");
  if (write_broken_) return fail(Errc::kReset, "write after a failed write");
  return {};
}

Result<size_t> EpollStream::write_now(std::span<const Bytes> from) {
  if (Result<void> can = can_write(); !can) return fail(can.error());
  if (!writable_) return 0;
  ssize_t sent = 0;
  {
    const posix::StreamCall call(core_, posix::StreamCall::Kind::kSend);
    sent = posix::send_now(fd_.get(), from);
  }
  if (sent >= 0) return static_cast<size_t>(sent);
  if (errno == EINTR) return 0;
  if (errno == EAGAIN) {
    writable_ = false;
    return 0;
  }
  write_broken_ = true;
  return fail(loss_.note(errno, "write"));
}

void EpollStream::start_write(env::WriteOp& op) {
  if (Result<void> can = can_write(); !can) return op.complete(can);
  write_ = &op;
  written_pieces_ = 0;
  written_bytes_ = 0;
  if (writable_) try_write();
}

void EpollStream::try_write() {
  const auto pieces = write_->pieces();
  for (;;) {
    std::array<iovec, kIovecsPerCall> rest;
    size_t count = 0;
    for (size_t i = written_pieces_; i < pieces.size() && count < rest.size(); ++i) {
      const Bytes piece = i == written_pieces_ ? pieces[i].subspan(written_bytes_) : pieces[i];
      if (piece.empty()) continue;
      rest[count++] = {const_cast<std::byte*>(piece.data()), piece.size()};
    }
    if (count == 0) return end_write({});
    msghdr message{};
    message.msg_iov = rest.data();
    message.msg_iovlen = count;
    ssize_t sent = 0;
    do {
      const posix::StreamCall call(core_, posix::StreamCall::Kind::kSend);
      sent = ::sendmsg(fd_.get(), &message, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    if (sent < 0) {
      if (errno != EAGAIN && errno != EWOULDBLOCK) {
        return end_write(fail(loss_.note(errno, "write")));
      }
      writable_ = false;
      return;
    }
    auto left = static_cast<size_t>(sent);
    while (written_pieces_ < pieces.size() &&
           left >= pieces[written_pieces_].size() - written_bytes_) {
      left -= pieces[written_pieces_].size() - written_bytes_;
      ++written_pieces_;
      written_bytes_ = 0;
    }
    written_bytes_ += left;
  }
}

void EpollStream::end_write(Result<void> result) {
  if (!result) write_broken_ = true;
  std::exchange(write_, nullptr)->complete(result);
}

void EpollStream::cancel_write(env::WriteOp& op) { end_write(op.cancelled()); }

EpollListener::~EpollListener() {
  CHECK(accept_ == nullptr, "no accept is in flight when a listener goes");
}

env::Address EpollListener::local() const { return posix::local_address(fd_.get()); }

void EpollListener::start_accept(env::AcceptOp& op) {
  CHECK(accept_ == nullptr, "one accept at a time");
  accept_ = &op;
  try_accept();
}

void EpollListener::try_accept() {
  for (;;) {
    posix::Fd fd(::accept4(fd_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (fd.is_open()) {
      posix::apply_options(fd.get(), options_);
      return std::exchange(accept_, nullptr)->complete(core_.connection(std::move(fd)));
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return;
    return std::exchange(accept_, nullptr)->complete(fail(Error::from_errno(errno, "accept")));
  }
}

void EpollListener::on_events(uint32_t) {
  if (accept_ != nullptr) try_accept();
}

void EpollListener::cancel_accept(env::AcceptOp& op) {
  accept_ = nullptr;
  op.complete(op.cancelled());
}

}  // namespace cairn::epoll
