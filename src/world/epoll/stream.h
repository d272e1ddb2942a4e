// SPDX-License-Identifier: Apache-2.0
// Streams and listeners on non-blocking sockets, woken by epoll.
#pragma once

#include <array>
#include <cstdint>

#include "base/buffer.h"
#include "base/list.h"
#include "env/stream.h"
#include "world/epoll/core.h"
#include "world/posix/fd.h"
#include "world/posix/socket.h"

namespace cairn::epoll {

// Tries the system call first and waits for an edge only after EAGAIN, or after a short read,
// which on a stream means the same (epoll(7)).
class EpollStream final : public env::Stream,
                          public Source,
                          public env::Chunk::Owner,
                          public ListHook<StarvedTag> {
 public:
  EpollStream(EpollCore& core, posix::Fd fd);
  ~EpollStream() override;

  Result<size_t> write_now(std::span<const Bytes> from) override;
  Result<void> finish() override;
  void reset() override;
  env::Address local() const override;
  env::Address peer() const override;

  void retry_receive();

 private:
  static constexpr size_t kChunkSize = 65536;
  static constexpr size_t kChunksHeldMax = 8;  // then the peer has to wait

  void start_read(env::ReadOp& op) override;
  void cancel_read(env::ReadOp& op) override;
  void start_write(env::WriteOp& op) override;
  void cancel_write(env::WriteOp& op) override;
  void start_receive(env::ReceiveOp& op) override;
  void cancel_receive(env::ReceiveOp& op) override;
  void on_events(uint32_t events) override;
  void take_back(uint64_t id) override;

  Result<void> can_write() const;
  void try_read();
  void try_receive();
  void try_write();
  void end_write(Result<void> result);
  bool has_reader() const { return read_ != nullptr || receive_ != nullptr; }

  EpollCore& core_;
  posix::Fd fd_;
  Result<void> watched_;

  env::ReadOp* read_ = nullptr;
  env::ReceiveOp* receive_ = nullptr;
  env::WriteOp* write_ = nullptr;
  size_t written_pieces_ = 0;  // of write_: whole pieces sent,
  size_t written_bytes_ = 0;   // and bytes of the next one
  std::array<Buffer, kChunksHeldMax> chunks_;

  bool readable_ = true;  // worth a try; false until the next edge
  bool ended_ = false;    // the peer is known to have finished or failed: always worth a try
  bool writable_ = true;
  bool finished_ = false;  // by us
  bool write_broken_ = false;
  bool was_reset_ = false;  // by us
  posix::Loss loss_;
};

class EpollListener final : public env::Listener, public Source {
 public:
  EpollListener(EpollCore& core, posix::Fd fd, const env::StreamOptions& options)
      : core_(core), fd_(std::move(fd)), options_(options) {}
  ~EpollListener() override;

  Result<void> watch() { return core_.watch(fd_.get(), EPOLLIN | EPOLLET, *this); }
  env::Address local() const override;

 private:
  void start_accept(env::AcceptOp& op) override;
  void cancel_accept(env::AcceptOp& op) override;
  void on_events(uint32_t events) override;
  void try_accept();

  EpollCore& core_;
  posix::Fd fd_;
  env::StreamOptions options_;
  env::AcceptOp* accept_ = nullptr;
};

}  // namespace cairn::epoll
