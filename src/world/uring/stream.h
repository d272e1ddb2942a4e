// SPDX-License-Identifier: Apache-2.0
// Streams on io_uring: one request per read or write, a standing one for receive().
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/buffer.h"
#include "base/list.h"
#include "env/stream.h"
#include "world/posix/fd.h"
#include "world/posix/socket.h"
#include "world/uring/core.h"

namespace cairn::uring {

// A connected socket and the requests the kernel holds on it. Outlives its UringStream while a
// standing receive is being taken back.
class Socket final : public ListHook<SpinningTag>,
                     public ListHook<StarvedTag>,
                     public env::Chunk::Owner {
 public:
  Socket(UringCore& core, posix::Fd fd);

  // The stream is gone: free this when the kernel has let go.
  void orphan();
  int fd() const { return fd_.get(); }

  void start_read(env::ReadOp& op);
  void cancel_read();
  // Tries the read again. When its core falls asleep, or nothing came for long, the kernel is asked
  // to tell.
  void spin(bool falls_asleep);
  void start_write(env::WriteOp& op);
  Result<size_t> write_now(std::span<const Bytes> from);
  void cancel_write() {
    write_cancelled_ = true;
    core_.ring().cancel(writer_);
  }
  void start_receive(env::ReceiveOp& op);
  void cancel_receive(env::ReceiveOp& op);
  Result<void> finish();
  void reset();
  // A buffer may be free again.
  void resume_receiving();

 private:
  struct Part : Completion {
    explicit Part(Socket& its_socket) : socket(its_socket) {}
    Socket& socket;
  };
  struct Reader final : Part {
    using Part::Part;
    void on_complete(int32_t result, uint32_t flags) override { socket.on_read(result, flags); }
  };
  struct Writer final : Part {
    using Part::Part;
    void on_complete(int32_t result, uint32_t) override { socket.on_written(result); }
  };
  struct Receiver final : Part {
    using Part::Part;
    void on_complete(int32_t result, uint32_t flags) override { socket.on_received(result, flags); }
  };
  enum class Standing : uint8_t { kOff, kArmed, kStopping };  // the multishot receive

  ~Socket() = default;
  Result<void> can_write() const;
  bool read_now(env::ReadOp& op);
  void request_read();
  void on_read(int32_t result, uint32_t flags);
  void end_read(env::ReadOp& op, int32_t result);
  void submit_write();
  void on_written(int32_t result);
  void end_write(Result<void> result);
  // What a read that found nothing has met, if not the peer's end.
  const std::optional<Error>& loss_at_end();
  void on_received(int32_t result, uint32_t flags);
  void arm_receive();
  void stop_receive();
  void queue_chunk(BufferId id, uint32_t length);
  void deliver();
  void take_back(uint64_t id) override;
  void start_single_receive();
  void on_single_received(int32_t result);
  uint32_t chunks_out() const { return queued_ + held_; }

  UringCore& core_;
  posix::Fd fd_;
  Reader reader_{*this};
  Writer writer_{*this};
  Receiver receiver_{*this};

  env::ReadOp* read_ = nullptr;
  Time spins_since_;
  msghdr read_message_{};

  env::WriteOp* write_ = nullptr;
  msghdr write_message_{};  // what is left to send
  msghdr send_message_{};   // what the kernel has of it
  size_t write_left_ = 0;
  std::vector<iovec> write_rest_;  // after a short send

  env::ReceiveOp* receive_ = nullptr;
  Standing standing_ = Standing::kOff;
  uint32_t queued_ = 0;  // chunks that wait for receive(), linked through the buffer ring
  uint32_t held_ = 0;    // chunks the user has
  BufferId queue_head_ = 0;
  BufferId queue_tail_ = 0;
  std::vector<Buffer> single_chunks_;  // without buffer rings: the user's chunks
  Buffer single_;                      // and the one being filled

  bool poll_first_ = false;  // the last read emptied the socket: do not even try
  bool is_receiver_ = false;
  bool receive_ended_ = false;
  int32_t receive_error_ = 0;
  bool finished_ = false;
  bool write_is_copy_ = false;  // write_message_ refers to write_rest_
  bool write_cancelled_ = false;
  bool write_broken_ = false;
  bool was_reset_ = false;  // by us
  posix::Loss loss_;
  bool send_was_short_ = false;
  bool end_was_read_ = false;
  bool orphaned_ = false;
};

class UringStream final : public env::Stream {
 public:
  UringStream(UringCore& core, posix::Fd fd) : socket_(new Socket(core, std::move(fd))) {}
  ~UringStream() override { socket_->orphan(); }

  Result<size_t> write_now(std::span<const Bytes> from) override {
    return socket_->write_now(from);
  }
  Result<void> finish() override { return socket_->finish(); }
  void reset() override { socket_->reset(); }
  env::Address local() const override;
  env::Address peer() const override;

 private:
  void start_read(env::ReadOp& op) override { socket_->start_read(op); }
  void cancel_read(env::ReadOp&) override { socket_->cancel_read(); }
  void start_write(env::WriteOp& op) override { socket_->start_write(op); }
  void cancel_write(env::WriteOp&) override { socket_->cancel_write(); }
  void start_receive(env::ReceiveOp& op) override { socket_->start_receive(op); }
  void cancel_receive(env::ReceiveOp& op) override { socket_->cancel_receive(op); }

  Socket* socket_;
};

}  // namespace cairn::uring
