// SPDX-License-Identifier: Apache-2.0
// MappedDrive: a drive whose chunks lie wherever a map says: thin, snapshot, spillover.
//
// A chunk is a hole, or has a place. A write to a place that is the chunk's own goes there; any
// other write takes a new place, fills what it does not cover from the old one or with zeroes, and
// maps the chunk to it when that is done. The map is kept in a Journal, whose records follow the
// data they point to: after a crash a chunk has its old place or a new one that is complete.
//
// Requests share their chunks, except those that change the map, which have them alone; nobody
// reads a place that somebody else is given.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "drive/join.h"
#include "drive/ranges.h"
#include "env/env.h"
#include "service/common/journal.h"
#include "service/common/map_guard.h"
#include "service/common/service_drive.h"

namespace cairn::drive {

class MappedDrive : public ServiceDrive {
 public:
  Extent extent_at(Lba lba, uint64_t max) const override;
  // Another one too when its blocks are as they were some time before.
  Incarnation incarnation() const override { return guard_->mixed(labelled_incarnation()); }

 protected:
  struct Place {
    uint32_t leg = 0;
    uint64_t unit = 0;
  };
  struct Spot {
    Drive* drive = nullptr;
    uint64_t block = 0;
  };
  MappedDrive(env::Env& env, std::vector<std::unique_ptr<Drive>> below, uint64_t chunk_blocks)
      : ServiceDrive(std::move(below)), env_(env), chunk_blocks_(chunk_blocks) {}

  // Who guards the map: before any request.
  void set_guard(MapGuard& guard) { guard_ = &guard; }

  // The geometry of chunks on such a drive.
  static Geometry geometry_on(const Geometry& below, uint64_t blocks, uint64_t chunk_blocks);

  // What the map says. None: a hole.
  virtual std::optional<Place> find(uint64_t chunk) const = 0;
  // Whether nobody but the chunk needs what is at its place. Not asked of holes.
  virtual bool is_own(uint64_t chunk) const = 0;
  // No drive: it is lost.
  virtual Spot spot(Place place) = 0;
  // A place that map() or forsake() gets.
  virtual task::Task<Result<Place>> allocate(task::CancelToken token) = 0;
  virtual void forsake(Place place) = 0;
  // Changes the map, with a record in the journal. A hole is not unmapped.
  virtual void map(uint64_t chunk, Place place, Journal::Needs needs) = 0;
  virtual void unmap(uint64_t chunk) = 0;
  // Whether there is room to remember one more hole; otherwise its blocks are zeroed.
  virtual bool can_unmap(uint64_t /*chunk*/) const { return true; }
  // Whether data there must be durable before it is mapped, because the journal's flush does not
  // cover it.
  virtual bool is_flushed_apart(Place /*place*/) const { return false; }
  // A change of what is at a place has ended, well or not.
  virtual void wrote(Place /*place*/) {}
  // Changes of the map so far are durable.
  virtual task::Task<Result<void>> commit(task::CancelToken token) = 0;
  // What a flush does.
  virtual task::Task<Result<void>> sync(task::CancelToken token) = 0;
  // kDenied for drives that only show.
  virtual Result<void> check_change() const { return {}; }
  // Of the drive with the map; null for drives that only show.
  virtual Claim* claim() { return nullptr; }

  // All chunks, or some, alone: nothing reads or changes them meanwhile.
  Ranges::Hold hold_alone(uint64_t chunk, uint64_t count, task::CancelToken token = {}) {
    return {ranges_, Ranges::Mode::kExclusive, chunk, count, token};
  }
  Ranges::Hold hold_all(task::CancelToken token = {}) {
    return hold_alone(0, UINT64_MAX / 2, token);
  }

  // Blocks of a chunk, and how urgent it is that they are copied.
  struct Part {
    uint64_t first = 0;
    uint64_t count = 0;
    bool durable = false;
    Priority priority = Priority::kLow;
  };
  // Copies blocks of a chunk from one place to another, or zeroes when there is none.
  task::Task<Result<void>> fill(std::optional<Place> from, Place to, Part part,
                                task::CancelToken token);
  uint64_t chunk_blocks() const { return chunk_blocks_; }
  env::Env& env() { return env_; }

 private:
  using Memory = std::span<const MutableBytes>;
  // Blocks that lie together, or are holes together.
  struct Run {
    uint64_t first = 0;
    uint64_t count = 0;
    std::optional<Place> place;
  };

  task::Task<Result<void>> run(DriveOp& op) final;
  task::Task<Result<void>> run_guarded(DriveOp& op);
  task::Task<Result<void>> look(DriveOp& op, Request::Kind kind, Memory memory);
  task::Task<Result<void>> look_at(DriveOp& op, Request::Kind kind, Memory memory, Run run);
  task::Task<Result<void>> change(DriveOp& op);
  task::Task<Result<void>> change_blocks(DriveOp& op, Memory memory);
  task::Task<Result<void>> change_run(DriveOp& op, Memory memory, Run run);
  task::Task<Result<void>> zero(DriveOp& op, Run run);
  task::Task<Result<void>> pass(DriveOp& op, Request::Kind kind, Memory memory, Run run);
  task::Task<Result<void>> replace(DriveOp& op, Memory memory, Run run);
  task::Task<Result<void>> put(DriveOp& op, Memory memory, Run run, Place place, bool durable);
  task::Task<void> join_look(DriveOp& op, Request::Kind kind, Memory memory, Run run, Join& join);
  task::Task<void> join_change(DriveOp& op, Memory memory, Run run, Join& join);
  bool needs_alone(const Request& request) const;
  bool must_be_durable(const Request& request) const {
    return request.durable || !geometry_.volatile_cache;
  }
  Run run_at(uint64_t first, uint64_t max) const;
  // A run of a change: in one chunk, unless all of its chunks are their own.
  Run change_at(uint64_t first, uint64_t max) const;

  env::Env& env_;
  const uint64_t chunk_blocks_;
  MapGuard* guard_ = nullptr;
  Ranges ranges_;  // of chunks
};

}  // namespace cairn::drive
