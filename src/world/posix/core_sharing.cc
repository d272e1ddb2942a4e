// SPDX-License-Identifier: Apache-2.0
// What a real core shares with other processes.
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "env/sharing.h"
#include "env/stream.h"
#include "world/posix/core.h"
#include "world/posix/event_signal.h"
#include "world/posix/fd.h"
#include "world/posix/local_stream.h"
#include "world/posix/shared_memory.h"

namespace cairn::posix {

namespace {

int fd_of(const env::Descriptor& descriptor) {
  CHECK(descriptor.is_valid(), "a descriptor that holds something");
  return static_cast<int>(descriptor.handle());
}

Result<Fd> duplicate_fd(int fd) {
  Fd copy(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!copy.is_open()) return fail(Error::from_errno(errno, "duplicate a descriptor"));
  return copy;
}

}  // namespace

void CoreEnv::close_descriptor(int64_t handle) { ::close(static_cast<int>(handle)); }

Result<env::Descriptor> CoreEnv::make_shared_memory(uint64_t size) {
  Result<Fd> fd = make_memory_file(size);
  if (!fd) return fail(fd.error());
  return descriptor(std::move(*fd));
}

Result<std::unique_ptr<env::SharedMemory>> CoreEnv::map_shared(const env::Descriptor& descriptor,
                                                               const env::SharedRange& range) {
  return map_memory_file(fd_of(descriptor), range);
}

Result<env::Descriptor> CoreEnv::make_signal() {
  Result<Fd> fd = make_event();
  if (!fd) return fail(fd.error());
  return descriptor(std::move(*fd));
}

Result<std::unique_ptr<env::Signal>> CoreEnv::open_signal(const env::Descriptor& descriptor) {
  if (const Result<void> is = check_event(fd_of(descriptor)); !is) return fail(is.error());
  Result<Fd> fd = duplicate_fd(fd_of(descriptor));
  if (!fd) return fail(fd.error());
  const auto event = std::make_shared<const Fd>(std::move(*fd));
  auto signal = std::make_unique<EventSignal>(*this, event);
  Result<std::unique_ptr<Watch>> watch = make_watch(event, *signal);
  if (!watch) return fail(watch.error());
  signal->set_world(std::move(*watch), make_raiser(event));
  return signal;
}

Result<env::Descriptor> CoreEnv::duplicate(const env::Descriptor& other) {
  Result<Fd> fd = duplicate_fd(fd_of(other));
  if (!fd) return fail(fd.error());
  return descriptor(std::move(*fd));
}

Result<std::unique_ptr<env::LocalStream>> CoreEnv::open_local(env::Connection connection) {
  CHECK(connection.is_valid(), "a connection is opened once");
  return open_local(Fd(static_cast<int>(connection.take())));
}

Result<std::unique_ptr<env::LocalStream>> CoreEnv::open_local(env::Descriptor end) {
  CHECK(end.is_valid(), "a descriptor that holds something");
  return open_local(Fd(static_cast<int>(end.take())));
}

Result<std::pair<env::Descriptor, env::Descriptor>> CoreEnv::make_local_pair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) {
    return fail(Error::from_errno(errno, "make a local stream"));
  }
  return std::pair(descriptor(Fd(ends[0])), descriptor(Fd(ends[1])));
}

Result<std::unique_ptr<env::LocalStream>> CoreEnv::open_local(Fd socket) {
  const auto fd = std::make_shared<const Fd>(std::move(socket));
  if (const Result<void> is = check_local(fd->get()); !is) return fail(is.error());
  auto stream = std::make_unique<LocalSocket>(*this, fd);
  Result<std::unique_ptr<Watch>> watch = make_watch(fd, *stream);
  if (!watch) return fail(watch.error());
  stream->set_watch(std::move(*watch));
  return stream;
}

void CoreEnv::add_poller(env::Poller& poller) {
  pollers_.push_back(poller);
  ++poller_count_;
}

void CoreEnv::remove_poller(env::Poller& poller) {
  if (!poller.is_linked()) return;
  poller.unlink();
  --poller_count_;
}

}  // namespace cairn::posix
