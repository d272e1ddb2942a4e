// SPDX-License-Identifier: Apache-2.0
// Byte streams: TCP and local sockets, or their simulation. Contract: docs/env.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "base/bytes.h"
#include "base/error.h"
#include "env/address.h"
#include "task/operation.h"

namespace cairn::env {

class Stream;
class Listener;
class Env;

// Bytes that arrived, still in the back end's memory. Giving chunks back keeps the stream flowing:
// while a stream's chunks are held, its peer is eventually slowed down. Returned by destruction,
// on the stream's core, before the stream goes.
class Chunk {
 public:
  // Who lent the memory.
  class Owner {
   public:
    virtual void take_back(uint64_t id) = 0;

   protected:
    ~Owner() = default;
  };

  Chunk() = default;
  Chunk(Bytes bytes, Owner* owner, uint64_t id) : bytes_(bytes), owner_(owner), id_(id) {}
  Chunk(Chunk&& other) noexcept
      : bytes_(std::exchange(other.bytes_, {})),
        owner_(std::exchange(other.owner_, nullptr)),
        id_(other.id_) {}
  Chunk& operator=(Chunk&& other) noexcept {
    if (this != &other) {
      release();
      bytes_ = std::exchange(other.bytes_, {});
      owner_ = std::exchange(other.owner_, nullptr);
      id_ = other.id_;
    }
    return *this;
  }
  ~Chunk() { release(); }

  // Empty: the peer has finished and everything was received.
  Bytes bytes() const { return bytes_; }
  bool empty() const { return bytes_.empty(); }
  void release() {
    if (Owner* owner = std::exchange(owner_, nullptr)) owner->take_back(id_);
    bytes_ = {};
  }

 private:
  Bytes bytes_;
  Owner* owner_ = nullptr;
  uint64_t id_ = 0;
};

class ReadOp final : public task::Operation<size_t> {
 public:
  ReadOp(Stream& stream, MutableBytes piece, task::CancelToken token)
      : Operation(token), stream_(stream), piece_(piece), pieces_(&piece_, 1) {}
  ReadOp(Stream& stream, std::span<const MutableBytes> pieces, task::CancelToken token)
      : Operation(token), stream_(stream), pieces_(pieces) {}

  std::span<const MutableBytes> pieces() const { return pieces_; }
  using Operation::cancelled;

 private:
  void start() override;
  void cancel() override;
  Stream& stream_;
  MutableBytes piece_;
  std::span<const MutableBytes> pieces_;
};

class WriteOp final : public task::Operation<void> {
 public:
  WriteOp(Stream& stream, Bytes piece, task::CancelToken token)
      : Operation(token), stream_(stream), piece_(piece), pieces_(&piece_, 1) {}
  WriteOp(Stream& stream, std::span<const Bytes> pieces, task::CancelToken token)
      : Operation(token), stream_(stream), pieces_(pieces) {}

  std::span<const Bytes> pieces() const { return pieces_; }
  using Operation::cancelled;

 private:
  void start() override;
  void cancel() override;
  Stream& stream_;
  Bytes piece_;
  std::span<const Bytes> pieces_;
};

class ReceiveOp final : public task::Operation<Chunk> {
 public:
  ReceiveOp(Stream& stream, task::CancelToken token) : Operation(token), stream_(stream) {}
  using Operation::cancelled;

 private:
  void start() override;
  void cancel() override;
  Stream& stream_;
};

// One end of a connection, on one core. At most one read or receive and one write at a time; the
// two directions are independent. Destroying it closes the connection in good order (bytes already
// written still go out), unless the peer sent what was never read: then it may see kReset, as with
// TCP. No operation may be in flight then.
class Stream {
 public:
  virtual ~Stream() = default;

  // Fills `into` with what is there, at least one byte; waits when there is none. 0: the peer has
  // finished and everything was read (also when `into` is empty). kReset and, when the peer stays
  // silent for too long, kTimedOut: for this and all later reads. kCancelled, kTimedOut: by the
  // token. The memory, and the array of pieces, is lent until completion. Cancelling loses no
  // bytes.
  ReadOp read(MutableBytes into, task::CancelToken token = {}) { return {*this, into, token}; }
  ReadOp read(std::span<const MutableBytes> into, task::CancelToken token = {}) {
    return {*this, into, token};
  }

  // What is there, in the back end's own memory; waits when there is nothing. An empty chunk: the
  // peer has finished. Same errors as read. A stream is read by read() or by receive(), not both.
  ReceiveOp receive(task::CancelToken token = {}) { return {*this, token}; }

  // Done when every byte is accepted for sending; the memory and the array of pieces is lent until
  // then. Waits while the peer does not read. kReset, kClosed (after finish), kTimedOut,
  // kCancelled; after any error an unknown prefix was sent and later writes fail too. A token that
  // was requested before the call is no such error: nothing was sent.
  WriteOp write(Bytes from, task::CancelToken token = {}) { return {*this, from, token}; }
  WriteOp write(std::span<const Bytes> from, task::CancelToken token = {}) {
    return {*this, from, token};
  }

  // Accepts what can be accepted without waiting: so many bytes from the front, perhaps none, even
  // where there is room. No write may be in flight, and the memory is free when it returns. Same
  // errors as write.
  virtual Result<size_t> write_now(std::span<const Bytes> from);

  // Half close, once: the peer reads the end after all bytes written; this side can go on reading.
  // No write may be in flight. kReset when the connection is gone.
  virtual Result<void> finish() = 0;

  // Ends the connection at once, in both directions; unsent bytes are lost, the peer sees kReset
  // (at a local socket: the end). Operations in flight and later ones complete with kReset.
  virtual void reset() = 0;

  virtual Address local() const = 0;
  virtual Address peer() const = 0;

 protected:
  friend class ReadOp;
  friend class WriteOp;
  friend class ReceiveOp;
  // For back ends. Each started operation is completed once; cancel_* asks for that to be soon.
  virtual void start_read(ReadOp& op) = 0;
  virtual void cancel_read(ReadOp& op) = 0;
  virtual void start_write(WriteOp& op) = 0;
  virtual void cancel_write(WriteOp& op) = 0;
  virtual void start_receive(ReceiveOp& op) = 0;
  virtual void cancel_receive(ReceiveOp& op) = 0;
};

// A connection that belongs to no core yet: made by accept or connect, turned into a Stream by
// Env::open on the core that will use it. Movable between cores of one world. Closed by
// destruction.
class Connection {
 public:
  class Owner {
   public:
    virtual void close_connection(int64_t handle) = 0;

   protected:
    ~Owner() = default;
  };

  Connection() = default;
  Connection(Owner* owner, int64_t handle) : owner_(owner), handle_(handle) {}
  Connection(Connection&& other) noexcept
      : owner_(std::exchange(other.owner_, nullptr)), handle_(other.handle_) {}
  Connection& operator=(Connection&& other) noexcept {
    if (this != &other) {
      close();
      owner_ = std::exchange(other.owner_, nullptr);
      handle_ = other.handle_;
    }
    return *this;
  }
  ~Connection() { close(); }

  bool is_valid() const { return owner_ != nullptr; }
  // For back ends: takes the handle out.
  int64_t take() {
    owner_ = nullptr;
    return handle_;
  }

 private:
  void close() {
    if (Owner* owner = std::exchange(owner_, nullptr)) owner->close_connection(handle_);
  }
  Owner* owner_ = nullptr;
  int64_t handle_ = -1;
};

class AcceptOp final : public task::Operation<Connection> {
 public:
  AcceptOp(Listener& listener, task::CancelToken token) : Operation(token), listener_(listener) {}
  using Operation::cancelled;

 private:
  void start() override;
  void cancel() override;
  Listener& listener_;
};

// Waits for connections on one core. At most one accept at a time. Destroying it refuses further
// connections; no accept may be in flight then.
class Listener {
 public:
  virtual ~Listener() = default;

  // The next connection. kLimit: out of descriptors; wait a moment and go on. kCancelled,
  // kTimedOut: by the token; no connection is lost. Others are final.
  AcceptOp accept(task::CancelToken token = {}) { return {*this, token}; }
  // With the port that was chosen when 0 was asked for.
  virtual Address local() const = 0;

 protected:
  friend class AcceptOp;
  virtual void start_accept(AcceptOp& op) = 0;
  virtual void cancel_accept(AcceptOp& op) = 0;
};

struct StreamOptions {
  bool no_delay = true;           // small writes leave at once
  uint32_t send_buffer_size = 0;  // bytes the kernel may hold; 0: its own choice
  uint32_t receive_buffer_size = 0;
};

class ConnectOp final : public task::Operation<Connection> {
 public:
  ConnectOp(Env& env, Address to, const StreamOptions& options, task::CancelToken token)
      : Operation(token), env_(env), to_(std::move(to)), options_(options) {}

  const Address& to() const { return to_; }
  const StreamOptions& options() const { return options_; }
  using Operation::cancelled;
  uint64_t note = 0;  // the back end's own

 private:
  void start() override;
  void cancel() override;
  Env& env_;
  Address to_;
  StreamOptions options_;
};

}  // namespace cairn::env
