// SPDX-License-Identifier: Apache-2.0
// What processes of one simulated machine share, and their holds on it. Internal.
//
// A thing lives while anybody holds it: descriptors, mappings, opened signals, and bytes on their
// way that bring it. A process that dies lets go of all of its holds.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/list.h"
#include "env/memory.h"
#include "env/sharing.h"
#include "world/sim/event_queue.h"
#include "world/sim/process.h"

namespace cairn::sim {

class Core;
class Machine;
class SimSignal;

class Shared {
 public:
  virtual ~Shared() = default;
};
using SharedHold = std::shared_ptr<Shared>;

// Memory of whole pages.
class SharedPages final : public Shared {
 public:
  static constexpr uint64_t kPage = 4096;

  SharedPages(std::unique_ptr<env::Memory> memory, uint64_t size)
      : memory_(std::move(memory)), size_(size) {}

  MutableBytes bytes() const { return memory_->bytes(); }
  uint64_t size() const { return size_; }
  // What is cut off reads as zeroes for those who have it mapped.
  void shrink(uint64_t size);

 private:
  std::unique_ptr<env::Memory> memory_;
  uint64_t size_;
};

// A signal that all who opened it share.
class Bell final : public Shared {
 public:
  explicit Bell(Machine& machine);

  // Of a process that lives.
  void ring(Process& by);
  // It was rung since the last take.
  bool take() { return std::exchange(is_rung_, false); }
  void add_waiter(SimSignal& signal) { waiting_.push_back(signal); }

 private:
  struct RingEvent : Event {
    RingEvent(Bell& owner, Machine& machine);
    Bell& bell;
  };
  static const EventKind kRing;
  static void on_ring(Event& event);

  bool is_rung_ = false;
  List<SimSignal, Bell> waiting_;
  RingEvent ring_;
};

// A process's hold on a thing, behind a Descriptor.
class Holding final : public Mortal {
 public:
  // The owner of all descriptors of a machine.
  class Table final : public env::Descriptor::Owner {
   public:
    env::Descriptor add(Process& process, SharedHold thing);
    void close_descriptor(int64_t handle) override;
  };
  // Null: none any more, its process is dead. `descriptor` must be valid.
  static const SharedHold& of(const env::Descriptor& descriptor);

  void die(Death) override { thing_.reset(); }
  const char* what() const override { return "descriptor"; }

 private:
  Holding(Process& process, SharedHold thing) : thing_(std::move(thing)) { join(process); }
  SharedHold thing_;
};

// After its process has died, nothing that is still written here is seen by others.
class SimMapping final : public env::SharedMemory, public Mortal {
 public:
  SimMapping(Process& process, std::shared_ptr<SharedPages> pages, const env::SharedRange& range);
  ~SimMapping() override;

  bool is_whole() const override { return range_.offset + range_.size <= pages_->size(); }
  void die(Death death) override;
  const char* what() const override { return "shared memory"; }

 private:
  std::shared_ptr<SharedPages> pages_;
  env::SharedRange range_;
  std::vector<std::byte> at_death_;
};

class SimSignal final : public env::Signal, public Mortal, public ListHook<Bell> {
 public:
  SimSignal(Core& core, std::shared_ptr<Bell> bell);
  ~SimSignal() override;

  void raise() override;
  void answer();
  void die(Death death) override;
  const char* what() const override { return "signal"; }

 private:
  void start_wait(env::SignalOp& op) override;
  void cancel_wait(env::SignalOp& op) override;

  Core& core_;
  std::shared_ptr<Bell> bell_;
  env::SignalOp* waiting_ = nullptr;
};

}  // namespace cairn::sim
