// SPDX-License-Identifier: Apache-2.0
#include "world/sim/core.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "base/ids.h"
#include "base/rng.h"
#include "base/units.h"
#include "env/address.h"
#include "env/disk.h"
#include "env/env.h"
#include "env/stream.h"
#include "task/timer.h"
#include "world/sim/disk.h"
#include "world/sim/event_queue.h"
#include "world/sim/machine.h"
#include "world/sim/network.h"
#include "world/sim/options.h"
#include "world/sim/process.h"
#include "world/sim/stream.h"
#include "world/sim/world.h"

namespace cairn::sim {

struct Core::TimerEvent : Event {
  explicit TimerEvent(Core& owner) : Event(kTimer, owner.origin_), core(owner) {}
  Core& core;
  task::Timer* timer = nullptr;
  TimerEvent* next_free = nullptr;
};

struct Core::MessageEvent : Event {
  explicit MessageEvent(Core& target) : Event(kMessage, target.origin_), core(target) {}
  Core& core;
  env::Message* message = nullptr;
  MessageEvent* next_free = nullptr;
};

const EventKind Core::kTurn("core.turn", &Core::on_turn);
const EventKind Core::kTimer("core.timer", &Core::on_timer);
const EventKind Core::kMessage("core.message", &Core::on_message);

Core::CoreEvent::CoreEvent(const EventKind& kind, Core& owner)
    : Event(kind, owner.origin_), core(owner) {}

Core::Core(Process& process, uint32_t index, uint64_t seed)
    : process_(process),
      origin_{process.machine().id(), index, &process, nullptr},
      rng_(seed),
      buggify_rng_(mix64(seed)),
      buffers_(process.machine().options().buffers),
      trace_(*this),
      turn_(kTurn, *this),
      poll_(kPoll, *this),
      last_arrival_(process.machine().options().cores) {
  buggify_ = &Core::on_buggify;
}

Core::~Core() = default;

void Core::CoreTrace::write(const char* what, uint64_t a, uint64_t b) {
  World& world = core_.process_.world();
  world.trace().record(world.now(), core_.origin_, what, a, b);
}

Time Core::now() const { return process_.machine().clock().local(process_.now()); }
WallTime Core::wall_now() const { return process_.machine().clock().wall(process_.now()); }

void Core::arm(task::Timer& timer, Time when) {
  CHECK(!timer.is_armed(), "a timer is armed once at a time");
  if (free_timers_ == nullptr) {
    timers_.push_back(std::make_unique<TimerEvent>(*this));
    free_timers_ = timers_.back().get();
  }
  TimerEvent& event = *free_timers_;
  free_timers_ = event.next_free;
  event.timer = &timer;
  timer.slot = std::bit_cast<uintptr_t>(&event);
  timer.set_armed(this, when);
  ++timer_count_;
  process_.schedule(event, machine().clock().true_time(when));
}

void Core::disarm(task::Timer& timer) {
  if (!timer.is_armed()) return;
  auto& event = *std::bit_cast<TimerEvent*>(static_cast<uintptr_t>(timer.slot));
  timer.set_armed(nullptr, {});
  event.cancel();
  event.next_free = free_timers_;
  free_timers_ = &event;
  --timer_count_;
}

void Core::on_timer(Event& event) {
  auto& self = static_cast<TimerEvent&>(event);
  Core& core = self.core;
  self.next_free = core.free_timers_;
  core.free_timers_ = &self;
  --core.timer_count_;
  core.run_code([&] { self.timer->fire(); });
}

void Core::post(CoreId to, env::Message& message) {
  CHECK(to.value() < core_count(), "a message goes to a core of this process");
  Core& target = process_.core(to.value());
  if (target.free_messages_ == nullptr) {
    target.messages_.push_back(std::make_unique<MessageEvent>(target));
    target.free_messages_ = target.messages_.back().get();
  }
  MessageEvent& event = *target.free_messages_;
  target.free_messages_ = event.next_free;
  event.message = &message;
  Time at = process_.now();
  const Duration delay_max = process_.world().options().message_delay_max;
  if (&target != this && !process_.is_dead() && delay_max.ns > 0) {
    at = at + Duration{static_cast<int64_t>(process_.rng().between(1, delay_max.ns))};
  }
  Time& last = target.last_arrival_[origin_.core];
  last = std::max(last, at);
  process_.schedule(event, last);
}

void Core::on_message(Event& event) {
  auto& self = static_cast<MessageEvent&>(event);
  Core& core = self.core;
  self.next_free = core.free_messages_;
  core.free_messages_ = &self;
  env::Message& message = *self.message;
  core.run_code([&] { message.run(message, core); });
}

void Core::wake() {
  if (is_running_ || turn_.is_scheduled()) return;
  Time at = process_.now();
  const Duration delay_max = process_.world().options().wake_delay_max;
  if (delay_max.ns > 0 && !process_.is_dead()) {
    at = at + Duration{static_cast<int64_t>(process_.rng().below(delay_max.ns + 1))};
  }
  process_.schedule(turn_, at);
}

void Core::on_turn(Event& event) {
  Core& core = static_cast<CoreEvent&>(event).core;
  core.run_code([&] {
    if (core.is_stop_wanted_) core.stop_.request();
  });
}

void Core::request_stop() {
  is_stop_wanted_ = true;
  wake();
}

void Core::stop_now() {
  run_code([this] { stop_.request(); });
}

void Core::note_busy_turn() {
  if (process_.now() != busy_at_) busy_turns_ = 0;
  busy_at_ = process_.now();
  if (++busy_turns_ < kBusyTurnsMax) return;
  const std::string why =
      fmt::format("node {} spins: it runs and runs and waits for nothing", machine().name());
  check_failed(__FILE__, __LINE__, "time passes", why.c_str());
}

void Core::fall_silent() {
  origin_.held = nullptr;
  trace_.fall_silent();
  poll_.cancel();
  buggify_ = nullptr;
}

bool Core::on_buggify(Env& env, const char* site) {
  auto& self = static_cast<Core&>(env);
  World& world = self.process_.world();
  const BuggifyOptions& options = world.options().buggify;
  Rng site_rng(mix64(world.options().seed) ^ hash_text(site));
  return site_rng.bernoulli(options.site) && self.buggify_rng_.bernoulli(options.call);
}

Result<std::unique_ptr<env::Listener>> Core::listen(const env::Address& at,
                                                    const env::ListenOptions& options) {
  if (process_.is_dead()) return fail(crashed());
  return machine().network().listen(*this, at, options);
}

void Core::start_connect(env::ConnectOp& op) {
  if (process_.is_dead()) return op.complete(fail(crashed()));
  machine().network().connect(*this, op);
}

void Core::cancel_connect(env::ConnectOp& op) { machine().network().cancel_connect(op); }

std::unique_ptr<env::Stream> Core::open(env::Connection connection) {
  return SimStream::open(*this, std::move(connection));
}

Result<std::unique_ptr<env::Disk>> Core::open_disk(const env::DiskOptions& options) {
  if (process_.is_dead()) return fail(crashed());
  return SimDisk::open(*this, options);
}

}  // namespace cairn::sim
