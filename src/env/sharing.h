// SPDX-License-Identifier: Apache-2.0
// Sharing: what processes of one machine share beyond bytes. Memory that several of them map,
// signals that one raises and another waits for, and local streams that carry both. The doors for
// virtual machines stand on it. Contract: docs/env.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "base/bytes.h"
#include "base/error.h"
#include "base/list.h"
#include "env/stream.h"
#include "task/operation.h"

namespace cairn::env {

class Env;
class LocalStream;
class Signal;

// A hold on memory or on a signal that can be handed to another process. Belongs to no core.
// Closed by destruction; what was made from it stays.
class Descriptor {
 public:
  class Owner {
   public:
    virtual void close_descriptor(int64_t handle) = 0;

   protected:
    ~Owner() = default;
  };

  Descriptor() = default;
  Descriptor(Owner* owner, int64_t handle) : owner_(owner), handle_(handle) {}
  Descriptor(Descriptor&& other) noexcept
      : owner_(std::exchange(other.owner_, nullptr)), handle_(other.handle_) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) {
      close();
      owner_ = std::exchange(other.owner_, nullptr);
      handle_ = other.handle_;
    }
    return *this;
  }
  ~Descriptor() { close(); }

  bool is_valid() const { return owner_ != nullptr; }
  // For back ends.
  int64_t handle() const { return handle_; }
  int64_t take() {
    owner_ = nullptr;
    return handle_;
  }

 private:
  void close() {
    if (Owner* owner = std::exchange(owner_, nullptr)) owner->close_descriptor(handle_);
  }
  Owner* owner_ = nullptr;
  int64_t handle_ = -1;
};

// A part of shared memory, mapped here. Others write to it at any time: what decides something is
// read once. Belongs to no core. Unmapped by destruction.
class SharedMemory {
 public:
  virtual ~SharedMemory() = default;

  MutableBytes bytes() const { return bytes_; }
  // False once a part was touched that whoever made it has taken away (its file became smaller).
  // What is missing reads as zeroes and keeps nothing for others.
  virtual bool is_whole() const { return true; }

 protected:
  MutableBytes bytes_;
};

// kInvalid: more than one write carries, or one that holds nothing. For back ends.
Result<void> check_descriptors(std::span<const Descriptor* const> descriptors);

// Which part of the memory behind a descriptor.
struct SharedRange {
  uint64_t offset = 0;  // of whole pages
  uint64_t size = 0;
  bool writable = true;
};

class SignalOp final : public task::Operation<void> {
 public:
  SignalOp(Signal& signal, task::CancelToken token) : Operation(token), signal_(signal) {}
  using Operation::cancelled;

 private:
  void start() override;
  void cancel() override;
  Signal& signal_;
};

// Raised by one side, waited for by another, on one core. Raising it many times before it is waited
// for is raising it once.
class Signal {
 public:
  virtual ~Signal() = default;

  // Never waits.
  virtual void raise() = 0;
  // Until it is raised, or was since the last wait; at most one at a time. kCancelled, kTimedOut:
  // by the token; no raise is lost.
  SignalOp wait(task::CancelToken token = {}) { return {*this, token}; }

 protected:
  friend class SignalOp;
  virtual void start_wait(SignalOp& op) = 0;
  virtual void cancel_wait(SignalOp& op) = 0;
};

// What came in one read.
struct Received {
  size_t bytes = 0;
  size_t descriptors = 0;
};

class LocalReadOp final : public task::Operation<Received> {
 public:
  LocalReadOp(LocalStream& stream, MutableBytes into, std::span<Descriptor> descriptors,
              task::CancelToken token)
      : Operation(token), into(into), descriptors(descriptors), stream_(stream) {}
  const MutableBytes into;
  const std::span<Descriptor> descriptors;
  using Operation::cancelled;

 private:
  void start() override;
  void cancel() override;
  LocalStream& stream_;
};

class LocalWriteOp final : public task::Operation<void> {
 public:
  LocalWriteOp(LocalStream& stream, Bytes from, std::span<const Descriptor* const> descriptors,
               task::CancelToken token)
      : Operation(token), from(from), descriptors(descriptors), stream_(stream) {}
  const Bytes from;
  const std::span<const Descriptor* const> descriptors;
  using Operation::cancelled;

 private:
  void start() override;
  void cancel() override;
  LocalStream& stream_;
};

class LocalHangUpOp final : public task::Operation<void> {
 public:
  LocalHangUpOp(LocalStream& stream, task::CancelToken token) : Operation(token), stream_(stream) {}
  using Operation::cancelled;

 private:
  void start() override;
  void cancel() override;
  LocalStream& stream_;
};

// A stream over a local socket that carries descriptors beside bytes. At most one read, one write
// and one wait for the peer's leaving at a time. Destroying it closes the connection; no operation
// may be in flight then.
class LocalStream {
 public:
  // The most descriptors that one write carries.
  static constexpr size_t kDescriptorsMax = 64;

  virtual ~LocalStream() = default;

  // At least one byte; waits when there is none. Descriptors come in order, in the read that takes
  // the first of the bytes they were written with; one read brings those of one write. So who reads
  // messages, and asks for no more than is left of one, gets each with its first byte; a longer
  // read may begin with bytes from before. They fill the front of `descriptors`. kLimit: there are
  // more, or this process may not hold so many; all of them are closed, and the bytes are gone.
  // bytes == 0: the peer has finished. kReset, kCancelled, kTimedOut. Cancelling loses nothing.
  LocalReadOp read(MutableBytes into, std::span<Descriptor> descriptors,
                   task::CancelToken token = {}) {
    return {*this, into, descriptors, token};
  }
  // Done when every byte is accepted for sending. The descriptors, which stay the caller's, go with
  // the first byte; with none to send there are no descriptors either. Errors as Stream::write.
  LocalWriteOp write(Bytes from, std::span<const Descriptor* const> descriptors = {},
                     task::CancelToken token = {}) {
    return {*this, from, descriptors, token};
  }
  // Until the peer has left, also while what it sent before is unread; reads bring that all the
  // same. kReset, kCancelled, kTimedOut.
  LocalHangUpOp hang_up(task::CancelToken token = {}) { return {*this, token}; }
  // Ends the connection at once: operations in flight and later ones complete with kReset.
  virtual void reset() = 0;

 protected:
  friend class LocalReadOp;
  friend class LocalWriteOp;
  friend class LocalHangUpOp;
  virtual void start_read(LocalReadOp& op) = 0;
  virtual void cancel_read(LocalReadOp& op) = 0;
  virtual void start_write(LocalWriteOp& op) = 0;
  virtual void cancel_write(LocalWriteOp& op) = 0;
  virtual void start_hang_up(LocalHangUpOp& op) = 0;
  virtual void cancel_hang_up(LocalHangUpOp& op) = 0;
};

// Looked at by its core again and again, between other work, while it is listed.
class Poller : public ListHook<Poller> {
 public:
  // True: it found something to do. Must not wait. May list and unlist pollers, itself included.
  virtual bool poll() = 0;

 protected:
  ~Poller() = default;
};

// Looks at each poller once; those listed meanwhile may have to wait for the next time. True: one
// found something to do. For back ends.
bool poll_all(List<Poller, Poller>& pollers);

// What an Env offers of this, on its core.
class Sharing {
 public:
  // New memory, all zeroes, that others can map but not make smaller. kLimit, kInvalid (no size).
  virtual Result<Descriptor> make_shared_memory(uint64_t size) = 0;
  // kInvalid: it is no memory, the range is not in it, or the offset is not of whole pages;
  // kDenied: it may not be written; kLimit.
  virtual Result<std::unique_ptr<SharedMemory>> map_shared(const Descriptor& descriptor,
                                                           const SharedRange& range) = 0;
  virtual Result<Descriptor> make_signal() = 0;
  // The same signal again, for raising or waiting on this core. kInvalid: it is none.
  virtual Result<std::unique_ptr<Signal>> open_signal(const Descriptor& descriptor) = 0;
  // Another hold on the same thing.
  virtual Result<Descriptor> duplicate(const Descriptor& descriptor) = 0;
  // Makes this core the one that uses a local connection. kInvalid: it is none.
  virtual Result<std::unique_ptr<LocalStream>> open_local(Connection connection) = 0;
  // The same for an end that came as a descriptor. kInvalid: it is none; kUnsupported: only
  // processes of the real worlds hand such ends to each other.
  virtual Result<std::unique_ptr<LocalStream>> open_local(Descriptor /*descriptor*/) {
    return fail(Errc::kUnsupported, "a stream that came as a descriptor");
  }
  // Both ends of a new stream, to be opened here or handed on. As above.
  virtual Result<std::pair<Descriptor, Descriptor>> make_local_pair() {
    return fail(Errc::kUnsupported, "a stream as two descriptors");
  }

  // While a poller is listed the core does not sleep; in a simulation it is looked at every so
  // often. A poller is on no list of another core, and unlisted before it goes.
  virtual void add_poller(Poller& poller) = 0;
  virtual void remove_poller(Poller& poller) = 0;

 protected:
  ~Sharing() = default;
};

// Null in a world that shares nothing (those of some tests).
Sharing* sharing(Env& env);

}  // namespace cairn::env
