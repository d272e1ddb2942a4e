// SPDX-License-Identifier: Apache-2.0
// Arbiter: the control plane of one pool, for as long as it leads.
//
// It has the pool (pool_store.h). When a commit fails, or may have failed, it does nothing more:
// whoever runs it (arbiter_host.h) leads anew and reads the store again. Calls of clients are those
// of ArbiterLink, whose errors these have; the others are for operators, and besides give
//   kInvalid  a name, a size or a number is out of range
//   kExists, kNotFound, kNoSpace as each says.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "arbiter/cleaner.h"
#include "arbiter/fence.h"
#include "arbiter/fencing.h"
#include "arbiter/own_counters.h"
#include "arbiter/pool.h"
#include "arbiter/pool_store.h"
#include "arbiter/record_format.h"
#include "arbiter/tenant.h"
#include "arbiter/terms_judge.h"
#include "env/env.h"
#include "meta/election.h"
#include "meta/store.h"
#include "task/cancel.h"
#include "task/gate.h"
#include "task/sync.h"
#include "volume/arbiter_link.h"
#include "volume/mega_vol.h"

namespace cairn::arbiter {

struct ArbiterOptions {
  std::string host;  // names this process: boxes know each leadership by a name of its own
  // How long a client goes on without an arbiter. It outlasts an arbiter that is away for a minute.
  Duration lease = 120_s;
  Duration retry = 1_s;                          // of what failed in the background
  uint64_t extent_bytes = volume::kExtentBytes;  // of a pool that is new
  Duration snapshot_limit = 20_s;                // for whoever has the volume open to stop writing
};

// What an arbiter stands on. All of it outlives it.
struct ArbiterParts {
  meta::Store& store;
  volume::MegaVolSource& source;
  Fence& fence;
  const LoadSource* loads = nullptr;  // what was measured, besides its own counters
  const TermsJudge* judge = nullptr;  // null: every floor is believed
  Tenant* tenant = nullptr;           // null: nobody in this process has volumes open
};

struct AddArgs {
  std::string uri;
  std::string box;   // empty, or a name
  std::string rack;  // the same
  int32_t preference = 0;
  bool may_format = false;  // although something is on the drive
};

struct CreateArgs {
  std::string name;
  uint64_t bytes = 0;  // rounded up to extents
  uint32_t replicas = 1;
  volume::Weights weights;
  share::Terms terms;
};

class Arbiter final : public volume::ArbiterLink {
 public:
  // Reads the pool, and makes one where there is none. The leadership outlives it. kCorrupt,
  // kUnsupported: the store has something that this version does not understand; errors of it.
  static task::Task<Result<std::unique_ptr<Arbiter>>> load(env::Env& env, ArbiterParts parts,
                                                           meta::Leadership& leadership,
                                                           ArbiterOptions options,
                                                           task::CancelToken token = {});
  // Use load().
  Arbiter(env::Env& env, ArbiterParts parts, meta::Leadership& leadership, ArbiterOptions options);
  ~Arbiter() override;

  const Pool& pool() const { return pool_; }
  const TermsJudge* judge() const { return parts_.judge; }
  // False is final: another may lead, and know better.
  bool is_working() const { return store_.is_working(); }
  // Requested when it can do nothing more.
  task::CancelToken broken_token() { return store_.broken_token(); }
  // Calls end soon with kUnreachable.
  void stop() { store_.stop(); }
  // Ends what it does by itself. Once, with no call in flight.
  task::Task<void> close();

  // Drives (arbiter_drives.cc).
  // kExists: it is a member; kInvalid also when it holds something and may not be formatted;
  // kUnsupported: nobody can be fenced at its box.
  task::Task<Result<MegaVolInfo>> add_mega_vol(AddArgs args, task::CancelToken token = {});
  // It gets no more extents, and whoever has a volume open moves those that it has; or it stays
  // after all. kNoSpace: the others could not take what is promised.
  task::Task<Result<void>> drain(MegaVolId id, bool is_leaving);
  // Takes it out of the pool. kExists: extents of volumes are there. Of one that `is_lost`, what is
  // to be cleared stays as it is.
  task::Task<Result<void>> remove_mega_vol(MegaVolId id, bool is_lost,
                                           task::CancelToken token = {});

  // Volumes (arbiter_volumes.cc). kNoSpace: more than the pool can promise; kLimit: a floor that
  // the judge refuses.
  task::Task<Result<VolumeRecord>> create(CreateArgs args);
  // Smaller only while nobody has it open: kExists.
  task::Task<Result<void>> resize(std::string name, uint64_t bytes);
  // How the next extents are placed.
  task::Task<Result<void>> set_weights(std::string name, volume::Weights weights);
  // Whoever has it open adds legs, or takes them away.
  task::Task<Result<void>> set_replicas(std::string name, uint32_t replicas);
  // What it has of drives' bandwidth, from now on, also while it is open. kLimit as create().
  task::Task<Result<void>> set_terms(std::string name, share::Terms terms);
  // Its name is free when its extents are. kExists: somebody has it open; with `by_force` they are
  // fenced first.
  task::Task<Result<void>> destroy(std::string name, bool by_force, task::CancelToken token = {});

  // Somebody has it open, or had within a lease.
  bool is_held(const Volume& volume) const {
    return !volume.record.holder.empty() && has_lease(volume);
  }

  // Snapshots (arbiter_snapshots.cc).
  // VOLUME@NAME, of what the volume holds from the call to its return at some time. Whoever has it
  // open stops writing for a moment. kNoSpace: nothing could be copied when it is written;
  // kTimedOut: whoever has it open did not answer; kInvalid also: the last one did not close it;
  // kLimit.
  task::Task<Result<VolumeRecord>> snapshot(std::string volume, std::string name,
                                            task::CancelToken token = {});
  // A volume that begins as a snapshot is. kNoSpace as for one that is new; kLimit.
  task::Task<Result<VolumeRecord>> clone(std::string snapshot, std::string name);

  // Clients: ArbiterLink (arbiter_sessions.cc, arbiter_extents.cc, arbiter_snapshots.cc).
  task::Task<Result<volume::Opened>> open(volume::OpenArgs args, task::CancelToken token) override;
  task::Task<Result<volume::Renewed>> renew(volume::Session session,
                                            task::CancelToken token) override;
  task::Task<Result<void>> close(volume::Session session, bool is_clean,
                                 task::CancelToken token) override;
  task::Task<Result<std::vector<volume::Mapping>>> table(volume::Session session, uint32_t first,
                                                         task::CancelToken token) override;
  task::Task<Result<std::vector<volume::Mapping>>> allocate(volume::Session session,
                                                            std::vector<uint32_t> extents,
                                                            task::CancelToken token) override;
  task::Task<Result<void>> release(volume::Session session, std::vector<uint32_t> extents,
                                   task::CancelToken token) override;
  task::Task<Result<std::vector<volume::Mapping>>> report(volume::Session session,
                                                          std::vector<volume::LegReport> legs,
                                                          task::CancelToken token) override;
  task::Task<Result<volume::Mapping>> relocate(volume::Session session, volume::Relocation what,
                                               task::CancelToken token) override;

  task::Task<Result<std::vector<volume::CopyPlace>>> begin_copies(volume::Session session,
                                                                  std::vector<uint32_t> extents,
                                                                  task::CancelToken token) override;
  task::Task<Result<std::vector<volume::Mapping>>> end_copies(volume::Session session,
                                                              std::vector<volume::CopyEnd> copies,
                                                              task::CancelToken token) override;
  task::Task<Result<volume::Asked>> asked(volume::Session session, Duration wait,
                                          task::CancelToken token) override;
  task::Task<Result<void>> freeze(volume::Session session, std::string snapshot, bool is_ready,
                                  task::CancelToken token) override;

  // Commits that changed the map, and extents given by them.
  struct Counters {
    uint64_t allocating_commits = 0;
    uint64_t extents_allocated = 0;
  };
  const Counters& counters() const { return counters_; }

 private:
  struct Waiting;  // an allocation that the next commit may take along
  struct Wanted;   // a snapshot that waits for whoever has the volume open

  // The volume of a session that is not over.
  Result<Volume*> held(volume::Session session);
  Result<void> check_terms(const std::string& volume, const share::Terms& terms) const;
  task::Task<Result<void>> expel_holder(VolumeId id, task::CancelToken token);

  bool has_lease(const Volume& volume) const;
  // Whoever heals the volume meanwhile has it no more.
  task::Task<void> end_healing(std::string name);
  // kInvalid.
  Result<uint32_t> extents_for(uint64_t bytes) const;
  task::Task<Result<void>> allocate_waiting();
  Result<void> plan_allocations(Volume& volume, const std::set<uint32_t>& extents,
                                std::vector<Change>& changes);
  // Label and clear space on a drive that joins, without anybody who may still write to it.
  task::Task<Result<void>> make_member(drive::Drive& drive, const AddArgs& args, MegaVolInfo& info,
                                       task::CancelToken token);
  // Of the next drive; none: all are taken.
  std::optional<MegaVolId> free_number();
  void note_free_numbers();
  // What a record of a volume is that begins with the extents of another. kExists, kLimit,
  // kNoSpace.
  Result<VolumeRecord> relative_of(const Volume& volume, std::string name, bool is_snapshot) const;
  // Makes it, with the map of the other. By whoever has the turn.
  task::Task<Result<VolumeRecord>> make_relative(VolumeId from, VolumeRecord record);
  static void wake(Wanted& wanted);
  task::Task<Result<VolumeRecord>> await_snapshot(Wanted& wanted, task::CancelToken token);
  std::vector<volume::Mapping> mappings(const Volume& volume,
                                        const std::vector<uint32_t>& extents) const;
  // Destroys volumes bit by bit.
  task::Task<void> dismantle();
  task::Task<Result<bool>> dismantle_step();

  env::Env& env_;
  const ArbiterParts parts_;
  const ArbiterOptions options_;
  PoolStore store_;
  Pool& pool_;
  Fencing fencing_;
  Cleaner cleaner_;
  OwnCounters own_counters_;
  std::map<VolumeId, Time> lease_ends_;
  std::map<VolumeId, uint64_t> turns_;  // the newest of each holder
  std::map<MegaVolId, Time> removed_;   // drives that left, and when
  task::Semaphore adding_{1};           // drives
  std::deque<Waiting*> waiting_;
  std::map<VolumeId, Wanted*> wanted_;
  task::Event wanted_moved_;  // a snapshot is wanted
  Counters counters_;
  task::Event leaving_;  // a volume is to be destroyed
  task::Gate gate_;
};

}  // namespace cairn::arbiter
