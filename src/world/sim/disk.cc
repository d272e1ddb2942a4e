// SPDX-License-Identifier: Apache-2.0
#include "world/sim/disk.h"

#include <bit>
#include <cstdint>
#include <memory>

#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/list.h"
#include "base/rng.h"
#include "base/units.h"
#include "env/disk.h"
#include "world/sim/core.h"
#include "world/sim/event_queue.h"
#include "world/sim/machine.h"
#include "world/sim/process.h"
#include "world/sim/world.h"

namespace cairn::sim {

namespace {
// Of a write of several blocks to show some of them before it completes.
constexpr double kMidwayProbability = 0.1;
// When it may, as long as nobody knows when it completes.
constexpr Duration kMidway = 100_us;
}  // namespace

// A request between start and completion; found from its operation by the scratch space.
struct SimDisk::Pending final : Event, ListHook<SimDisk>, Medium::Waiter {
  explicit Pending(SimDisk& owner)
      : Event(kComplete, owner.core_.machine().origin()), disk(owner) {}
  void served() override {
    cancel();
    World& world = disk.core_.process().world();
    completes_at = world.now() + request.slower;
    world.schedule(*this, completes_at);
  }
  SimDisk& disk;
  env::DiskOp* op = nullptr;
  Medium::Request request;
  bool is_cancelled = false;
  Time completes_at;  // later than the event when it shows a part of the write before
  Pending* next_free = nullptr;
};

const EventKind SimDisk::kComplete("disk.complete", &SimDisk::on_complete);

Result<std::unique_ptr<env::Disk>> SimDisk::open(Core& core, const env::DiskOptions& options) {
  if (options.path.empty()) return fail(Errc::kInvalid, "disk path");
  Medium& medium = core.machine().medium(options.path);
  if (const Result<void> opened = medium.open(options); !opened) return fail(opened.error());
  return std::make_unique<SimDisk>(core, medium, options);
}

// A node has one medium of a name, for ever.
SimDisk::SimDisk(Core& core, Medium& medium, const env::DiskOptions& options)
    : core_(core),
      medium_(medium),
      is_read_only_(options.read_only),
      medium_id_(mix64(hash_text(options.path.c_str()) ^ core.machine().origin().node) | 1) {
  join(core.process());
}

SimDisk::~SimDisk() {
  CHECK(in_flight_.empty(), "a disk goes after its operations have completed");
  if (!is_dead_) medium_.close();
}

void SimDisk::start_disk_op(env::DiskOp& op) {
  CHECK(core_.is_current(), "a disk is used on the core that opened it");
  if (is_dead_) return op.complete(fail(crashed()));
  const env::DiskOp::Request& what = op.request();
  const bool changes =
      what.kind != env::DiskOp::Kind::kRead && what.kind != env::DiskOp::Kind::kFlush;
  if (is_read_only_ && changes) return op.complete(fail(Errc::kDenied, "the disk is read-only"));
  CHECK(what.kind != env::DiskOp::Kind::kResize || in_flight_.empty(), "a resize is alone");
  if (free_ == nullptr) {
    pool_.push_back(std::make_unique<Pending>(*this));
    free_ = pool_.back().get();
  }
  Pending& pending = *free_;
  free_ = pending.next_free;
  pending.op = &op;
  pending.request = {what, op.into()};
  pending.is_cancelled = false;
  store(MutableBytes(op.scratch), std::bit_cast<uintptr_t>(&pending));
  in_flight_.push_back(pending);
  World& world = core_.process().world();
  const std::optional<Time> known = medium_.start(pending.request, pending);
  pending.completes_at = known.value_or(Time::never());
  const Duration left = known ? *known - world.now() : kMidway;
  const bool is_large_write =
      what.kind == env::DiskOp::Kind::kWrite && what.length > medium_.block_size();
  if (is_large_write && left.ns > 1 && core_.process().rng().bernoulli(kMidwayProbability)) {
    const auto passed = static_cast<int64_t>(core_.process().rng().below(left.ns));
    return world.schedule(pending, world.now() + Duration{passed});
  }
  if (known) world.schedule(pending, pending.completes_at);
}

// A disk may have been faster than the cancellation; a stalled one never is.
void SimDisk::cancel_disk_op(env::DiskOp& op) {
  auto& pending = *std::bit_cast<Pending*>(load<uintptr_t>(Bytes(op.scratch)));
  World& world = core_.process().world();
  pending.is_cancelled =
      medium_.stalled_until() > world.now() || core_.process().rng().bernoulli(0.75);
  pending.cancel();
  medium_.forget(pending);
  pending.completes_at = world.now() + 1_us;
  world.schedule(pending, pending.completes_at);
}

void SimDisk::on_complete(Event& event) {
  auto& pending = static_cast<Pending&>(event);
  SimDisk& self = pending.disk;
  World& world = self.core_.process().world();
  if (pending.is_cancelled) {
    self.medium_.execute_partly(pending.request);
    return self.finish(pending, pending.op->cancelled());
  }
  if (self.medium_.stalled_until() > world.now()) {
    return world.schedule(pending, self.medium_.stalled_until());
  }
  if (pending.completes_at > world.now()) {
    self.medium_.execute_partly(pending.request);
    if (pending.completes_at == Time::never()) return;
    return world.schedule(pending, pending.completes_at);
  }
  self.finish(pending, self.medium_.execute(pending.request));
}

void SimDisk::finish(Pending& pending, Result<void> result) {
  env::DiskOp& op = *pending.op;
  pending.unlink();
  pending.next_free = free_;
  free_ = &pending;
  core_.complete(op, result);
}

void SimDisk::die(Death) {
  is_dead_ = true;
  while (Pending* pending = in_flight_.front()) {
    pending->cancel();
    medium_.forget(*pending);
    medium_.execute_partly(pending->request);
    finish(*pending, fail(crashed()));
  }
  medium_.close();
}

}  // namespace cairn::sim
