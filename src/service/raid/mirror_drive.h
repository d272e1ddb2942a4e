// SPDX-License-Identifier: Apache-2.0
// MirrorDrive: the working parts of mirror.h, which has the contract. Internal.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/buffer.h"
#include "base/error.h"
#include "base/rng.h"
#include "drive/join.h"
#include "drive/ranges.h"
#include "env/env.h"
#include "service/common/claim.h"
#include "service/common/pace.h"
#include "service/common/region_set.h"
#include "service/common/service_drive.h"
#include "service/common/write_intent.h"
#include "service/raid/leg_labels.h"
#include "service/raid/leg_reviver.h"
#include "service/raid/legs.h"
#include "service/raid/legs_claim.h"
#include "service/raid/mirror.h"
#include "service/raid/mirror_format.h"
#include "task/sync.h"

namespace cairn::drive {

struct MirrorOptions {
  size_t spares = 0;
  bool degraded = false;
  bool moved = false;
  uint64_t rate = 0;  // bytes per second of copying; 0: any
  Duration retry;
};

// What opening found, and the drive starts with.
struct MirrorFound {
  MirrorLabel label;
  Legs legs;
  RegionSet marked;     // on the legs
  bool is_new = false;  // labels and bitmap are to be written
};

// The newest label of a drive. Errors as decode_label, or of reading; kNotFound: it is blank.
task::Task<Result<MirrorLabel>> read_mirror_label(env::Env& env, Drive& drive,
                                                  task::CancelToken token);

class MirrorDrive final : public ServiceDrive,
                          private LegReviver::Owner,
                          private LegsClaim::Owner,
                          private LegLabels<MirrorLabel>::Owner,
                          private WriteIntent::Keeper {
 public:
  MirrorDrive(env::Env& env, MirrorOptions options, MirrorFound found, LateDrives* late,
              Buffer label_block, Buffer bitmap_block);

  // Puts what was found onto the legs and begins to copy what is marked. Once, before any request.
  // `newest` is the label as it was found.
  task::Task<Result<void>> begin(MirrorLabel newest);
  task::Task<void> close() override;
  MirrorStatus status() const;
  Extent extent_at(Lba lba, uint64_t max) const override;
  std::vector<Fact> facts() const override;
  // Of the mirror as such: legs come and go. Another opening when all lost something.
  Incarnation incarnation() const override {
    const uint64_t opening = losses_ == 0 ? opening_ : mix64(opening_ + losses_) | 1;
    return {.medium = (label().id[0] ^ label().id[1]) | 1,
            .opening = opening,
            .local_opening = legs_.local_opening()};
  }
  std::vector<Concern> concerns() const override;
  std::vector<Job> jobs() const override;
  task::Task<std::expected<std::string, std::string>> tell(std::vector<std::string> args) override;

 private:
  using State = Leg::State;
  using Memory = std::span<const MutableBytes>;
  struct Span {
    uint64_t first = 0;
    uint64_t count = 0;
  };
  // What became of a change, leg by leg.
  struct Outcome {
    std::array<Result<void>, kMirrorLegsMax> results;
    std::array<bool, kMirrorLegsMax> asked{};
  };

  // Requests (mirror_drive.cc).
  task::Task<Result<void>> run(DriveOp& op) override;
  // Whoever has the blocks alone already says so.
  task::Task<Result<void>> read(DriveOp& op, Request::Kind kind, Memory memory, bool is_alone);
  task::Task<Result<void>> settle(Span blocks, bool is_alone, task::CancelToken token);
  task::Task<Result<void>> change(DriveOp& op);
  task::Task<Result<void>> change_legs(Request request, Memory memory, task::CancelToken token);
  task::Task<Result<void>> flush(task::CancelToken token);
  task::Task<Result<void>> flush_for_user(task::CancelToken token);
  task::Task<void> run_on(size_t leg, Request request, Memory memory, task::CancelToken token,
                          Outcome& outcome, Join& join);
  task::Task<Result<void>> read_leg(size_t leg, Request request, Memory memory,
                                    task::CancelToken token);
  task::Task<void> write_back(size_t leg, Span blocks);
  bool may_differ(Span blocks) const;
  size_t pick(Span blocks, const std::array<bool, kMirrorLegsMax>& tried) const;

  // Legs, labels and the bitmap (mirror_state.cc).
  size_t count(State state) const { return legs_.count(state); }
  bool is_whole() const { return legs_.are_whole(); }
  // Whether any but the primary is written.
  bool has_others() const { return count(State::kLost) + 1 < legs_.size(); }
  void choose_primary();
  bool is_written(size_t leg) const { return legs_.is_written(leg); }
  void drop(size_t leg);
  // Drops legs whose drives lost something, or are others now. To be called whenever a leg has
  // answered, before anybody believes what it said.
  void look_at_legs();
  void note_loss();
  task::Task<Result<void>> judge(const Outcome& outcome, Regions regions, task::CancelToken token);
  const MirrorLabel& label() const { return labels_.label(); }
  task::Task<void> bring_up_to_date(size_t leg);
  task::Task<Result<void>> write_label_on(size_t leg, const MirrorLabel& label) override;
  bool give_up(size_t leg, const Error& why) override;
  void describe(MirrorLabel& label) const override { label.primary = primary_; }
  task::Task<Result<void>> save_marks(const RegionSet& marks, bool durable) override;
  bool may_forget() const override { return is_whole() && !has_to_copy(); }
  task::Task<Result<LegsClaim::Seen>> look_at_label(size_t leg, task::CancelToken token) override;
  void leg_is_silent(size_t leg) override { drop(leg); }
  task::Task<Result<void>> check_marks();

  // What runs in the background (mirror_resync.cc).
  void must_copy(size_t region);
  bool has_to_copy() const { return !unequal_.empty() || !lacking_.empty(); }
  void wake_copier();
  task::Task<void> copy_all();
  task::Task<bool> copy_region(size_t region, MutableBytes memory);
  uint64_t holes_in(Span blocks) const;
  task::Task<uint64_t> copy_piece(Span blocks, MutableBytes memory);
  task::Task<uint64_t> copy_alone(Span blocks, MutableBytes memory);
  task::Task<void> copy_to(size_t leg, Request request, MutableBytes memory, Outcome& outcome,
                           Join& join);
  task::Task<void> finish_copying();
  task::Task<bool> revive(size_t leg) override;
  task::Task<void> replace(size_t leg) override;
  // A drive that lacks everything gets it, in a lost leg's place: the one that is there, or a
  // spare.
  task::Task<bool> fill_anew(size_t leg, bool by_spare);
  bool fits(const Geometry& shape) const;
  task::Task<Newcomer> meet(std::unique_ptr<Drive>& drive) override;
  void wake_sweeper();
  task::Task<void> sweep();
  task::Task<bool> unmark_idle(bool all);

  Regions regions_of(Span blocks) const {
    const uint64_t first = blocks.first / label().region_blocks;
    return {first, (blocks.first + blocks.count - 1) / label().region_blocks - first + 1};
  }

  env::Env& env_;
  const MirrorOptions options_;
  Legs legs_;
  const uint64_t opening_;
  uint64_t losses_ = 0;       // times that what was not flushed may be lost on all good legs
  uint64_t losses_told_ = 0;  // of them, to those who flush
  Ranges ranges_;             // changes and copies, one at a time per block

  uint32_t primary_;  // of the legs: where good ones may differ, it is right
  WriteIntent intent_;
  RegionSet unequal_;  // good legs may differ: read from the primary one
  RegionSet lacking_;  // legs that are copied to may lack them
  LegsClaim claim_;
  LegLabels<MirrorLabel> labels_;
  const bool is_new_;
  Buffer label_block_;
  Buffer bitmap_block_;

  task::CancelSource closing_;
  LegReviver reviver_;
  Pace pace_;
  size_t copied_region_ = SIZE_MAX;  // that the copier is at
  uint32_t unreadable_ = 0;          // attempts in a row to read what is to be copied
  bool copy_again_ = false;          // something happened to it meanwhile
  bool copier_runs_ = false;
  bool sweeper_runs_ = false;
};

}  // namespace cairn::drive
