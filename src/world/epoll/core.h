// SPDX-License-Identifier: Apache-2.0
// EpollCore: one reactor that waits with epoll, edge-triggered.
#pragma once

#include <sys/epoll.h>

#include <cstdint>
#include <memory>

#include "base/list.h"
#include "world/epoll/disk_threads.h"
#include "world/posix/core.h"
#include "world/posix/fd.h"

namespace cairn::epoll {

// Something with a descriptor. Told of edges only; it must try until EAGAIN.
class Source {
 public:
  virtual void on_events(uint32_t events) = 0;

 protected:
  ~Source() = default;
};

class EpollStream;
struct StarvedTag;

class EpollCore final : public posix::CoreEnv {
 public:
  static Result<std::unique_ptr<EpollCore>> make(CoreId id, posix::Neighbours& neighbours,
                                                 const env::WorldOptions& options);
  EpollCore(CoreId id, posix::Neighbours& neighbours, const env::WorldOptions& options,
            posix::Fd epoll);

  Result<std::unique_ptr<env::Listener>> listen(const env::Address& at,
                                                const env::ListenOptions& options) override;
  std::unique_ptr<env::Stream> open(env::Connection connection) override;
  Result<std::unique_ptr<env::Disk>> open_disk(const env::DiskOptions& options) override;

  // Begins to tell `source` about `fd`; ends by unwatch() or when the descriptor is closed.
  Result<void> watch(int fd, uint32_t events, Source& source);
  bool unwatch(int fd);
  env::Connection connection(posix::Fd fd) { return {this, fd.take()}; }

  // Streams that could not get memory for a chunk; all are tried again when one is given back.
  void add_starved(EpollStream& stream);
  void feed_starved();

  DiskThreads& disk_threads();

 private:
  void turn(Time until) override;
  void gather(Time until, unsigned events) override;
  void drain() override;
  Result<std::unique_ptr<posix::Watch>> make_watch(posix::SharedFd fd,
                                                   posix::Watch::User& user) override;
  std::unique_ptr<posix::EventRaiser> make_raiser(posix::SharedFd fd) override;
  void start_connect(env::ConnectOp& op) override;
  void cancel_connect(env::ConnectOp& op) override;

  posix::Fd epoll_;
  Time looked_at_;  // the last time, while there are pollers
  List<EpollStream, StarvedTag> starved_;
  std::unique_ptr<DiskThreads> disk_threads_;
};

}  // namespace cairn::epoll
