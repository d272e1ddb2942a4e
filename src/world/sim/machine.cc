// SPDX-License-Identifier: Apache-2.0
#include "world/sim/machine.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/check.h"
#include "env/address.h"
#include "env/env.h"
#include "world/sim/event_queue.h"
#include "world/sim/medium.h"
#include "world/sim/network.h"
#include "world/sim/options.h"
#include "world/sim/process.h"
#include "world/sim/world.h"

namespace cairn::sim {

const EventKind Machine::kReap("machine.process_ended", &Machine::on_reap);
const EventKind Machine::kEnd("machine.crash", &Machine::on_end);

Machine::Machine(World& world, Network& network, uint32_t id, std::string name, NodeOptions options,
                 Machine* beside)
    : world_(world),
      network_(network),
      box_(beside != nullptr ? beside->box_ : *this),
      origin_{.node = id},
      name_(std::move(name)),
      options_(std::move(options)),
      clock_(options_.clock),
      reap_(kReap, *this),
      end_(kEnd, *this) {
  CHECK(options_.cores > 0, "a node has at least one core");
  box_.residents_.push_back(this);
}

Machine::~Machine() = default;

env::Address Machine::address(uint16_t port) const {
  const uint32_t host = id() + 1;
  return env::Address::ip4(10, static_cast<uint8_t>(host >> 16), static_cast<uint8_t>(host >> 8),
                           static_cast<uint8_t>(host), port);
}

Medium& Machine::medium(const std::string& path) {
  std::unique_ptr<Medium>& medium = box_.media_[path];
  if (medium == nullptr) {
    medium = std::make_unique<Medium>(world_, world_.make_rng(box_.name_ + "/disk/" + path));
  }
  return *medium;
}

void Machine::heal_disks() {
  for (auto& [path, medium] : box_.media_) {
    medium->heal();
    medium->set_faults({});
  }
}

void Machine::start(env::Program program) {
  CHECK(process_ == nullptr, "one program at a time runs on a node");
  program_ = std::move(program);
  restart();
}

void Machine::restart() {
  CHECK(process_ == nullptr, "a node restarts after its program has ended");
  CHECK(program_ != nullptr, "a node restarts what was started before");
  record("machine.start", lives_);
  was_cut_down_ = false;
  process_ = std::make_unique<Process>(*this, program_, lives_++);
  if (!std::exchange(is_up_, true)) network_.machine_is_up(*this);
}

bool Machine::is_running_code(Death death) const {
  return std::ranges::any_of(residents(), [&](const Machine* resident) {
    const bool ends = resident == this || death == Death::kPowerLoss;
    return ends && resident->process_ != nullptr && resident->process_->is_running_code();
  });
}

void Machine::end(Death death) {
  if (is_running_code(death)) {
    if (end_.is_scheduled()) return;
    end_.death = death;
    return world_.schedule(end_, world_.now());
  }
  if (death == Death::kKill) {
    record("machine.kill");
    return end_process(death);
  }
  record("machine.power_loss");
  for (Machine* resident : residents()) resident->is_up_ = false;
  for (Machine* resident : residents()) resident->end_process(death);
  for (auto& [path, medium] : box_.media_) medium->lose_power();
}

void Machine::end_process(Death death) {
  end_.cancel();
  reap_.cancel();
  if (process_ == nullptr) return;
  was_cut_down_ = !process_->has_ended();
  process_->die(death);
  process_.reset();
}

void Machine::on_end(Event& event) {
  auto& self = static_cast<EndEvent&>(event);
  self.machine.end(self.death);
}

void Machine::process_has_ended() { world_.schedule(reap_, world_.now()); }

void Machine::on_reap(Event& event) {
  Machine& machine = static_cast<EndEvent&>(event).machine;
  machine.process_->check_nothing_left();
  machine.process_.reset();
}

}  // namespace cairn::sim
