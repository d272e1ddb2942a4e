// SPDX-License-Identifier: Apache-2.0
// Machine: what of a node outlives its processes: clock, disks, address, power. Internal.
//
// Nodes beside each other are processes of one machine: one of them, their `box`, has what they
// share.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "env/address.h"
#include "env/env.h"
#include "world/sim/clock.h"
#include "world/sim/event_queue.h"
#include "world/sim/options.h"
#include "world/sim/process.h"
#include "world/sim/shared.h"
#include "world/sim/world.h"

namespace cairn::sim {

class Medium;
class Network;

class Machine {
 public:
  // `beside`: another of the same box, or null.
  Machine(World& world, Network& network, uint32_t id, std::string name, NodeOptions options,
          Machine* beside);
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  uint32_t id() const { return origin_.node; }
  const std::string& name() const { return name_; }
  const NodeOptions& options() const { return options_; }
  World& world() { return world_; }
  Network& network() { return network_; }
  Machine& box() { return box_; }
  bool is_beside(const Machine& other) const { return &box_ == &other.box_; }
  // Of the box; this one too.
  const std::vector<Machine*>& residents() const { return box_.residents_; }
  Clock& clock() { return box_.clock_; }
  Holding::Table& descriptors() { return descriptors_; }
  // For events that are about this machine and do not stop when its process does.
  const Origin& origin() const { return origin_; }
  // A fact about this machine for the trace; `what` is a string literal.
  void record(const char* what, uint64_t a = 0, uint64_t b = 0) {
    world_.trace().record(world_.now(), origin_, what, a, b);
  }
  // 10.0.0.(id + 1), and on from there.
  env::Address address(uint16_t port) const;

  // False from a power loss until the next start.
  bool is_up() const { return is_up_; }
  // How many programs were started so far.
  uint64_t lives() const { return lives_; }
  // Null when no program runs.
  Process* process() { return process_.get(); }
  // Made empty at first use; stays for the whole run.
  Medium& medium(const std::string& path);
  // Ends all faults of its disks, and the probabilities of new ones.
  void heal_disks();
  // True when its program was ended by a crash or a kill and not started again.
  bool was_cut_down() const { return was_cut_down_ && process_ == nullptr; }

  // Runs `program` from now on; none may be running.
  void start(env::Program program);
  // The last program again.
  void restart();
  // Ends the process now, or as soon as its own code is off the stack. Power loss ends all of the
  // box, the disks' volatile contents, and the answers to others.
  void end(Death death);
  // The program has returned; the process goes when the current event is over.
  void process_has_ended();

 private:
  struct EndEvent : Event {
    EndEvent(const EventKind& kind, Machine& owner) : Event(kind, owner.origin_), machine(owner) {}
    Machine& machine;
    Death death = Death::kKill;
  };
  static const EventKind kReap;
  static const EventKind kEnd;
  static void on_reap(Event& event);
  static void on_end(Event& event);
  bool is_running_code(Death death) const;
  void end_process(Death death);

  World& world_;
  Network& network_;
  Machine& box_;
  std::vector<Machine*> residents_;  // of the box
  Origin origin_;
  std::string name_;
  NodeOptions options_;
  Clock clock_;
  Holding::Table descriptors_;
  std::map<std::string, std::unique_ptr<Medium>> media_;
  env::Program program_;
  std::unique_ptr<Process> process_;
  uint64_t lives_ = 0;
  bool is_up_ = true;
  bool was_cut_down_ = false;
  EndEvent reap_;
  EndEvent end_;
};

}  // namespace cairn::sim
