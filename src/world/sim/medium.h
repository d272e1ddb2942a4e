// SPDX-License-Identifier: Apache-2.0
// Medium: a simulated disk as its node's tests see it. It survives crashes and restarts.
//
//   cluster.node("a").disk("data").latent_error(8192);
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/rng.h"
#include "base/units.h"
#include "env/disk.h"
#include "world/sim/durability.h"
#include "world/sim/event_queue.h"
#include "world/sim/model/model.h"
#include "world/sim/model/tags.h"
#include "world/sim/options.h"
#include "world/sim/world.h"

namespace cairn::sim {

struct DiskRange {
  uint64_t offset = 0;
  uint64_t length = UINT64_MAX;  // by default: all of it
};

class Medium {
 public:
  Medium(World& world, Rng rng);
  Medium(const Medium&) = delete;
  Medium& operator=(const Medium&) = delete;

  // False until a program, or create(), has made the file.
  bool exists() const { return exists_; }
  uint64_t size() const { return size_; }
  uint32_t block_size() const { return store_.block_size(); }
  // Makes a disk full of zeroes; none may exist.
  void create(uint64_t size);

  // Faults, until heal() unless said otherwise. Reads or writes that touch the range fail with kIo.
  void fail_reads(DiskRange range = {}) { failing_reads_.push_back(range); }
  void fail_writes(DiskRange range = {}) { failing_writes_.push_back(range); }
  // Every flush fails with kIo; some of what it should have made durable never will be.
  void fail_flushes() { fails_flushes_ = true; }
  // The block at this offset cannot be read until it is rewritten; heal() does not help.
  void latent_error(uint64_t offset) { latent_.insert(offset / block_size()); }
  // Nothing completes, except by cancellation, for so long.
  void stall(Duration duration);
  // Writes fail with kNoSpace, after a part of them was stored.
  void full(bool is_full = true) { is_full_ = is_full; }
  // Inverts `bits` bits anywhere in the range, silently and for good.
  void corrupt(DiskRange range, uint32_t bits = 1);
  // Ends all of the above but latent errors and damage done.
  void heal();
  // Asked of each request right before it takes effect: an error, and it fails with that. A write
  // has then changed any subset of its blocks; a flush has made nothing durable, and the next one
  // can.
  using Judge = std::function<Result<void>(const env::DiskOp::Request&)>;
  void set_judge(Judge judge) { judge_ = std::move(judge); }
  // Replaces the probabilities given in the cluster's options.
  void set_faults(const DiskFaults& faults) { faults_ = faults; }

  // The contents as a read would see them, or a change of them behind the program's back.
  void peek(uint64_t offset, MutableBytes into) const { store_.read(offset, into); }
  void poke(uint64_t offset, Bytes from) { store_.overwrite(offset, from); }
  // As env::Disk::next_data().
  env::Disk::Extent next_data(uint64_t offset) const;
  // Blocks that would be at stake if power failed now.
  size_t volatile_block_count() const { return store_.volatile_block_count(); }

  // For SimDisk and Machine from here on.

  // One request in flight.
  struct Request {
    env::DiskOp::Request what;
    std::span<const MutableBytes> pieces;
    DurableStore::Mark mark = 0;  // of a flush: what it covers
    Duration slower;              // than the model says
  };
  // Told when the model has served a request whose time it did not know.
  class Waiter {
   public:
    virtual void served() = 0;

   protected:
    ~Waiter() = default;
    friend Medium;
    uint64_t tag = UINT64_MAX;  // while it waits
  };
  // When a request that starts now completes, unless a stall keeps it longer. Nothing: `waiter` is
  // told, unless forget() comes first.
  std::optional<Time> start(Request& request, Waiter& waiter);
  void forget(Waiter& waiter);
  Time stalled_until() const { return stalled_until_; }
  // Does what the request asks, as far as faults allow.
  Result<void> execute(const Request& request);
  // The request ends early: any subset of its blocks has changed.
  void execute_partly(const Request& request);

  // kNotFound, kExists, kInvalid as Env::open_disk. Then the caller has it until close(), alone or,
  // with the same block size, with other readers when read-only and with anybody without a lock.
  Result<void> open(const env::DiskOptions& options);
  void close() { --openers_; }
  // What is not durable is lost, block by block at random.
  void lose_power();

 private:
  static bool touches(const std::vector<DiskRange>& ranges, const env::DiskOp::Request& request);
  Result<void> read(const Request& request);
  Result<void> write(const Request& request);
  Result<void> flush(const Request& request);
  void resize(uint64_t size);
  // Stores the request's blocks for which `wanted(index)` holds, moved by `shift` bytes.
  template <class F>
  void store_blocks(const Request& request, int64_t shift, F wanted);
  bool draw(double probability) { return probability > 0 && rng_.bernoulli(probability); }
  Duration draw_up_to(Duration max) {
    return {static_cast<int64_t>(rng_.below(static_cast<uint64_t>(max.ns) + 1))};
  }

  struct ModelEvent : Event {
    explicit ModelEvent(Medium& owner) : Event(kModelEvent, kOrigin), medium(owner) {}
    Medium& medium;
  };
  static const EventKind kModelEvent;
  static const Origin kOrigin;  // drives are hardware: no node's pause stops them
  void advance_model();

  World& world_;
  Rng rng_;
  std::unique_ptr<DiskModel> model_;
  ModelEvent model_event_;
  Tags<Waiter> waiting_;
  std::vector<uint64_t> completed_;
  DiskFaults faults_;
  Judge judge_;
  DurableStore store_;
  uint64_t size_ = 0;
  bool exists_ = false;
  uint32_t openers_ = 0;
  bool is_shared_ = false;  // by those who have it open
  bool is_full_ = false;
  bool fails_flushes_ = false;
  Time stalled_until_;
  std::vector<DiskRange> failing_reads_;
  std::vector<DiskRange> failing_writes_;
  std::set<uint64_t> latent_;  // block numbers
};

}  // namespace cairn::sim
