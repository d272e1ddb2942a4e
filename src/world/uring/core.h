// SPDX-License-Identifier: Apache-2.0
// UringCore: one reactor on one ring.
#pragma once

#include <memory>

#include "base/list.h"
#include "world/posix/core.h"
#include "world/posix/watch.h"
#include "world/uring/buffer_ring.h"
#include "world/uring/ring.h"
#include "world/uring/world.h"

namespace cairn::uring {

class EventWrite;
class Socket;
struct SpinningTag;
struct StarvedTag;

class UringCore final : public posix::CoreEnv {
 public:
  UringCore(CoreId id, posix::Neighbours& neighbours, const env::WorldOptions& options,
            const Use& use, std::unique_ptr<Ring> ring);

  Result<std::unique_ptr<env::Listener>> listen(const env::Address& at,
                                                const env::ListenOptions& options) override;
  std::unique_ptr<env::Stream> open(env::Connection connection) override;
  Result<std::unique_ptr<env::Disk>> open_disk(const env::DiskOptions& options) override;

  Ring& ring() { return *ring_; }
  // Null where the kernel has none: receive() then asks for one piece at a time.
  BufferRing* buffer_ring() { return buffer_ring_.get(); }
  // Standing requests: for accept and, with the buffer ring, for receive.
  bool has_multishot() const { return buffer_ring_ != nullptr; }
  env::Connection connection(int fd) { return {this, fd}; }

  // How many chunks one stream may hold: all of them when alone, a fair part among many.
  uint32_t chunks_per_stream() const;
  void add_receiver() { ++receivers_; }
  void remove_receiver() { --receivers_; }
  // A read that found nothing is tried again at every turn of a core that spins: no request is
  // faster. False: others do so already, and it is a request to the kernel.
  bool add_spinning(Socket& socket);
  void remove_spinning(Socket& socket);
  // Sockets that found no buffer; tried again when one is given back.
  void add_starved(Socket& socket);
  void feed_starved();
  // Raised events that the kernel has not counted yet.
  void add_raised(EventWrite& event);
  bool is_ending() const { return signal_read_.ending; }

 private:
  // Watches the mailbox's event descriptor.
  class SignalRead final : public Completion {
   public:
    explicit SignalRead(UringCore& core) : core_(core) {}
    void arm();
    void on_complete(int32_t result, uint32_t flags) override;
    bool ending = false;

   private:
    UringCore& core_;
    uint64_t count_ = 0;
  };

  void turn(Time until) override { turn(until, 1); }
  void gather(Time until, unsigned events) override { turn(until, events); }
  void turn(Time until, unsigned events);
  void try_spinning(bool falls_asleep);
  void drain() override;
  Result<std::unique_ptr<posix::Watch>> make_watch(posix::SharedFd fd,
                                                   posix::Watch::User& user) override;
  std::unique_ptr<posix::EventRaiser> make_raiser(posix::SharedFd fd) override;
  void start_connect(env::ConnectOp& op) override;
  void cancel_connect(env::ConnectOp& op) override;

  std::unique_ptr<Ring> ring_;
  std::unique_ptr<BufferRing> buffer_ring_;
  SignalRead signal_read_;
  List<Socket, SpinningTag> spinning_;
  uint32_t spinning_count_ = 0;
  List<Socket, StarvedTag> starved_;
  List<EventWrite, EventWrite> raised_;
  uint32_t receivers_ = 0;
};

}  // namespace cairn::uring
