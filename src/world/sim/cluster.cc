// SPDX-License-Identifier: Apache-2.0
#include "world/sim/cluster.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/units.h"
#include "env/address.h"
#include "env/env.h"
#include "world/sim/core.h"
#include "world/sim/event_queue.h"
#include "world/sim/machine.h"
#include "world/sim/network.h"
#include "world/sim/options.h"
#include "world/sim/process.h"
#include "world/sim/world.h"

namespace cairn::sim {

Node::Node(std::unique_ptr<Machine> machine) : machine_(std::move(machine)) {}
Node::~Node() = default;

const std::string& Node::name() const { return machine_->name(); }
env::Address Node::address(uint16_t port) const { return machine_->address(port); }
void Node::start(env::Program program) { machine_->start(std::move(program)); }
void Node::restart() { machine_->restart(); }
void Node::crash() { machine_->end(Death::kPowerLoss); }
void Node::kill() { machine_->end(Death::kKill); }

void Node::step_clock(Duration by) {
  machine_->record("node.step_clock", static_cast<uint64_t>(by.ns));
  machine_->clock().step(by);
}

Medium& Node::disk(const std::string& path) { return machine_->medium(path); }

void Node::stop() {
  machine_->record("node.stop");
  if (Process* process = machine_->process()) process->request_stop();
}

bool Node::is_running() const { return machine_->process() != nullptr; }

bool Node::is_down() const { return machine_->was_cut_down(); }

bool Node::is_beside(const Node& other) const { return machine_->is_beside(*other.machine_); }

void Node::pause() {
  machine_->record("node.pause");
  if (Process* process = machine_->process()) process->pause();
}

void Node::resume() {
  machine_->record("node.resume");
  if (Process* process = machine_->process()) process->resume();
}

bool Node::is_paused() const {
  Process* process = machine_->process();
  return process != nullptr && process->is_paused();
}

// Something that a test wants done at a time.
struct Cluster::ActionEvent : Event {
  explicit ActionEvent(Cluster& owner) : Event(kAction, kOrigin), cluster(owner) {}
  static void run(Event& event) {
    auto& self = static_cast<ActionEvent&>(event);
    const std::function<void()> what = std::exchange(self.action, nullptr);
    self.cluster.free_actions_.push_back(&self);
    what();
  }
  static const EventKind kAction;
  static const Origin kOrigin;
  Cluster& cluster;
  std::function<void()> action;
};
const EventKind Cluster::ActionEvent::kAction("cluster.action", &ActionEvent::run);
const Origin Cluster::ActionEvent::kOrigin;

Cluster::Cluster(const ClusterOptions& options)
    : world_(std::make_unique<World>(options)), network_(std::make_unique<Network>(*world_)) {
  const CheckHook speak = [](void* context) {
    std::fputs(static_cast<Cluster*>(context)->report().c_str(), stderr);
  };
  previous_hook_ = set_check_hook({speak, this});
}

Cluster::~Cluster() {
  for (Node* node : nodes_) node->kill();
  actions_.clear();
  network_.reset();
  set_check_hook(previous_hook_);
}

uint64_t Cluster::seed() const { return world_->options().seed; }
const ClusterOptions& Cluster::options() const { return world_->options(); }

Node& Cluster::node(std::string_view name) {
  const auto known = by_name_.find(name);
  return known != by_name_.end() ? *known->second : node(name, NodeOptions{});
}

Node& Cluster::node(std::string_view name, const NodeOptions& options) {
  CHECK(!by_name_.contains(name), "a node gets its options when it is first named");
  Machine* beside = options.beside.empty() ? nullptr : node(options.beside).machine_.get();
  const auto id = static_cast<uint32_t>(nodes_.size());
  auto machine =
      std::make_unique<Machine>(*world_, *network_, id, std::string(name), options, beside);
  network_->add(*machine);
  world_->trace().add_node(std::string(name));
  auto& node = by_name_[std::string(name)];
  node.reset(new Node(std::move(machine)));
  nodes_.push_back(node.get());
  return *node;
}

void Cluster::partition(std::string_view a, std::string_view b) {
  partition_one_way(a, b);
  partition_one_way(b, a);
}

void Cluster::partition_one_way(std::string_view from, std::string_view to) {
  Node& sender = node(from);
  Node& receiver = node(to);
  network_->block(*sender.machine_, *receiver.machine_);
}

void Cluster::isolate(std::string_view name) {
  Node& alone = node(name);
  for (Node* other : nodes_) {
    if (other != &alone) partition(name, other->name());
  }
}

void Cluster::clog(std::string_view a, std::string_view b, Duration duration) {
  Node& one = node(a);
  Node& other = node(b);
  network_->clog(*one.machine_, *other.machine_, duration);
  network_->clog(*other.machine_, *one.machine_, duration);
}

void Cluster::heal(std::string_view a, std::string_view b) {
  Node& one = node(a);
  Node& other = node(b);
  network_->heal(*one.machine_, *other.machine_);
  network_->heal(*other.machine_, *one.machine_);
}

void Cluster::heal() { network_->heal_all(); }

void Cluster::reset_streams(std::string_view a, std::string_view b) {
  Node& one = node(a);
  Node& other = node(b);
  network_->reset_connections(*one.machine_, *other.machine_);
}

void Cluster::recover() {
  heal();
  network_->set_faults({});
  world_->set_disk_faults({});
  for (Node* node : nodes_) {
    node->machine_->heal_disks();
    node->resume();
    if (node->is_down()) node->restart();
  }
}

Time Cluster::now() const { return world_->now(); }

// A test may have woken a program's tasks by hand, for instance by setting an Event.
void Cluster::wake_all() {
  for (Node* node : nodes_) {
    Process* process = node->machine_->process();
    if (process == nullptr) continue;
    for (uint32_t i = 0; i < process->core_count(); ++i) {
      if (!process->core(i).is_idle()) process->core(i).wake();
    }
  }
}

void Cluster::run_for(Duration duration) {
  wake_all();
  const Time end = world_->now() + duration;
  while (world_->step(end)) {
  }
  world_->advance_to(end);
}

bool Cluster::run_until(const std::function<bool()>& predicate, Duration limit) {
  wake_all();
  const Time end = world_->now() + limit;
  while (!predicate()) {
    if (world_->step(end)) continue;
    world_->advance_to(end);
    return false;
  }
  return true;
}

bool Cluster::run_until_idle(Duration limit) {
  wake_all();
  const Time end = world_->now() + limit;
  while (world_->step(end)) {
  }
  if (world_->queue().empty()) return true;
  world_->advance_to(end);
  return false;
}

void Cluster::after(Duration delay, std::function<void()> action) {
  if (free_actions_.empty()) {
    actions_.push_back(std::make_unique<ActionEvent>(*this));
    free_actions_.push_back(actions_.back().get());
  }
  ActionEvent& event = *free_actions_.back();
  free_actions_.pop_back();
  event.action = std::move(action);
  world_->schedule(event, world_->now() + delay);
}

bool Cluster::was_cut() const { return network_->was_cut(); }

uint64_t Cluster::events_run() const { return world_->events_run(); }
uint64_t Cluster::trace_hash() const { return world_->trace().hash(); }
std::string Cluster::trace_tail() const { return world_->trace().tail(); }

std::string Cluster::report() const {
  return fmt::format(
      "simulation: seed {} at {:.9f} s, {} events, trace hash {:016x}\n"
      "repeat with: CAIRN_SEED={}\n"
      "last events (oldest first):\n{}",
      seed(), Duration{now().ns}.seconds(), events_run(), trace_hash(), seed(), trace_tail());
}

}  // namespace cairn::sim
