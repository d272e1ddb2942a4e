// SPDX-License-Identifier: Apache-2.0
// VolumeDrive: a volume as a Drive, for the one who has it open.
//
// A block of the volume is a block of its extent's legs. Writes go along the chain, head to tail;
// reads go to any leg that has all writes. The arbiter is asked for space when an extent is written
// for the first time, when whole extents are discarded, and when a leg turned out to lack writes:
// before the next flush succeeds, that is recorded. Nothing else needs it, so while no arbiter
// answers, I/O to what is mapped goes on; concerns() say what waits.
//
// Before an extent with several legs is changed its region is marked in the volume's log of intents
// (intent_log.h). A holder that died leaves marks, and the next one makes the legs equal before
// anybody reads them.
//
// Errors besides a Drive's: kNoSpace (the pool is full), kDenied (the lease is lost: it is final,
// somebody else may have the volume), kUnreachable (no leg answers).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "drive/drive.h"
#include "drive/join.h"
#include "drive/losses.h"
#include "drive/ranges.h"
#include "drive/scratch.h"
#include "env/env.h"
#include "service/common/pace.h"
#include "service/common/region_set.h"
#include "service/common/write_intent.h"
#include "task/cancel.h"
#include "task/gate.h"
#include "task/sync.h"
#include "volume/allocator.h"
#include "volume/arbiter_link.h"
#include "volume/copy_on_write.h"
#include "volume/intent_log.h"
#include "volume/lease.h"
#include "volume/members.h"
#include "volume/ordered_link.h"
#include "volume/reporter.h"
#include "volume/sweeper.h"
#include "volume/table.h"

namespace cairn::volume {

struct VolumeOptions {
  std::string client;      // by which boxes know this process; another opening has another
  bool take_over = false;  // OpenArgs
  Duration open_limit = 10_s;
  Duration retry = 1_s;            // of what failed in the background
  Duration rebuild_after = 600_s;  // a drive that is away so long counts as lost
  std::vector<MegaVolId> lost;     // those that do so from the start, as long as they are away
  Duration sweep = 2_s;            // marks of regions that were not written meanwhile go
  uint64_t rebuild_rate = 0;       // bytes per second; 0: any
  Duration listen = 8_s;           // an arbiter is asked so often what operators want
  AllocatorOptions allocator;
};

class VolumeDrive final : public drive::Drive,
                          private Members::Owner,
                          private IntentLog::Owner,
                          private Sweeper::Owner,
                          private CopyOnWrite::Owner {
 public:
  // What a volume stands on, if it is nobody else's: a link and a source, for instance.
  class Ground {
   public:
    virtual ~Ground() = default;
    virtual task::Task<void> close() = 0;
  };

  // The link and the source outlive it. Errors of ArbiterLink::open(); kUnreachable also when what
  // the last holder left cannot be read from any drive.
  static task::Task<Result<std::unique_ptr<VolumeDrive>>> open(env::Env& env, ArbiterLink& link,
                                                               MegaVolSource& source,
                                                               std::string volume,
                                                               VolumeOptions options,
                                                               task::CancelToken token = {});
  // Use open().
  VolumeDrive(env::Env& env, ArbiterLink& link, MegaVolSource& source, VolumeOptions options,
              Opened opened, Time sent);
  ~VolumeDrive() override;
  // Closed last by close(), and destroyed after everything else.
  void own(std::unique_ptr<Ground> ground) { ground_ = std::move(ground); }

  const drive::Geometry& geometry() const override { return geometry_; }
  drive::Extent extent_at(Lba lba, uint64_t max) const override;
  drive::Incarnation incarnation() const override;
  std::vector<drive::Fact> facts() const override;
  std::vector<drive::Concern> concerns() const override;
  std::vector<drive::Job> jobs() const override;
  // "scrub": compares the legs of all extents, and mends those that differ.
  task::Task<std::expected<std::string, std::string>> tell(std::vector<std::string> args) override;
  // Grows by what the arbiter has promised since: to exactly that.
  task::Task<Result<void>> resize(uint64_t blocks) override;
  // Flushes, and gives the volume back to the arbiter. What cannot be told it leaves the volume as
  // a crash does, and loses nothing; a loss that no flush has told of does so too.
  task::Task<void> close() override;

  Session session() const { return lease_->session(); }
  // False is final.
  bool is_held() const { return lease_->is_held(); }

  struct Counters {
    uint64_t equalized = 0;  // extents whose legs were made equal after a crash or a failed write
    uint64_t mended = 0;     // of these: that differed
    uint64_t resynced = 0;   // legs that got what they lacked
    uint64_t relocated = 0;  // legs that went to another drive
    uint64_t at_once = 0;    // writes that a box did on all legs with one command
    uint64_t snapshots = 0;  // that were made of it
    uint64_t unshared = 0;   // extents that were copied before they were written
  };
  const Counters& counters() const { return counters_; }

 private:
  using Memory = std::span<const MutableBytes>;
  using Request = drive::Request;
  // A part of a request: blocks of one extent, and where they begin in the request.
  struct Part {
    uint32_t extent = 0;
    uint64_t offset = 0;  // in blocks of the extent
    uint64_t blocks = 0;
    uint64_t at = 0;  // in blocks of the request
  };
  // A leg that gets what it lacks, and every write meanwhile.
  struct Copying {
    uint32_t extent = 0;
    MegaVolId mega_vol;
    bool has_failed = false;
  };
  enum class Step : uint8_t { kDone, kMore, kWait };

  // Opening and closing (volume_open.cc).
  task::Task<Result<void>> begin(task::CancelToken token);
  task::Task<Result<void>> load_table(task::CancelToken token);
  task::Task<Result<void>> load_intents(task::CancelToken token);
  task::Task<Result<std::optional<IntentRecord>>> newest_intents(task::CancelToken token);
  void note_marks(const IntentRecord& record, drive::RegionSet& marks);
  void renewed(const Renewed& renewed);
  void set_extents(uint32_t extents);
  task::Task<bool> give_back();

  // The usual requests (volume_direct.cc): a plain part is of one extent that has a place and all
  // of whose legs have what they should. What is not done by these is done by serve().
  void start(drive::DriveOp& op) override;
  bool run_now(const Request& request, Memory memory, Result<void>& done) override;
  std::optional<Part> plain_part(const Request& request) const;
  bool is_plain(uint32_t extent, bool is_write) const;
  Member* plain_member(const Leg& leg, Part part) const;
  Request on_leg(const Request& request, const Leg& leg, Part part) const;
  bool has_answered(uint32_t extent, Member& member);
  bool run_part_now(Part part, const Request& request, Memory memory, Result<void>& done);
  task::Task<void> read_plain(drive::DriveOp& op, Part part);
  task::Task<void> write_plain(drive::DriveOp& op, Part part);
  bool can_write_at_once(const MapEntry& entry, Part part) const;
  task::Task<Result<void>> write_at_once(MapEntry entry, Part part, drive::DriveOp& op);

  // Requests (volume_drive.cc).
  void cancel(drive::DriveOp&) override {}
  task::Task<void> serve(drive::DriveOp& op);
  task::Task<Result<void>> run(drive::DriveOp& op);
  task::Task<Result<void>> run_alone(drive::DriveOp& op, drive::Ranges::Mode mode);
  task::Task<Result<void>> run_parts(Request request, Memory memory, task::CancelToken token);
  task::Task<Result<void>> compare_parts(Request request, Memory memory, task::CancelToken token);
  task::Task<Result<void>> clear_parts(Request request, task::CancelToken token);
  task::Task<Result<void>> clear_part(Part part, Request request, task::CancelToken token);
  task::Task<Result<void>> settle_parts(const Request& request, task::CancelToken token);
  bool may_differ(const Request& request) const;
  bool has_places(const Request& request) const;
  bool has_copies(uint32_t extent) const;
  bool has_copies(const Request& request) const;
  Part part_at(const Request& request, uint64_t done) const;
  Result<void> usable() const override;
  uint64_t first_block(uint32_t extent) const {
    return (extent - kFirstDataExtent) * extent_blocks_;
  }

  // Reading and writing legs (volume_legs.cc).
  task::Task<Result<void>> read_part(Part part, Request request, Memory memory,
                                     task::CancelToken token);
  task::Task<Result<void>> run_on(Member& member, const Leg& leg, Part part, Request request,
                                  Memory memory, task::CancelToken token);
  size_t pick(uint32_t extent, const std::array<bool, kReplicasMax>& tried) const;
  task::Task<Result<void>> write_part(Part part, Request request, Memory memory,
                                      task::CancelToken token);
  bool has_new_members(MapEntry entry) const;
  task::Task<Result<void>> meet_members(MapEntry entry, task::CancelToken token) override;
  task::Task<Result<void>> write_chain(Part part, Request request, Memory memory,
                                       task::CancelToken token);
  task::Task<Result<void>> release(uint32_t extent, task::CancelToken token);
  task::Task<Result<void>> learn(uint32_t extent);
  task::Task<Result<void>> flush_for_user(task::CancelToken token);
  task::Task<Result<void>> flush_members(task::CancelToken token);
  task::Task<void> flush_member(Member& member, task::CancelToken token, drive::Join& join);

  // What legs lack (volume_state.cc).
  void distrust(uint32_t extent, MegaVolId mega_vol);
  bool has_other(uint32_t extent, MegaVolId mega_vol) const;
  bool has_only_leg(MegaVolId mega_vol) const;
  void note_answer(const Error& error) override;
  void member_lost_writes(Member& member) override;
  void member_changed(Member& member) override;
  task::Task<Result<void>> confirm(task::CancelToken token) override;
  task::Task<Result<void>> save_intents(Bytes record, uint64_t slot) override;
  uint64_t region_of(uint32_t extent) const { return extent / region_extents_; }
  // Sweeper::Owner.
  drive::WriteIntent* intents() override { return intents_.get(); }
  bool has_unequal(uint64_t region) const override;
  task::Task<Result<void>> flush_legs(task::CancelToken token) override {
    return flush_members(token);
  }
  bool is_reported() const override { return reporter_.is_known(); }
  void must_equalize(uint32_t extent);

  // Snapshots are made (volume_share.cc).
  task::Task<void> attend();
  task::Task<bool> freeze(std::string snapshot);
  task::Task<Result<void>> ask_to_freeze(std::string snapshot, bool is_ready);
  task::Task<Result<void>> equalize_all(task::CancelToken token);
  task::Task<Result<void>> make_durable(task::CancelToken token);
  // CopyOnWrite::Owner.
  bool may_differ(uint32_t extent) const override { return unequal_.has(extent); }
  task::Task<Result<void>> read_blocks(uint32_t extent, uint64_t offset, MutableBytes into,
                                       task::CancelToken token) override;
  task::Task<Result<void>> flush_one(Member& member, task::CancelToken token) override;
  void copy_ended(uint32_t extent, bool is_own) override;

  // Healing (volume_heal.cc).
  void must_heal(uint32_t extent);
  void find_work();
  bool needs_healing(uint32_t extent) const;
  task::Task<void> heal();
  task::Task<bool> heal_pass(bool urgent);
  task::Task<Step> heal_extent(uint32_t extent);
  task::Task<Step> heal_leg(uint32_t extent, Leg leg);
  task::Task<Step> relocate(Relocation what);
  task::Task<Step> ask_to_relocate(Relocation what);
  bool is_lost(const Member* member) const;

  // Copying (volume_copy.cc).
  task::Task<Step> resync(uint32_t extent, Leg leg);
  bool has_leg(uint32_t extent, const Leg& leg) const;
  struct CopyWindows;
  task::Task<Result<void>> copy_all(uint32_t extent, Leg to, Member& member);
  task::Task<void> copy_some(CopyWindows& windows, drive::Join& join);
  task::Task<Result<void>> copy_window(const CopyWindows& windows, uint64_t at,
                                       MutableBytes memory);
  task::Task<bool> finish_resync(uint32_t extent, Leg leg, Member& member, uint64_t losses);
  std::optional<MegaVolId> surplus(uint32_t extent, std::optional<MegaVolId> keep) const;
  task::Task<Result<void>> equalize(uint32_t extent, task::CancelToken token) override;
  task::Task<Result<bool>> equalize_window(Part part, std::span<drive::Scratch> memory,
                                           task::CancelToken token);
  task::Task<Result<uint64_t>> scrub();

  std::unique_ptr<Ground> ground_;  // null: others own it
  env::Env& env_;
  OrderedLink link_;
  const VolumeOptions options_;
  const MegaVolPool pool_;
  const uint64_t extent_blocks_;
  const Opened opened_;
  uint32_t region_extents_ = 1;
  drive::Geometry geometry_;
  uint32_t replicas_;
  uint32_t promised_extents_;  // as the arbiter said last
  uint64_t opening_ = 0;
  Table table_;
  std::unique_ptr<Lease> lease_;
  Members members_;
  Allocator allocator_;
  IntentLog log_;
  Reporter reporter_;
  Sweeper sweeper_;
  std::unique_ptr<drive::WriteIntent> intents_;  // null: no extent has several legs
  drive::Ranges ranges_;
  // Extents, not blocks, whose place somebody changes: who heals, copies or clears them. Held
  // before their blocks are.
  drive::Ranges changing_;
  drive::Losses losses_;
  drive::RegionSet unequal_;  // extents whose legs may differ
  drive::RegionSet heal_;     // extents that lack something
  uint64_t healed_ = 0;       // since there was nothing to heal
  bool lacks_space_ = false;  // for a leg in place of a lost one
  std::optional<Copying> copying_;
  std::optional<uint32_t> splitting_;  // the extent that gets a second leg although one is enough
  CopyOnWrite copy_on_write_;
  drive::Pace pace_;
  Counters counters_;
  bool is_begun_ = false;  // what the last holder left is known
  bool healer_runs_ = false;
  bool was_used_ = false;  // since a leg was last copied
  task::Event heal_moved_;
  task::CancelSource closing_;
  task::Gate requests_;
  task::Gate gate_;
};

}  // namespace cairn::volume
