// SPDX-License-Identifier: Apache-2.0
// Arbiter: the control plane of one pool, for as long as it leads.
//
// It has the pool (pool_store.h). When a commit fails, or may have failed, it does nothing more:
// whoever runs it (arbiter_host.h) leads anew and reads the store again. Calls of clients are those
// of ArbiterLink, whose errors these have; the others are for operators, and besides give
//   kInvalid  a name, a size or a number is out of range
//   kExists, kNotFound, kNoSpace as each says.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "arbiter/cleaner.h"
#include "arbiter/copies.h"
#include "arbiter/drives.h"
#include "arbiter/extents.h"
#include "arbiter/fence.h"
#include "arbiter/fencing.h"
#include "arbiter/own_counters.h"
#include "arbiter/pool_store.h"
#include "arbiter/sessions.h"
#include "arbiter/snapshots.h"
#include "arbiter/tenant.h"
#include "arbiter/terms_judge.h"
#include "arbiter/volumes.h"
#include "env/env.h"
#include "meta/election.h"
#include "meta/store.h"
#include "task/cancel.h"
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

  const Pool& pool() const { return store_.pool(); }
  const TermsJudge* judge() const { return parts_.judge; }
  // False is final: another may lead, and know better.
  bool is_working() const { return store_.is_working(); }
  // Requested when it can do nothing more.
  task::CancelToken broken_token() { return store_.broken_token(); }
  // Calls end soon with kUnreachable.
  void stop() { store_.stop(); }
  // Ends what it does by itself. Once, with no call in flight.
  task::Task<void> close();

  // For operators, by the class that has the contract. Drives:
  task::Task<Result<MegaVolInfo>> add_mega_vol(AddArgs args, task::CancelToken token = {}) {
    return drives_.add(std::move(args), token);
  }
  task::Task<Result<void>> drain(MegaVolId id, bool is_leaving) {
    return drives_.drain(id, is_leaving);
  }
  task::Task<Result<void>> remove_mega_vol(MegaVolId id, bool is_lost,
                                           task::CancelToken token = {}) {
    return drives_.remove(id, is_lost, token);
  }
  // Volumes:
  task::Task<Result<VolumeRecord>> create(CreateArgs args) {
    return volumes_.create(std::move(args));
  }
  task::Task<Result<void>> resize(std::string name, uint64_t bytes) {
    return volumes_.resize(std::move(name), bytes);
  }
  task::Task<Result<void>> set_weights(std::string name, volume::Weights weights) {
    return volumes_.set_weights(std::move(name), weights);
  }
  task::Task<Result<void>> set_replicas(std::string name, uint32_t replicas) {
    return volumes_.set_replicas(std::move(name), replicas);
  }
  task::Task<Result<void>> set_terms(std::string name, share::Terms terms) {
    return volumes_.set_terms(std::move(name), terms);
  }
  task::Task<Result<void>> destroy(std::string name, bool by_force, task::CancelToken token = {}) {
    return volumes_.destroy(std::move(name), by_force, token);
  }
  // Sessions:
  bool is_held(const Volume& volume) const { return sessions_.is_held(volume); }
  // Snapshots:
  task::Task<Result<VolumeRecord>> snapshot(std::string volume, std::string name,
                                            task::CancelToken token = {}) {
    return snapshots_.snapshot(std::move(volume), std::move(name), token);
  }
  task::Task<Result<VolumeRecord>> clone(std::string snapshot, std::string name) {
    return snapshots_.clone(std::move(snapshot), std::move(name));
  }

  // Clients: ArbiterLink.
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

  using Counters = Extents::Counters;
  const Counters& counters() const { return extents_.counters(); }

 private:
  const ArbiterParts parts_;
  const ArbiterOptions options_;
  PoolStore store_;
  Fencing fencing_;
  Cleaner cleaner_;
  OwnCounters own_counters_;
  Sessions sessions_;
  Drives drives_;
  Volumes volumes_;
  Extents extents_;
  Copies copies_;
  Snapshots snapshots_;
};

}  // namespace cairn::arbiter
