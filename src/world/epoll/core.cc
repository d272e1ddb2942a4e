// SPDX-License-Identifier: Apache-2.0
#include "world/epoll/core.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <ctime>
#include <utility>

#include "base/check.h"
#include "world/epoll/disk.h"
#include "world/epoll/stream.h"
#include "world/epoll/world.h"
#include "world/posix/file.h"
#include "world/posix/socket.h"

namespace cairn::epoll {

namespace {

constexpr int kEventsPerTurn = 128;
// How often a core that polls looks for events.
constexpr Duration kLookInterval = 5_us;

// A connect in progress: lives until the kernel has an answer or the caller cancels.
class Connecting final : public Source {
 public:
  Connecting(EpollCore& core, env::ConnectOp& op, posix::Fd fd)
      : core_(core), op_(op), fd_(std::move(fd)) {}

  Result<void> watch() { return core_.watch(fd_.get(), EPOLLOUT | EPOLLET, *this); }
  void cancel() {
    fd_.reset();
    env::ConnectOp& op = op_;
    delete this;
    op.complete(op.cancelled());
  }

 private:
  void on_events(uint32_t) override {
    int error = 0;
    socklen_t length = sizeof(error);
    ::getsockopt(fd_.get(), SOL_SOCKET, SO_ERROR, &error, &length);
    env::ConnectOp& op = op_;
    Result<env::Connection> result = fail(posix::connect_error(error));
    // Taken out of the epoll set first: a Stream will add the descriptor for itself.
    if (error == 0 && core_.unwatch(fd_.get())) result = core_.connection(std::move(fd_));
    delete this;
    op.complete(std::move(result));
  }

  EpollCore& core_;
  env::ConnectOp& op_;
  posix::Fd fd_;
};

// epoll_pwait2 waits with nanoseconds; where it is missing milliseconds, rounded up, must do.
int wait_events(int fd, epoll_event* events, Duration wait) {
  static thread_local bool has_pwait2 = true;
  if (has_pwait2) {
    const timespec timeout{.tv_sec = wait.ns / 1'000'000'000, .tv_nsec = wait.ns % 1'000'000'000};
    const bool forever = wait == Duration::max();
    const int count =
        ::epoll_pwait2(fd, events, kEventsPerTurn, forever ? nullptr : &timeout, nullptr);
    if (count >= 0 || errno != ENOSYS) return count;
    has_pwait2 = false;
  }
  constexpr int64_t kMillisecondsMax = 60'000;
  const int64_t ms = wait == Duration::max() ? -1 : (wait.ns + 999'999) / 1'000'000;
  return ::epoll_wait(fd, events, kEventsPerTurn,
                      static_cast<int>(ms < kMillisecondsMax ? ms : kMillisecondsMax));
}

}  // namespace

Result<std::unique_ptr<posix::CoreEnv>> EpollWorld::make_core(CoreId id,
                                                              posix::Neighbours& neighbours,
                                                              const env::WorldOptions& options) {
  return EpollCore::make(id, neighbours, options);
}

Result<std::unique_ptr<EpollCore>> EpollCore::make(CoreId id, posix::Neighbours& neighbours,
                                                   const env::WorldOptions& options) {
  posix::Fd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.is_open()) return fail(Error::from_errno(errno, "make an epoll set"));
  return std::make_unique<EpollCore>(id, neighbours, options, std::move(epoll));
}

EpollCore::EpollCore(CoreId id, posix::Neighbours& neighbours, const env::WorldOptions& options,
                     posix::Fd epoll)
    : CoreEnv(id, neighbours, options), epoll_(std::move(epoll)) {
  epoll_event event{.events = EPOLLIN, .data = {.ptr = nullptr}};
  CHECK(::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, signal_fd(), &event) == 0);
}

Result<void> EpollCore::watch(int fd, uint32_t events, Source& source) {
  epoll_event event{.events = events, .data = {.ptr = &source}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    return fail(Error::from_errno(errno, "watch a descriptor"));
  }
  return {};
}

bool EpollCore::unwatch(int fd) {
  return ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr) == 0;
}

void EpollCore::turn(Time until) {
  Duration wait{0};
  if (until == Time::never()) {
    wait = Duration::max();
  } else if (until > now()) {
    wait = until - now();
  }
  // A core that polls comes here all the time, and a look costs more than its pollers do.
  if (has_pollers() && now() - looked_at_ < kLookInterval) return;
  looked_at_ = now();
  std::array<epoll_event, kEventsPerTurn> events;
  count_system_call();
  const int count = wait_events(epoll_.get(), events.data(), wait);
  for (int i = 0; i < count; ++i) {
    auto* source = static_cast<Source*>(events[i].data.ptr);
    if (source == nullptr) {
      take_signal();
    } else {
      source->on_events(events[i].events);
    }
  }
}

// epoll cannot wait for several: it sleeps, and finds all that came meanwhile.
void EpollCore::gather(Time until, unsigned) {
  if (until > now()) {
    const Duration rest = until - now();
    const timespec length{.tv_sec = 0, .tv_nsec = rest.ns};
    count_system_call();
    ::clock_nanosleep(CLOCK_MONOTONIC, 0, &length, nullptr);
  }
  turn(Time{0});
}

void EpollCore::drain() { disk_threads_.reset(); }

Result<std::unique_ptr<env::Listener>> EpollCore::listen(const env::Address& at,
                                                         const env::ListenOptions& options) {
  Result<posix::Fd> fd = posix::make_listener(at, options);
  if (!fd) return fail(fd.error());
  auto listener = std::make_unique<EpollListener>(*this, std::move(*fd), options.stream);
  if (Result<void> watched = listener->watch(); !watched) return fail(watched.error());
  return listener;
}

std::unique_ptr<env::Stream> EpollCore::open(env::Connection connection) {
  CHECK(connection.is_valid());
  posix::Fd fd(static_cast<int>(connection.take()));
  return std::make_unique<EpollStream>(*this, std::move(fd));
}

Result<std::unique_ptr<env::Disk>> EpollCore::open_disk(const env::DiskOptions& options) {
  Result<posix::DiskFile> file = posix::open_disk_file(options);
  if (!file) return fail(file.error());
  return std::make_unique<EpollDisk>(*this, std::move(*file));
}

DiskThreads& EpollCore::disk_threads() {
  if (disk_threads_ == nullptr) disk_threads_ = std::make_unique<DiskThreads>(*this);
  return *disk_threads_;
}

void EpollCore::start_connect(env::ConnectOp& op) {
  Result<posix::Fd> fd = posix::make_socket(op.to(), op.options());
  if (!fd) return op.complete(fail(fd.error()));
  const posix::SocketAddress to = posix::to_socket_address(op.to());
  if (::connect(fd->get(), to.get(), to.length) == 0) {
    return op.complete(connection(std::move(*fd)));
  }
  if (errno != EINPROGRESS) return op.complete(fail(posix::connect_error(errno)));
  auto connecting = std::make_unique<Connecting>(*this, op, std::move(*fd));
  if (Result<void> watched = connecting->watch(); !watched) {
    return op.complete(fail(watched.error()));
  }
  op.note = reinterpret_cast<uint64_t>(connecting.release());
}

void EpollCore::cancel_connect(env::ConnectOp& op) {
  reinterpret_cast<Connecting*>(op.note)->cancel();
}

void EpollCore::add_starved(EpollStream& stream) {
  if (!stream.ListHook<StarvedTag>::is_linked()) starved_.push_back(stream);
}

void EpollCore::feed_starved() {
  // Each is tried once: one that is still hungry goes to the end of the line.
  size_t hungry = 0;
  starved_.for_each([&](EpollStream&) { ++hungry; });
  while (hungry-- > 0) {
    EpollStream* stream = starved_.pop_front();
    stream->retry_receive();
  }
}

}  // namespace cairn::epoll
