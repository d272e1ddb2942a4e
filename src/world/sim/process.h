// SPDX-License-Identifier: Apache-2.0
// Process: one life of a node's program, from start to its end or death. Internal.
//
// How it dies. Frames with operations in flight are never destroyed, so a process that crashes is
// cut off from the world first: everything it has open dies, every operation in flight completes
// with kCancelled, every new one fails at once. Then its events, and only its, run to the end in a
// queue of their own: its timers fire in order, its clock jumps along, no true time passes and
// nothing it does has an effect outside. When its program has returned, nothing is left of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/list.h"
#include "base/rng.h"
#include "base/units.h"
#include "env/env.h"
#include "task/task.h"
#include "world/sim/event_queue.h"
#include "world/sim/world.h"

namespace cairn::sim {

class Core;
class Machine;

enum class Death : uint8_t {
  kPowerLoss,  // the machine stops: peers hear nothing, disks lose what was not durable
  kKill,       // the process stops: the kernel closes its connections, disks keep what completed
};

// What every operation of a dead process fails with.
constexpr Error crashed() { return {Errc::kCancelled, "crashed"}; }

class Process;

// Something a process has open, which has to end its operations when the process dies.
class Mortal : public ListHook<Mortal> {
 public:
  // Completes all operations in flight with crashed(), leaves the world as `death` says, and fails
  // every later call. Called once.
  virtual void die(Death death) = 0;
  virtual const char* what() const = 0;

 protected:
  Mortal() = default;
  ~Mortal() { leave(); }
  // It belongs to `process` from here to leave(), which comes before the process goes.
  void join(Process& process);
  void leave();

 private:
  Process* process_ = nullptr;
};

class Process {
 public:
  // `program` must outlive it. `life` counts the node's processes.
  Process(Machine& machine, const env::Program& program, uint64_t life);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  Machine& machine() { return machine_; }
  World& world() { return world_; }
  Core& core(uint32_t index) { return *cores_[index]; }
  uint32_t core_count() const { return static_cast<uint32_t>(cores_.size()); }
  // Draws that are the simulator's, not the program's.
  Rng& rng() { return rng_; }

  bool is_dead() const { return is_dead_; }
  // The program has returned.
  bool has_ended() const { return has_ended_; }
  // True while its code is on the stack; it cannot die then.
  bool is_running_code() const { return running_code_ > 0; }

  // True time as this process knows it: the world's, or its own after death.
  Time now() const { return is_dead_ ? after_death_now_ : world_.now(); }
  void schedule(Event& event, Time when);

  void request_stop();
  void pause();
  void resume();
  bool is_paused() const { return is_paused_; }

  // See above. The machine has decided what its disks keep.
  void die(Death death);
  // After the end: CHECKs that it left nothing behind.
  void check_nothing_left();

  // For cores: around running its code. Leaving notices the end of the program.
  void enter_code() { ++running_code_; }
  void leave_code();

 private:
  friend class Mortal;
  struct StartEvent;
  static constexpr size_t kStepsAfterDeathMax = 1'000'000;

  void run_to_the_end();
  std::string leftovers();

  Machine& machine_;
  World& world_;
  const env::Program& program_;
  Rng rng_;
  std::vector<std::unique_ptr<Core>> cores_;
  List<Mortal, Mortal> mortals_;  // those that can still die
  size_t mortal_count_ = 0;
  task::Task<void> body_;
  std::unique_ptr<StartEvent> start_;
  EventQueue held_;         // while paused
  EventQueue after_death_;  // and after death
  Time after_death_now_;
  uint32_t running_code_ = 0;
  bool is_paused_ = false;
  bool is_dead_ = false;
  bool has_ended_ = false;
};

}  // namespace cairn::sim
