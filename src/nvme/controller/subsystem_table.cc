// SPDX-License-Identifier: Apache-2.0
// What one box serves.
#include <fmt/format.h>

#include <utility>

#include "nvme/controller/controller.h"
#include "nvme/controller/namespace_ids.h"
#include "nvme/controller/registry_parts.h"

namespace cairn::nvme {

namespace {

SubsystemOptions discovery_options() {
  SubsystemOptions options;
  options.nqn = kDiscoveryNqn;
  options.model = "Cairn discovery";
  options.queues_max = 1;
  return options;
}

bool is_zero(const std::array<uint8_t, 16>& id) { return id == std::array<uint8_t, 16>{}; }

// The lowest id no namespace has; 0 when all are taken.
uint32_t free_nsid(const Subsystem& subsystem) {
  for (uint32_t nsid = 1; nsid <= kNamespacesMax; ++nsid) {  // as many as there may be
    if (!subsystem.namespaces().contains(nsid)) return nsid;
  }
  return 0;
}

}  // namespace

SubsystemTable::SubsystemTable(env::Env& env)
    : env_(env), discovery_(env, discovery_options(), Subsystem::Kind::kDiscovery) {}

Subsystem* SubsystemTable::find(std::string_view nqn) const {
  const auto found = subsystems_.find(nqn);
  return found == subsystems_.end() ? nullptr : found->second.get();
}

Result<void> SubsystemTable::add(const SubsystemOptions& options, DriveFailureHook hook) {
  if (!is_nqn(options.nqn) || options.nqn == kDiscoveryNqn) {
    return fail(Errc::kInvalid, "this is no NVMe qualified name (nqn.2026-11.io.cairn:NAME)");
  }
  if (options.queues_max == 0 || options.queue_entries_max < 2 || options.controllers_max == 0 ||
      options.controller_id_min == 0 || options.controller_id_min > options.controller_id_max ||
      options.controller_id_max > kControllerIdMax) {
    return fail(Errc::kInvalid, "a limit of the subsystem makes no sense");
  }
  if (find(options.nqn) != nullptr) {
    return fail(Errc::kExists, "there is a subsystem of this name");
  }
  auto subsystem = std::make_unique<Subsystem>(env_, options);
  subsystem->on_drive_failure(std::move(hook));
  const Subsystem& added = *subsystem;
  subsystems_.emplace(options.nqn, std::move(subsystem));
  discovery_changed(&added);
  return {};
}

std::unique_ptr<Subsystem> SubsystemTable::take(std::string_view nqn) {
  const auto found = subsystems_.find(nqn);
  if (found == subsystems_.end()) return nullptr;
  std::unique_ptr<Subsystem> taken = std::move(found->second);
  subsystems_.erase(found);
  discovery_changed(taken.get());
  return taken;
}

std::unique_ptr<Subsystem> SubsystemTable::take_any() {
  if (subsystems_.empty()) return nullptr;
  return std::move(subsystems_.extract(subsystems_.begin()).mapped());
}

task::Task<Result<uint32_t>> SubsystemTable::add_namespace(std::string nqn,
                                                           NamespaceOptions options) {
  Subsystem* subsystem = find(nqn);
  if (subsystem == nullptr) co_return fail(Errc::kNotFound, "there is no such subsystem");
  if (options.nsid == 0) options.nsid = free_nsid(*subsystem);
  if (options.nsid == 0) co_return fail(Errc::kLimit, "every namespace id is taken");
  if (options.nsid > kNsidMax) co_return fail(Errc::kInvalid, "namespace id (1 to 65536)");
  if (subsystem->namespaces().size() >= kNamespacesMax) {
    co_return fail(Errc::kLimit, "the subsystem has 1024 namespaces, the most there can be");
  }
  if (options.ana_group == 0 || options.ana_group > kAnaGroupsMax) {
    co_return fail(Errc::kInvalid, "ANA group (1 to 128)");
  }
  if (subsystem->find(options.nsid) != nullptr) {
    co_return fail(Errc::kExists, "the namespace id is in use");
  }
  const NamespaceIds ids = options.stack.empty()
                               ? make_namespace_ids(nqn, options.nsid, options.drive)
                               : make_named_ids(nqn, fmt::format("stack {}", options.nsid));
  if (is_zero(options.nguid)) options.nguid = ids.nguid;
  if (is_zero(options.uuid)) options.uuid = ids.uuid;
  if (Result<void> unused = check_unused(options); !unused) co_return fail(unused.error());
  const uint32_t nsid = options.nsid;
  Result<void> added = co_await subsystem->add(std::move(options));
  if (!added) co_return fail(added.error());
  co_return nsid;
}

void SubsystemTable::add_port(const PortOptions& options) {
  ports_.push_back(options);
  discovery_changed();
}

void SubsystemTable::discovery_changed(const Subsystem* subsystem) {
  ++generation_;
  for (const auto& [id, controller] : discovery_.controllers()) {
    if (subsystem == nullptr || subsystem->allows(controller->host_nqn())) {
      controller->raise(EventKind::kDiscovery);
    }
  }
}

DiscoveryFacts SubsystemTable::discovery_for(const Controller& controller) const {
  DiscoveryFacts facts{
      .generation = generation_, .local = controller.local(), .ports = ports_, .nqns = {}};
  for (const auto& [nqn, subsystem] : subsystems_) {
    if (subsystem->allows(controller.host_nqn())) facts.nqns.push_back(nqn);
  }
  return facts;
}

Result<void> SubsystemTable::check_unused(const NamespaceOptions& options) const {
  const bool is_file = !options.drive.path.empty();
  for (const auto& [nqn, subsystem] : subsystems_) {
    for (const auto& [nsid, other] : subsystem->namespaces()) {
      if (is_file && other.options.drive.path == options.drive.path) {
        return fail(Errc::kExists, "this file is served as another namespace already");
      }
      if (other.options.nguid == options.nguid || other.options.uuid == options.uuid) {
        return fail(Errc::kExists, "another namespace has this NGUID or UUID");
      }
    }
  }
  return {};
}

}  // namespace cairn::nvme
