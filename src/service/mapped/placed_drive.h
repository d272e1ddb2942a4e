// SPDX-License-Identifier: Apache-2.0
// PlacedDrive: a drive that never overwrites what it has: compress, dedup.
//
// What is written goes to free blocks of the drive below; then the map is changed in memory, with a
// record in a journal that becomes durable after the data; blocks that the map no longer needs are
// free again when that record is durable. After a crash the map is as some record left it, and all
// it points to is there.
//
// It has a volatile cache of its own: the map, until a flush or a durable write.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "drive/ranges.h"
#include "env/env.h"
#include "service/common/journal.h"
#include "service/common/label.h"
#include "service/common/map_guard.h"
#include "service/common/service_drive.h"
#include "service/mapped/mapped_format.h"
#include "service/mapped/units.h"
#include "task/sync.h"

namespace cairn::drive {

// What opening found, or made up.
struct PlacedFound {
  Label label;
  MappedLayout layout;  // of units of one block
  bool is_new = false;
};
struct PlacedPlan {
  LabelKind kind;
  uint64_t virtual_bytes = 0;  // of a new drive; 0: what surely fits
  uint64_t grain = 1;          // blocks: sizes are a multiple; the state is a record for each
  size_t record_size = 0;
  bool may_format = false;  // ServiceParts::may_format
};
// Judges the drive below by its label and writes nothing. kInvalid: too small, or another size than
// it has; errors of read_label().
task::Task<Result<PlacedFound>> look_for_placed(env::Env& env, Drive& below, PlacedPlan plan);

class PlacedDrive : public ServiceDrive, protected JournalOwner, MapOwner {
 public:
  // Replays the map, or begins a new drive. Once, before any request.
  task::Task<Result<void>> begin();
  task::Task<void> close() override;
  // Another one too when its blocks are as they were some time before.
  Incarnation incarnation() const override { return guard_.mixed(ServiceDrive::incarnation()); }

 protected:
  using Memory = std::span<const MutableBytes>;
  struct Span {
    uint64_t first = 0;
    uint64_t count = 0;
  };
  // Requests hold `grain` blocks together: changes alone, others shared.
  PlacedDrive(env::Env& env, std::vector<std::unique_ptr<Drive>> below, PlacedFound found,
              LabelKind kind, uint64_t grain);

  // The caller holds the blocks. `memory` is all of them.
  virtual task::Task<Result<void>> read_blocks(Span blocks, Memory memory,
                                               task::CancelToken token) = 0;
  virtual task::Task<Result<void>> write_blocks(Span blocks, Memory memory,
                                                task::CancelToken token) = 0;
  virtual task::Task<Result<void>> zero_blocks(Span blocks, task::CancelToken token) = 0;
  // The map is empty, as before the first replay().
  virtual void forget_map() = 0;

  // Free units for new data; settled() follows when they are in the map, or were given back. Waits
  // for units that are on their way back. kNoSpace: there are not so many.
  task::Task<Result<std::vector<uint32_t>>> take(size_t count, task::CancelToken token);
  void settled();
  // They were not used after all.
  void give_back(std::span<const uint32_t> units);
  // The map needs it no more, as this record says.
  void release(uint32_t unit, uint64_t record);

  // Data to and from units, `memory` being a block for each; those side by side go together.
  task::Task<Result<void>> read_units(std::span<const uint32_t> units, Memory memory, size_t offset,
                                      task::CancelToken token);
  task::Task<Result<void>> write_units(std::span<const uint32_t> units, Memory memory,
                                       size_t offset, task::CancelToken token);

  const MapGuard& guard() const { return guard_; }
  env::Env& env() { return env_; }
  Journal& journal() { return *journal_; }
  Space& space() { return units_.space(); }
  const Space& space() const { return units_.space(); }
  // Units, for facts.
  uint64_t used() const { return units_.used(); }
  uint64_t unused() const { return space().free() + units_.returning(); }
  const MappedLayout& layout() const { return found_.layout; }

 private:
  task::Task<Result<void>> run(DriveOp& op) final;
  task::Task<Result<void>> run_guarded(DriveOp& op);
  Journal& map_journal() override { return *journal_; }
  task::Task<Result<void>> reload_map() override;
  task::Task<Result<void>> change(DriveOp& op);
  task::Task<Result<void>> compare(DriveOp& op);
  task::Task<Result<void>> move_units(Request::Kind kind, std::span<const uint32_t> units,
                                      Memory memory, size_t offset, task::CancelToken token);
  Ranges::Hold hold(DriveOp& op, Ranges::Mode mode);

  env::Env& env_;
  PlacedFound found_;
  const LabelKind kind_;
  const uint64_t grain_;
  Claim claim_;
  Units units_;
  std::unique_ptr<Journal> journal_;
  MapGuard guard_;
  Ranges ranges_;       // of grains
  size_t placing_ = 0;  // takers that have not settled
  task::Event placed_;  // one has
};

}  // namespace cairn::drive
