// SPDX-License-Identifier: Apache-2.0
// Box: drives served over NVMe/TCP, and how that is changed while hosts are connected. Lives on the
// control core of any world; knows neither the command line nor files.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/problem.h"
#include "config/settings.h"
#include "env/env.h"
#include "fabric/target/target.h"
#include "nvme/controller/registry.h"
#include "server/common/options.h"
#include "server/common/stranger_log.h"
#include "server/config/changes.h"
#include "server/config/reservation_files.h"
#include "server/serve/stacks.h"
#include "stack/health_watch.h"
#include "task/cancel.h"
#include "task/gate.h"
#include "task/sync.h"
#include "task/task.h"

namespace cairn::server {

// What a box needs of its surroundings; each may be left out.
struct BoxHooks {
  std::function<void(config::LogLevel, std::string_view)> log;
  // Keeps all changes there are; durable when it returns.
  std::function<Attempt<void>(const BoxChanges&)> keep;
  // The key in a file.
  std::function<Attempt<nvme::AuthSecret>(const std::string& path)> read_key;
  std::function<Attempt<nvme::TlsKey>(const std::string& path)> read_tls_key;
};

class Box final : private drive::HealthWatch::Owner {
 public:
  // `changes`: what was kept before the restart.
  Box(env::Env& env, BoxOptions options, BoxChanges changes, BoxHooks hooks);

  // Opens the drives, then listens. A drive that does not open keeps no other down: its namespace
  // is not served, keeps its number, and is tried again by itself, after 5 s and ever more rarely
  // up to 60 s; the log says so. The Problem says what could not be bound, or that no drive could
  // be opened, and what to do. close() follows in any case.
  task::Task<Attempt<void>> open();
  // Stops accepting, lets commands in flight end, then closes everything.
  task::Task<void> close();

  const std::vector<env::Address>& listening() const { return listening_; }
  nvme::Registry& registry() { return registry_; }
  fabric::Target& target() { return target_; }
  Duration uptime() const { return env_.now() - started_; }

  // Changes while serving. Hosts see them at once; they are kept before the call is done. When they
  // cannot be kept the Problem says that they are made all the same. An empty `nqn` means the only
  // subsystem there is.
  task::Task<Attempt<uint32_t>> add_namespace(std::string nqn, nvme::NamespaceOptions options,
                                              bool format = false);
  task::Task<Attempt<void>> remove_namespace(std::string nqn, uint32_t nsid);
  task::Task<Attempt<void>> resize_namespace(std::string nqn, uint32_t nsid, uint64_t bytes);
  // Tries again to open a namespace's drive that could not be.
  task::Task<Attempt<void>> reopen_namespace(std::string nqn, uint32_t nsid);
  // The same for all whose source was handed in, by whoever did that.
  task::Task<void> reopen_given();
  task::Task<Attempt<void>> set_ana_state(std::string nqn, uint32_t group, nvme::AnaState state);
  // "any" opens the subsystem to everybody; another name is put on the list, or taken off it.
  task::Task<Attempt<void>> allow_host(std::string nqn, std::string host);
  task::Task<Attempt<void>> deny_host(std::string nqn, std::string host);

  // Space that is given away (box_contracts.cc): a namespace of the contract's id, which nobody
  // removes or resizes before the contract ends. All or nothing: what cannot be kept is not done.
  task::Task<Result<uint32_t>> add_contract(rack::Contract contract,
                                            nvme::NamespaceOptions options);
  task::Task<Result<void>> confirm_contract(rack::Contract contract);
  // Ends it. With a file it stays among those that have ended until it is forgotten, through
  // restarts too. One that has ended before is no error.
  task::Task<Result<void>> remove_contract(rack::Contract contract, bool has_file);
  // Nothing is left of it.
  task::Task<void> forget_contract(rack::Contract contract);
  std::vector<rack::Contract> contracts() const;
  std::vector<rack::Contract> ended_contracts() const;
  // Where hosts reach the subsystem, as others can be told; none: only this machine would know.
  std::optional<rack::Endpoint> place_of(const std::string& nqn) const;

  // A namespace that is not served because its drive could not be opened.
  struct NotServed {
    std::string nqn;
    nvme::NamespaceOptions options;
    std::string problem;
  };
  std::vector<NotServed> not_served() const;
  // How well its drive was at the last look, a second ago at most; null: it is a single drive, and
  // open.
  const drive::WatchedDrive* health(std::string_view nqn, uint32_t nsid) const;

  // The layers of a namespace's stack as they are now. None: it is a single drive, or gone.
  task::Task<std::optional<drive::LayerInfo>> layers(std::string nqn, uint32_t nsid);

  // The subsystem of this name, or the only one.
  Attempt<std::string> find(std::string_view nqn) const;

 private:
  // Held while a change is made and kept: one at a time.
  struct Turn {
    task::Units held;
    std::string nqn;
  };
  task::Task<Attempt<Turn>> take_turn(std::string nqn);
  Attempt<void> add_subsystems();
  Attempt<void> demand_authentication(const BoxSubsystem& subsystem);
  Attempt<void> take_tls_keys(const BoxSubsystem& subsystem);
  Attempt<void> check_listener(const BoxListener& listener) const;
  Result<env::Address> listen_at(const env::Address& at, const BoxListener& listener);
  task::Task<Result<uint32_t>> add_patiently(const std::string& nqn,
                                             nvme::NamespaceOptions& options);
  task::Task<Attempt<void>> add_configured(const std::string& nqn, nvme::NamespaceOptions options);
  // The same; one that does not open is remembered.
  task::Task<void> add_or_remember(const std::string& nqn, nvme::NamespaceOptions options);
  task::Task<Attempt<void>> reopen(std::pair<std::string, uint32_t> name);
  task::Task<void> reopen_all();
  void note_size(const std::string& nqn, uint32_t nsid, uint64_t said);
  task::Task<std::vector<drive::DriveHealth>> look() override;
  task::Task<Attempt<void>> add_namespaces(const BoxSubsystem& subsystem);
  task::Task<Attempt<void>> set_ana_states(const BoxSubsystem& subsystem);
  task::Task<Attempt<void>> listen();
  Attempt<void> keep(std::string_view what);
  // An nsid for another namespace: above all there were, so that no host remembers it; from the
  // lowest again when those have run out.
  uint32_t next_nsid(const std::string& nqn) const;
  // What a namespace's size is from now on, in what is kept.
  void set_size(const std::string& nqn, uint32_t nsid, uint64_t bytes);
  Attempt<void> save() const;
  // Serves another namespace, and puts it among those added.
  task::Task<Attempt<uint32_t>> serve_added(const std::string& nqn, nvme::NamespaceOptions options,
                                            bool format);
  // Stops serving one, which is there, and forgets its reservations.
  task::Task<Result<void>> stop_serving(const std::string& nqn, uint32_t nsid);
  // Refused while the namespace is under contract.
  Attempt<void> check_free(const std::string& nqn, uint32_t nsid) const;
  Attempt<void> set_access(const std::string& nqn, HostAccess access);
  HostAccess access_of(std::string_view nqn) const;
  void log_failure(const nvme::DriveFailure& failure);
  fabric::TargetOptions with_log(fabric::TargetOptions options);
  void log(config::LogLevel level, std::string_view line) const {
    if (hooks_.log) hooks_.log(level, line);
  }

  env::Env& env_;
  Time started_;
  BoxOptions options_;
  BoxChanges changes_;
  BoxHooks hooks_;
  std::optional<ReservationFiles> reservations_;
  BoxStacks stacks_;
  StrangerLog strangers_;
  nvme::Registry registry_;
  fabric::Target target_;
  std::vector<env::Address> listening_;
  std::map<std::string, std::set<uint32_t>, std::less<>> configured_;  // nsids, by NQN
  std::map<std::pair<std::string, uint32_t>, Time> quiet_until_;       // of failures, by nsid
  std::map<std::pair<std::string, uint32_t>, NotServed> failed_;
  drive::HealthWatch watch_;
  task::CancelSource closing_;
  task::Gate reopening_;
  task::Semaphore changing_{1};
};

}  // namespace cairn::server
