// SPDX-License-Identifier: Apache-2.0
// Subsystem: namespaces under one name, on every core; which hosts may see them; who is connected.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "drive/source.h"
#include "env/env.h"
#include "nvme/controller/controller.h"
#include "nvme/controller/core_namespace.h"
#include "nvme/controller/io_totals.h"
#include "nvme/controller/registry.h"
#include "nvme/reservation/reservations.h"
#include "task/sync.h"
#include "task/task.h"

namespace cairn::nvme {

// A namespace as the control core knows it.
struct Namespace {
  NamespaceOptions options;  // nsid and ids filled in
  drive::Geometry geometry;
  ToldIncarnation told;
  std::unique_ptr<drive::Source> own_source;  // null: it is lent
  Reservations reservations;
  std::unique_ptr<const DriveHooks> hooks;  // in place while cores refer to it

  const drive::Source& source() const { return own_source ? *own_source : *options.source; }
};

struct AnaGroupState {
  AnaState state = AnaState::kOptimized;
  uint64_t change_count = 0;  // the page's, when this group last changed
};

// On the control core. The discovery service is a subsystem too: one without namespaces. Calls that
// change namespaces are made one at a time (the registry sees to that).
class Subsystem {
 public:
  enum class Kind : uint8_t { kNvm, kDiscovery };
  Subsystem(env::Env& env, SubsystemOptions options, Kind kind = Kind::kNvm);
  ~Subsystem();
  Subsystem(const Subsystem&) = delete;
  Subsystem& operator=(const Subsystem&) = delete;

  const SubsystemOptions& options() const { return options_; }
  bool is_discovery() const { return kind_ == Kind::kDiscovery; }
  bool allows(std::string_view host_nqn) const;
  void set_hosts(bool any, std::vector<std::string> hosts);

  std::shared_ptr<const AuthPolicy> authentication;  // null: nobody has to
  AuthTotals authenticated;
  uint64_t refused_hosts = 0;  // Connects of hosts that are not on the list
  TlsKeys tls_keys;            // of hosts that may come through TLS

  // Null: no such namespace.
  Namespace* find(uint32_t nsid);
  // Null: there is none for this host.
  Namespace* find_for(std::string_view host_nqn, uint32_t nsid);
  const std::map<uint32_t, Namespace>& namespaces() const { return namespaces_; }
  CoreNamespaces& on_core(CoreId core) { return *cores_[core.value()]; }
  uint64_t capacity_for(std::string_view host_nqn) const;  // bytes of all it sees

  // Called on the control core when a drive fails a request; set before namespaces are added.
  void on_drive_failure(DriveFailureHook hook) { failure_hook_ = std::move(hook); }
  // Makes everything written so far durable; gives the namespaces where that failed, and why.
  task::Task<std::vector<DriveFailure>> flush(task::CancelToken token);

  // Opens it on every core and tells the controllers. `options` is complete. Errors as
  // Source::make; then nothing has changed.
  task::Task<Result<void>> add(NamespaceOptions options);
  // Waits for its commands, closes it on every core, tells the controllers. kNotFound.
  task::Task<Result<void>> remove(uint32_t nsid);
  // kNotFound, kUnsupported, kInvalid, kNoSpace: then every core has the size from before.
  task::Task<Result<void>> resize(uint32_t nsid, uint64_t bytes);
  task::Task<void> set_ana_state(uint32_t group, AnaState state);

  // Groups that have or had a namespace or were given a state, ascending.
  const std::map<uint32_t, AnaGroupState>& ana_groups() const { return ana_groups_; }
  AnaState ana_state(uint32_t group) const;
  uint64_t ana_changes() const { return ana_changes_; }

  // Of one namespace, or of all there ever were.
  task::Task<IoTotals> totals(std::optional<uint32_t> nsid);

  // A reservation command (subsystem_reservations.cc); commands take their turns. On success every
  // core knows, what is to be kept is stored, and those it concerns are told.
  task::Task<Status> reserve(const HostId& from, const Sqe& entry, MutableBytes data);
  // Feature 83h, of one namespace or of all that the host sees.
  task::Task<Status> set_persistence(std::string host_nqn, uint32_t nsid, bool persists);

  // Controllers by id. add_controller() gives null when there is no room for another.
  std::map<uint16_t, std::unique_ptr<Controller>>& controllers() { return controllers_; }
  Controller* find_controller(uint16_t id);
  // Its id and the limits of queues are the subsystem's to fill in.
  Controller* add_controller(Controller::Options options);
  // Its last queue is gone.
  task::Task<void> remove_controller(Controller& controller);

  // No controller can be added any more; done when the last one is gone.
  task::Task<void> disconnect_all(const char* why);
  // Closes every drive; no controller is left.
  task::Task<void> close();

 private:
  void tell_namespace_changed(const NamespaceOptions& options);
  task::Task<void> drive_changed(uint32_t nsid, drive::Incarnation now);
  task::Task<void> tell_cores(uint32_t nsid, ToldIncarnation told);
  // The group has another member, or one less: its part of the ANA log page differs.
  void note_ana_members(uint32_t group);
  task::Task<Status> replace(uint32_t nsid, Reservations next);
  void tell(uint32_t nsid, std::span<const Reservations::Notice> notices);
  task::Task<void> abort_commands(uint32_t nsid, std::span<const HostId> hosts);
  std::optional<uint16_t> free_controller_id();

  env::Env& env_;
  SubsystemOptions options_;
  Kind kind_;
  std::map<uint32_t, Namespace> namespaces_;
  std::vector<std::unique_ptr<CoreNamespaces>> cores_;  // each used on its own core
  std::map<uint32_t, AnaGroupState> ana_groups_;
  uint64_t ana_changes_ = 0;
  uint64_t era_ = 0;  // as ToldIncarnation's
  IoTotals retired_;  // of namespaces that were removed
  DriveFailureHook failure_hook_;
  std::map<uint16_t, std::unique_ptr<Controller>> controllers_;
  uint16_t last_controller_id_ = 0;
  bool closing_ = false;
  task::Semaphore reserving_{1};
  task::Event no_controllers_;
};

}  // namespace cairn::nvme
