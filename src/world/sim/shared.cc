// SPDX-License-Identifier: Apache-2.0
#include "world/sim/shared.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "env/sharing.h"
#include "world/sim/core.h"
#include "world/sim/event_queue.h"
#include "world/sim/machine.h"
#include "world/sim/process.h"
#include "world/sim/tear.h"
#include "world/sim/world.h"

namespace cairn::sim {

void SharedPages::shrink(uint64_t size) {
  if (size >= size_) return;
  memory_->discard(size, size_ - size);
  size_ = size;
}

const EventKind Bell::kRing("signal.ring", &Bell::on_ring);

Bell::RingEvent::RingEvent(Bell& owner, Machine& machine)
    : Event(kRing, machine.origin()), bell(owner) {}

Bell::Bell(Machine& machine) : ring_(*this, machine) {}

void Bell::ring(Process& by) {
  is_rung_ = true;
  if (ring_.is_scheduled()) return;
  // As long as a message between cores takes.
  World& world = by.world();
  const auto delay_max = std::max<int64_t>(world.options().message_delay_max.ns, 1);
  const auto delay = static_cast<int64_t>(by.rng().between(1, static_cast<uint64_t>(delay_max)));
  world.schedule(ring_, world.now() + Duration{delay});
}

void Bell::on_ring(Event& event) {
  Bell& self = static_cast<RingEvent&>(event).bell;
  if (!self.waiting_.empty() && self.take()) self.waiting_.pop_front()->answer();
}

env::Descriptor Holding::Table::add(Process& process, SharedHold thing) {
  return {this, std::bit_cast<intptr_t>(new Holding(process, std::move(thing)))};
}

void Holding::Table::close_descriptor(int64_t handle) {
  delete std::bit_cast<Holding*>(static_cast<intptr_t>(handle));
}

const SharedHold& Holding::of(const env::Descriptor& descriptor) {
  CHECK(descriptor.is_valid(), "a descriptor that holds something");
  return std::bit_cast<Holding*>(static_cast<intptr_t>(descriptor.handle()))->thing_;
}

SimMapping::SimMapping(Process& process, std::shared_ptr<SharedPages> pages,
                       const env::SharedRange& range)
    : pages_(std::move(pages)), range_(range) {
  bytes_ = pages_->bytes().subspan(range.offset, range.size);
  join(process);
}

SimMapping::~SimMapping() {
  if (!at_death_.empty()) std::ranges::copy(at_death_, bytes_.begin());
}

// A dead process runs to its end before anybody else runs: what it writes until then is undone.
void SimMapping::die(Death) { at_death_.assign(bytes_.begin(), bytes_.end()); }

SimSignal::SimSignal(Core& core, std::shared_ptr<Bell> bell) : core_(core), bell_(std::move(bell)) {
  join(core.process());
}

SimSignal::~SimSignal() {
  CHECK(waiting_ == nullptr, "a signal goes after its wait has completed");
}

void SimSignal::raise() {
  if (core_.process().is_dead()) return;
  bell_->ring(core_.process());
}

void SimSignal::start_wait(env::SignalOp& op) {
  CHECK(core_.is_current(), "a signal is used on the core that opened it");
  CHECK(waiting_ == nullptr, "one wait at a time");
  if (core_.process().is_dead()) return op.complete(fail(crashed()));
  if (bell_->take()) return op.complete({});
  waiting_ = &op;
  bell_->add_waiter(*this);
}

void SimSignal::answer() { core_.complete(*std::exchange(waiting_, nullptr), Result<void>{}); }

void SimSignal::cancel_wait(env::SignalOp& op) {
  CHECK(waiting_ == &op);
  ListHook<Bell>::unlink();
  waiting_ = nullptr;
  core_.complete(op, op.cancelled());
}

void SimSignal::die(Death) {
  ListHook<Bell>::unlink();
  if (env::SignalOp* op = std::exchange(waiting_, nullptr)) core_.complete(*op, fail(crashed()));
}

void tear_memory(const env::Descriptor& memory, uint64_t size) {
  const auto pages = std::dynamic_pointer_cast<SharedPages>(Holding::of(memory));
  CHECK(pages != nullptr, "a descriptor of memory");
  pages->shrink(size);
}

}  // namespace cairn::sim
