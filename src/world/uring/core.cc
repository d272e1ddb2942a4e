// SPDX-License-Identifier: Apache-2.0
#include "world/uring/core.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/check.h"
#include "world/posix/file.h"
#include "world/posix/socket.h"
#include "world/uring/disk.h"
#include "world/uring/listener.h"
#include "world/uring/stream.h"
#include "world/uring/watch.h"
#include "world/uring/world.h"

namespace cairn::uring {

namespace {

// A connect in progress; deletes itself when the kernel answers.
class Connecting final : public Completion {
 public:
  Connecting(UringCore& core, env::ConnectOp& op, posix::Fd fd)
      : core_(core), op_(op), fd_(std::move(fd)), to_(posix::to_socket_address(op.to())) {
    core_.ring().request(this, [&](io_uring_sqe* sqe) {
      ::io_uring_prep_connect(sqe, fd_.get(), to_.get(), to_.length);
    });
  }

 private:
  void on_complete(int32_t result, uint32_t) override {
    env::ConnectOp& op = op_;
    Result<env::Connection> outcome = fail(posix::connect_error(-result));
    if (result == 0) outcome = core_.connection(fd_.take());
    if (result == -ECANCELED) outcome = op.cancelled();
    delete this;
    op.complete(std::move(outcome));
  }

  UringCore& core_;
  env::ConnectOp& op_;
  posix::Fd fd_;
  posix::SocketAddress to_;
};

// Multishot receive has no probe of its own; it came with the release of zero-copy send (6.0).
bool has_multishot_receive(Ring& ring) { return ring.supports(IORING_OP_SEND_ZC); }

}  // namespace

Result<std::unique_ptr<posix::CoreEnv>> UringWorld::make_core(CoreId id,
                                                              posix::Neighbours& neighbours,
                                                              const env::WorldOptions& options) {
  Result<std::unique_ptr<Ring>> ring = Ring::make();
  if (!ring) return fail(ring.error());
  return std::make_unique<UringCore>(id, neighbours, options, use_, std::move(*ring));
}

Support probe() {
  Support support;
  Result<std::unique_ptr<Ring>> ring = Ring::make();
  if (!ring) {
    support.error = ring.error().detail();
    return support;
  }
  support.available = true;
  support.single_issuer = (*ring)->has_deferred_tasks();
  support.buffer_rings = BufferRing::make(*(*ring)->get()).has_value();
  support.multishot_accept = support.buffer_rings;
  support.zero_copy_send = (*ring)->supports(IORING_OP_SEND_ZC);
  support.multishot_receive = has_multishot_receive(**ring) && support.buffer_rings;
  return support;
}

UringCore::UringCore(CoreId id, posix::Neighbours& neighbours, const env::WorldOptions& options,
                     const Use& use, std::unique_ptr<Ring> ring)
    : CoreEnv(id, neighbours, options), ring_(std::move(ring)), signal_read_(*this) {
  if (use.multishot && has_multishot_receive(*ring_)) {
    if (Result<std::unique_ptr<BufferRing>> made = BufferRing::make(*ring_->get())) {
      buffer_ring_ = std::move(*made);
    }
  }
  signal_read_.arm();
}

void UringCore::SignalRead::arm() {
  core_.ring().request(this, [&](io_uring_sqe* sqe) {
    ::io_uring_prep_read(sqe, core_.signal_fd(), &count_, sizeof(count_), 0);
  });
}

void UringCore::SignalRead::on_complete(int32_t, uint32_t) {
  if (!ending) arm();
}

bool UringCore::add_spinning(Socket& socket) {
  // Each costs a system call per turn.
  constexpr uint32_t kMax = 4;
  if (!spins() || spinning_count_ == kMax) return false;
  ++spinning_count_;
  spinning_.push_back(socket);
  return true;
}

void UringCore::remove_spinning(Socket& socket) {
  socket.ListHook<SpinningTag>::unlink();
  --spinning_count_;
}

void UringCore::try_spinning(bool falls_asleep) {
  for (uint32_t left = spinning_count_; left > 0; --left) {
    Socket& socket = *spinning_.pop_front();
    --spinning_count_;
    socket.spin(falls_asleep);
  }
}

void UringCore::turn(Time until, unsigned events) {
  if (spinning_count_ > 0) {
    try_spinning(until > now());
    if (!is_quiet()) until = Time{0};  // one has found something: no time to sleep
  }
  Duration wait{0};
  if (until == Time::never()) {
    wait = Duration::max();
  } else if (until > now()) {
    wait = until - now();
  }
  if (ring_->turn(wait, events)) count_system_call();
}

void UringCore::drain() {
  signal_read_.ending = true;
  ring_->cancel(signal_read_);
  // A peer may keep its counter full.
  raised_.for_each([this](EventWrite& event) { ring_->cancel(event); });
  while (ring_->in_flight() > 0) ring_->turn(Duration::max());
}

Result<std::unique_ptr<env::Listener>> UringCore::listen(const env::Address& at,
                                                         const env::ListenOptions& options) {
  Result<posix::Fd> fd = posix::make_listener(at, options);
  if (!fd) return fail(fd.error());
  return std::make_unique<UringListener>(*this, std::move(*fd), options.stream);
}

std::unique_ptr<env::Stream> UringCore::open(env::Connection connection) {
  CHECK(connection.is_valid());
  return std::make_unique<UringStream>(*this, posix::Fd(static_cast<int>(connection.take())));
}

Result<std::unique_ptr<env::Disk>> UringCore::open_disk(const env::DiskOptions& options) {
  Result<posix::DiskFile> file = posix::open_disk_file(options);
  if (!file) return fail(file.error());
  return std::make_unique<UringDisk>(*this, std::move(*file));
}

void UringCore::start_connect(env::ConnectOp& op) {
  Result<posix::Fd> fd = posix::make_socket(op.to(), op.options());
  if (!fd) return op.complete(fail(fd.error()));
  op.note = reinterpret_cast<uint64_t>(new Connecting(*this, op, std::move(*fd)));
}

void UringCore::cancel_connect(env::ConnectOp& op) {
  ring_->cancel(*reinterpret_cast<Connecting*>(op.note));
}

void UringCore::add_raised(EventWrite& event) { raised_.push_back(event); }

uint32_t UringCore::chunks_per_stream() const {
  constexpr uint32_t kMax = 16;
  return std::clamp(BufferRing::kCount / (2 * std::max(receivers_, 1U)), 1U, kMax);
}

void UringCore::add_starved(Socket& socket) {
  if (!socket.ListHook<StarvedTag>::is_linked()) starved_.push_back(socket);
}

void UringCore::feed_starved() {
  if (Socket* socket = starved_.pop_front()) socket->resume_receiving();
}

}  // namespace cairn::uring
