// SPDX-License-Identifier: Apache-2.0
#include "world/sim/process.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/check.h"
#include "base/list.h"
#include "base/units.h"
#include "world/sim/core.h"
#include "world/sim/event_queue.h"
#include "world/sim/machine.h"

namespace cairn::sim {

// The program's first step, on the first core.
struct Process::StartEvent : Event {
  explicit StartEvent(Process& owner) : Event(kStart, owner.core(0).origin()), process(owner) {}
  static void run(Event& event) {
    Process& process = static_cast<StartEvent&>(event).process;
    Core& first = process.core(0);
    first.run_code([&] { process.body_ = process.program_(first); });
  }
  static const EventKind kStart;
  Process& process;
};
const EventKind Process::StartEvent::kStart("process.start", &StartEvent::run);

void Mortal::join(Process& process) {
  process_ = &process;
  process.mortals_.push_back(*this);
  ++process.mortal_count_;
}

void Mortal::leave() {
  if (process_ == nullptr) return;
  ListHook<Mortal>::unlink();
  --process_->mortal_count_;
  process_ = nullptr;
}

Process::Process(Machine& machine, const env::Program& program, uint64_t life)
    : machine_(machine),
      world_(machine.world()),
      program_(program),
      rng_(world_.make_rng(machine.name() + "/process", life)) {
  for (uint32_t i = 0; i < machine.options().cores; ++i) {
    cores_.push_back(std::make_unique<Core>(*this, i, rng_.next()));
  }
  start_ = std::make_unique<StartEvent>(*this);
  world_.schedule(*start_, world_.now());
}

Process::~Process() = default;

void Process::schedule(Event& event, Time when) {
  if (is_dead_) return after_death_.schedule(event, when);
  world_.schedule(event, when);
}

void Process::leave_code() {
  --running_code_;
  if (has_ended_ || !body_.is_valid() || !body_.is_done()) return;
  has_ended_ = true;
  if (!is_dead_) machine_.process_has_ended();
}

void Process::request_stop() {
  for (auto& core : cores_) core->request_stop();
}

void Process::pause() {
  is_paused_ = true;
  for (auto& core : cores_) core->hold(&held_);
}

void Process::resume() {
  if (!is_paused_) return;
  is_paused_ = false;
  for (auto& core : cores_) core->hold(nullptr);
  while (!held_.empty()) world_.schedule(*held_.pop().event, world_.now());
}

void Process::die(Death death) {
  CHECK(running_code_ == 0, "a process does not die in the middle of its own code");
  is_dead_ = true;
  after_death_now_ = world_.now();
  for (auto& core : cores_) core->fall_silent();
  if (start_->is_scheduled()) {
    start_->cancel();
    has_ended_ = true;
  }
  world_.queue().move_owned(this, after_death_);
  held_.move_owned(this, after_death_);
  while (Mortal* mortal = mortals_.pop_front()) mortal->die(death);
  for (auto& core : cores_) core->stop_now();
  run_to_the_end();
}

void Process::run_to_the_end() {
  for (size_t steps = 0; !after_death_.empty(); ++steps) {
    if (steps == kStepsAfterDeathMax) {
      const std::string why = fmt::format("node {} did not end after a crash: {} steps, {}",
                                          machine_.name(), steps, leftovers());
      check_failed(__FILE__, __LINE__, "the program ends", why.c_str());
    }
    const EventQueue::Due due = after_death_.pop();
    // A timer for the end of time does not take the clock there.
    if (due.when != Time::never()) after_death_now_ = std::max(after_death_now_, due.when);
    due.event->kind().run(*due.event);
  }
  if (!has_ended_) {
    const std::string why = fmt::format(
        "node {} did not end after a crash: it waits for something that will not happen ({}); a "
        "wait that may be long takes the stop token",
        machine_.name(), leftovers());
    check_failed(__FILE__, __LINE__, "the program ends", why.c_str());
  }
  check_nothing_left();
}

std::string Process::leftovers() {
  size_t timers = 0;
  size_t ready = 0;
  for (auto& core : cores_) {
    timers += core->timer_count();
    ready += core->is_idle() ? 0 : 1;
  }
  const size_t messages =
      world_.queue().count_owned(this) + held_.size() + after_death_.size() - timers;
  std::string text =
      fmt::format("{} timers armed, {} messages or turns to come, {} cores busy, {} things open",
                  timers, messages, ready, mortal_count_);
  mortals_.for_each([&](Mortal& mortal) { text += fmt::format(", {}", mortal.what()); });
  return text;
}

void Process::check_nothing_left() {
  for (auto& core : cores_) core->drop_idle_turn();
  bool clean = mortal_count_ == 0 && world_.queue().count_owned(this) == 0;
  for (auto& core : cores_) clean = clean && core->is_idle() && core->timer_count() == 0;
  if (clean) return;
  const std::string why = fmt::format("node {}: {}", machine_.name(), leftovers());
  check_failed(__FILE__, __LINE__, "a program leaves nothing behind when it ends", why.c_str());
}

}  // namespace cairn::sim
