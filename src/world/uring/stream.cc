// SPDX-License-Identifier: Apache-2.0
#include "world/uring/stream.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/check.h"
#include "world/posix/socket.h"

namespace cairn::uring {

namespace {

constexpr size_t kSingleChunkSize = 65536;
constexpr size_t kSingleChunksMax = 8;
constexpr size_t kBytesPerRequest = size_t{1} << 30;  // the request's length has 32 bits
static_assert(sizeof(MutableBytes) == sizeof(iovec), "a span of bytes reads as an iovec");

}  // namespace

env::Address UringStream::local() const { return posix::local_address(socket_->fd()); }
env::Address UringStream::peer() const { return posix::peer_address(socket_->fd()); }

Socket::Socket(UringCore& core, posix::Fd fd) : core_(core), fd_(std::move(fd)) {
  single_chunks_.resize(core_.has_multishot() ? 0 : kSingleChunksMax);
}

void Socket::orphan() {
  CHECK(read_ == nullptr && write_ == nullptr && receive_ == nullptr,
        "no operation is in flight when a stream goes");
  CHECK(held_ == 0, "chunks return before their stream goes");
  if (is_receiver_) core_.remove_receiver();
  orphaned_ = true;
  while (queued_ > 0) {
    --queued_;
    core_.buffer_ring()->give(
        std::exchange(queue_head_, core_.buffer_ring()->link(queue_head_).next));
  }
  if (standing_ == Standing::kOff) {
    delete this;
  } else {
    stop_receive();
  }
}

Result<void> Socket::finish() {
  CHECK(write_ == nullptr, "no write is in flight at a half close");
  finished_ = true;
  if (was_reset_) return fail(Errc::kReset, "finish");
  if (::shutdown(fd_.get(), SHUT_WR) != 0) return fail(Error::from_errno(errno, "finish"));
  return {};
}

const std::optional<Error>& Socket::loss_at_end() {
  // A send that had sent a part keeps its error to itself: it only comes back short.
  const bool may_be_untold = send_was_short_ && !finished_ && !end_was_read_;
  if (!loss_.why() && may_be_untold && posix::is_aborted(fd_.get())) {
    [[maybe_unused]] const Error untold = loss_.note(ECONNRESET, "read");
  }
  end_was_read_ = !loss_.why();
  return loss_.why();
}

void Socket::reset() {
  was_reset_ = true;
  // What is in flight fails by itself now; see the uses of was_reset_.
  posix::reset_connection(fd_.get());
  if (receive_ != nullptr && single_.empty()) {
    std::exchange(receive_, nullptr)->complete(fail(Errc::kReset, "receive"));
  }
}

// --- read ---------------------------------------------------------------------------------------

void Socket::start_read(env::ReadOp& op) {
  CHECK(read_ == nullptr && receive_ == nullptr, "one read at a time");
  if (was_reset_) return op.complete(fail(Errc::kReset, "read"));
  // More is thought to be there: a call of its own takes it, unless others are about to submit.
  if (!poll_first_ && core_.is_quiet() && read_now(op)) return;
  read_ = &op;
  spins_since_ = core_.now();
  if (!core_.add_spinning(*this)) request_read();
}

void Socket::spin(bool falls_asleep) {
  constexpr Duration kSpinMax = 200_us;  // an answer may take so long; an unused socket takes more
  env::ReadOp& op = *std::exchange(read_, nullptr);
  if (was_reset_) return op.complete(fail(Errc::kReset, "read"));
  if (read_now(op)) return;
  read_ = &op;
  if (falls_asleep || core_.now() - spins_since_ > kSpinMax || !core_.add_spinning(*this)) {
    request_read();
  }
}

void Socket::cancel_read() {
  if (!ListHook<SpinningTag>::is_linked()) return core_.ring().cancel(reader_);
  core_.remove_spinning(*this);
  env::ReadOp& op = *std::exchange(read_, nullptr);
  op.complete(op.cancelled());
}

void Socket::request_read() {
  env::ReadOp& op = *read_;
  core_.ring().request(&reader_, [&](io_uring_sqe* sqe) {
    const auto pieces = op.pieces();
    if (pieces.size() == 1) {
      const size_t length = std::min(pieces[0].size(), kBytesPerRequest);
      ::io_uring_prep_recv(sqe, fd_.get(), pieces[0].data(), length, 0);
    } else {
      read_message_.msg_iov = reinterpret_cast<iovec*>(const_cast<MutableBytes*>(pieces.data()));
      read_message_.msg_iovlen = std::min<size_t>(pieces.size(), UIO_MAXIOV);
      ::io_uring_prep_recvmsg(sqe, fd_.get(), &read_message_, 0);
    }
    if (poll_first_) sqe->ioprio |= IORING_RECVSEND_POLL_FIRST;
  });
}

bool Socket::read_now(env::ReadOp& op) {
  msghdr message{};
  message.msg_iov = reinterpret_cast<iovec*>(const_cast<MutableBytes*>(op.pieces().data()));
  message.msg_iovlen = std::min<size_t>(op.pieces().size(), UIO_MAXIOV);
  ssize_t got = 0;
  {
    const posix::StreamCall call(core_, posix::StreamCall::Kind::kReceive);
    got = ::recvmsg(fd_.get(), &message, MSG_DONTWAIT);
  }
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
    poll_first_ = errno == EAGAIN;
    return false;
  }
  poll_first_ = got > 0 && static_cast<size_t>(got) < total_size(op.pieces());
  end_read(op, got < 0 ? -errno : static_cast<int32_t>(got));
  return true;
}

void Socket::on_read(int32_t result, uint32_t flags) {
  if (!single_.empty()) return on_single_received(result);
  env::ReadOp& op = *std::exchange(read_, nullptr);
  if (result == -EINTR && !was_reset_) return start_read(op);
  poll_first_ = result > 0 && (flags & IORING_CQE_F_SOCK_NONEMPTY) == 0;
  end_read(op, result);
}

void Socket::end_read(env::ReadOp& op, int32_t result) {
  if (was_reset_) return op.complete(fail(Errc::kReset, "read"));
  if (result == 0 && loss_at_end()) return op.complete(fail(*loss_.why()));
  core_.count_received(static_cast<size_t>(std::max(result, 0)));
  if (result >= 0) return op.complete(static_cast<size_t>(result));
  if (result == -ECANCELED) return op.complete(op.cancelled());
  op.complete(fail(loss_.note(-result, "read")));
}

// --- write --------------------------------------------------------------------------------------

Result<void> Socket::can_write() const {
  CHECK(write_ == nullptr, "one write at a time");
  if (was_reset_) return fail(Errc::kReset, "write");
  if (finished_) return fail(Errc::kClosed, "write after finish");
  if (write_broken_) return fail(Errc::kReset, "write after a failed write");
  return {};
}

Result<size_t> Socket::write_now(std::span<const Bytes> from) {
  if (Result<void> can = can_write(); !can) return fail(can.error());
  ssize_t sent = 0;
  {
    const posix::StreamCall call(core_, posix::StreamCall::Kind::kSend);
    sent = posix::send_now(fd_.get(), from);
  }
  if (sent >= 0) {
    send_was_short_ = send_was_short_ || static_cast<size_t>(sent) < total_size(from);
    return static_cast<size_t>(sent);
  }
  if (errno == EAGAIN || errno == EINTR) return 0;
  write_broken_ = true;
  return fail(loss_.note(errno, "write"));
}

void Socket::start_write(env::WriteOp& op) {
  if (Result<void> can = can_write(); !can) return op.complete(can);
  write_left_ = total_size(op.pieces());
  if (write_left_ == 0) return op.complete({});
  write_ = &op;
  write_message_.msg_iov = reinterpret_cast<iovec*>(const_cast<Bytes*>(op.pieces().data()));
  write_message_.msg_iovlen = op.pieces().size();
  write_is_copy_ = false;
  write_cancelled_ = false;
  if (!core_.is_quiet()) return submit_write();
  // Nobody else is about to submit: a call of its own is cheaper than a turn of the ring, and the
  // bytes leave now. In company, sends go out together.
  ssize_t sent = 0;
  {
    const posix::StreamCall call(core_, posix::StreamCall::Kind::kSend);
    sent = ::sendmsg(fd_.get(), &write_message_, MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  if (sent < 0 && (errno == EAGAIN || errno == EMSGSIZE)) return submit_write();
  on_written(sent < 0 ? -errno : static_cast<int32_t>(sent));
}

void Socket::submit_write() {
  // MSG_WAITALL: the kernel goes on after a short send by itself (5.19; before, we do).
  constexpr int kFlags = MSG_NOSIGNAL | MSG_WAITALL;
  core_.count_send();
  core_.ring().request(&writer_, [&](io_uring_sqe* sqe) {
    if (write_message_.msg_iovlen == 1) {
      const iovec& only = *write_message_.msg_iov;
      ::io_uring_prep_send(sqe, fd_.get(), only.iov_base, std::min(only.iov_len, kBytesPerRequest),
                           kFlags);
    } else {
      // More pieces than the kernel takes at once go in several sends, seen as short ones.
      send_message_ = write_message_;
      send_message_.msg_iovlen = std::min<size_t>(write_message_.msg_iovlen, UIO_MAXIOV);
      ::io_uring_prep_sendmsg(sqe, fd_.get(), &send_message_, kFlags);
    }
  });
}

void Socket::on_written(int32_t result) {
  if (result == -ECANCELED && !was_reset_) return end_write(write_->cancelled());
  if (was_reset_) return end_write(fail(Errc::kReset, "write"));
  if (result < 0 && result != -EINTR) return end_write(fail(loss_.note(-result, "write")));
  auto sent = static_cast<size_t>(std::max(result, 0));
  write_left_ -= sent;
  if (write_left_ == 0) return end_write({});
  send_was_short_ = true;
  // The kernel ends a cancelled send that has sent a part with the size of that part.
  if (write_cancelled_) return end_write(write_->cancelled());
  // Short: go on with a copy of the list that begins where the kernel stopped.
  if (!write_is_copy_) {
    write_is_copy_ = true;
    write_rest_.assign(write_message_.msg_iov, write_message_.msg_iov + write_message_.msg_iovlen);
    write_message_.msg_iov = write_rest_.data();
  }
  while (sent >= write_message_.msg_iov->iov_len) {
    sent -= write_message_.msg_iov->iov_len;
    ++write_message_.msg_iov;
    --write_message_.msg_iovlen;
  }
  iovec& first = *write_message_.msg_iov;
  first.iov_base = static_cast<char*>(first.iov_base) + sent;
  first.iov_len -= sent;
  submit_write();
}

void Socket::end_write(Result<void> result) {
  if (!result) write_broken_ = true;
  std::exchange(write_, nullptr)->complete(result);
}

// --- receive ------------------------------------------------------------------------------------

void Socket::start_receive(env::ReceiveOp& op) {
  CHECK(read_ == nullptr && receive_ == nullptr, "one read at a time");
  if (was_reset_) return op.complete(fail(Errc::kReset, "receive"));
  receive_ = &op;
  if (!core_.has_multishot()) return start_single_receive();
  if (!is_receiver_) {
    is_receiver_ = true;
    core_.add_receiver();
  }
  if (queued_ > 0 || receive_ended_) return deliver();
  resume_receiving();
}

void Socket::cancel_receive(env::ReceiveOp& op) {
  if (!single_.empty()) return core_.ring().cancel(reader_);
  ListHook<StarvedTag>::unlink();
  receive_ = nullptr;
  op.complete(op.cancelled());
}

void Socket::resume_receiving() {
  if (!core_.has_multishot()) {
    if (receive_ != nullptr && single_.empty()) start_single_receive();
    return;
  }
  const bool room = chunks_out() < core_.chunks_per_stream();
  if (standing_ == Standing::kOff && room && !receive_ended_ && !was_reset_ && !orphaned_) {
    arm_receive();
  }
}

void Socket::arm_receive() {
  standing_ = Standing::kArmed;
  core_.ring().request(&receiver_, [&](io_uring_sqe* sqe) {
    ::io_uring_prep_recv_multishot(sqe, fd_.get(), nullptr, 0, 0);
    sqe->flags |= IOSQE_BUFFER_SELECT;
    sqe->buf_group = BufferRing::kGroup;
  });
}

void Socket::stop_receive() {
  if (standing_ != Standing::kArmed) return;
  standing_ = Standing::kStopping;
  core_.ring().cancel(receiver_);
}

void Socket::on_received(int32_t result, uint32_t flags) {
  const bool over = (flags & IORING_CQE_F_MORE) == 0;
  if (over) standing_ = Standing::kOff;
  if ((flags & IORING_CQE_F_BUFFER) != 0) {
    const auto id = static_cast<BufferId>(flags >> IORING_CQE_BUFFER_SHIFT);
    if (orphaned_ || result <= 0) {
      core_.buffer_ring()->give(id);
    } else {
      core_.count_received(static_cast<size_t>(result));
      queue_chunk(id, static_cast<uint32_t>(result));
    }
  }
  if (orphaned_) {
    if (over) delete this;
    return;
  }
  if (over && result == -ENOBUFS) {
    if (core_.buffer_ring()->give_more()) {
      resume_receiving();
    } else {
      core_.add_starved(*this);
    }
  } else if (over && (result == 0 || (result < 0 && result != -ECANCELED && result != -EINTR))) {
    receive_ended_ = true;
    receive_error_ = result;
  } else if (over) {
    resume_receiving();
  } else if (chunks_out() >= core_.chunks_per_stream()) {
    stop_receive();
  }
  if (receive_ != nullptr && (queued_ > 0 || receive_ended_)) deliver();
}

void Socket::queue_chunk(BufferId id, uint32_t length) {
  core_.buffer_ring()->link(id).length = length;
  if (queued_ == 0) {
    queue_head_ = id;
  } else {
    core_.buffer_ring()->link(queue_tail_).next = id;
  }
  queue_tail_ = id;
  ++queued_;
}

void Socket::deliver() {
  env::ReceiveOp& op = *std::exchange(receive_, nullptr);
  if (queued_ > 0) {
    const BufferId id = queue_head_;
    const BufferRing::Link& link = core_.buffer_ring()->link(id);
    queue_head_ = link.next;
    --queued_;
    ++held_;
    return op.complete(env::Chunk(core_.buffer_ring()->bytes(id, link.length), this, id));
  }
  if (receive_error_ == 0 && loss_at_end()) return op.complete(fail(*loss_.why()));
  if (receive_error_ == 0) return op.complete(env::Chunk());
  op.complete(fail(loss_.note(-receive_error_, "receive")));
}

void Socket::take_back(uint64_t id) {
  --held_;
  if (!core_.has_multishot()) {
    single_chunks_[id] = Buffer();
  } else {
    core_.buffer_ring()->give(static_cast<BufferId>(id));
  }
  resume_receiving();
  core_.feed_starved();
}

// Without buffer rings: one request, one buffer of our own, at a time.

void Socket::start_single_receive() {
  if (held_ == kSingleChunksMax) return;  // take_back() tries again
  Result<Buffer> buffer = core_.buffers().allocate(kSingleChunkSize);
  if (!buffer) return core_.add_starved(*this);
  single_ = std::move(*buffer);
  core_.ring().request(&reader_, [&](io_uring_sqe* sqe) {
    ::io_uring_prep_recv(sqe, fd_.get(), single_.data(), single_.size(), 0);
  });
}

void Socket::on_single_received(int32_t result) {
  Buffer buffer = std::move(single_);
  env::ReceiveOp& op = *std::exchange(receive_, nullptr);
  if (was_reset_) return op.complete(fail(Errc::kReset, "receive"));
  if (result == -ECANCELED) return op.complete(op.cancelled());
  if (result < 0) return op.complete(fail(loss_.note(-result, "receive")));
  if (result == 0 && loss_at_end()) return op.complete(fail(*loss_.why()));
  if (result == 0) return op.complete(env::Chunk());
  const auto slot = std::find_if(single_chunks_.begin(), single_chunks_.end(),
                                 [](const Buffer& chunk) { return chunk.empty(); });
  CHECK(slot != single_chunks_.end());
  *slot = std::move(buffer);
  ++held_;
  core_.count_received(static_cast<size_t>(result));
  const auto id = static_cast<uint64_t>(slot - single_chunks_.begin());
  op.complete(env::Chunk(slot->first(static_cast<size_t>(result)), this, id));
}

}  // namespace cairn::uring
