// SPDX-License-Identifier: Apache-2.0
#include "nvme/controller/registry.h"

#include <fmt/format.h>

#include <utility>

#include "nvme/controller/command.h"
#include "nvme/controller/namespace_ids.h"
#include "nvme/controller/registry_state.h"

namespace cairn::nvme {

namespace {

SubsystemOptions discovery_options() {
  SubsystemOptions options;
  options.nqn = kDiscoveryNqn;
  options.model = "Cairn discovery";
  options.queues_max = 1;
  return options;
}

constexpr auto kNoSubsystem = "there is no such subsystem";

bool is_zero(const std::array<uint8_t, 16>& id) { return id == std::array<uint8_t, 16>{}; }

// The lowest id no namespace has; 0 when all are taken.
uint32_t free_nsid(const Subsystem& subsystem) {
  for (uint32_t nsid = 1; nsid <= kNamespacesMax; ++nsid) {  // as many as there may be
    if (!subsystem.namespaces().contains(nsid)) return nsid;
  }
  return 0;
}

}  // namespace

Registry::State::State(env::Env& world)
    : env(world),
      started(world.now()),
      discovery(world, discovery_options(), Subsystem::Kind::kDiscovery) {}

Subsystem* Registry::State::find(std::string_view nqn) {
  const auto found = subsystems.find(nqn);
  return found == subsystems.end() ? nullptr : found->second.get();
}

void Registry::State::discovery_changed(const Subsystem* subsystem) {
  ++generation;
  for (const auto& [id, controller] : discovery.controllers()) {
    if (subsystem == nullptr || subsystem->allows(controller->host_nqn())) {
      controller->raise(EventKind::kDiscovery);
    }
  }
}

Result<void> Registry::State::check_unused(const NamespaceOptions& options) {
  const bool is_file = !options.drive.path.empty();
  for (const auto& [nqn, subsystem] : subsystems) {
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

Registry::Registry(env::Env& env) : state_(std::make_unique<State>(env)) {}
Registry::~Registry() = default;

Result<void> Registry::add_subsystem(const SubsystemOptions& options) {
  if (!is_nqn(options.nqn) || options.nqn == kDiscoveryNqn) {
    return fail(Errc::kInvalid, "this is no NVMe qualified name (nqn.2026-11.io.cairn:NAME)");
  }
  if (options.queues_max == 0 || options.queue_entries_max < 2 || options.controllers_max == 0 ||
      options.controller_id_min == 0 || options.controller_id_min > options.controller_id_max ||
      options.controller_id_max > kControllerIdMax) {
    return fail(Errc::kInvalid, "a limit of the subsystem makes no sense");
  }
  if (state_->find(options.nqn) != nullptr) {
    return fail(Errc::kExists, "there is a subsystem of this name");
  }
  auto subsystem = std::make_unique<Subsystem>(state_->env, options);
  subsystem->on_drive_failure(state_->failure_hook);
  const Subsystem& added = *subsystem;
  state_->subsystems.emplace(options.nqn, std::move(subsystem));
  state_->discovery_changed(&added);
  return {};
}

task::Task<Result<void>> Registry::remove_subsystem(std::string_view nqn_view) {
  const std::string nqn(nqn_view);
  Result<void> turn = co_await state_->changes.acquire(1);
  if (!turn) co_return turn;
  auto node = state_->subsystems.extract(nqn);
  if (!node.empty()) {
    state_->discovery_changed(node.mapped().get());
    co_await node.mapped()->disconnect_all("the subsystem was removed");
    co_await node.mapped()->close();
  }
  state_->changes.release(1);
  if (node.empty()) co_return fail(Errc::kNotFound, kNoSubsystem);
  co_return Result<void>{};
}

task::Task<Result<uint32_t>> Registry::State::add_namespace(std::string nqn,
                                                            NamespaceOptions options) {
  Subsystem* subsystem = find(nqn);
  if (subsystem == nullptr) co_return fail(Errc::kNotFound, kNoSubsystem);
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

task::Task<Result<uint32_t>> Registry::add_namespace(std::string_view nqn_view,
                                                     const NamespaceOptions& asked) {
  std::string nqn(nqn_view);
  NamespaceOptions options = asked;
  Result<void> turn = co_await state_->changes.acquire(1);
  if (!turn) co_return fail(turn.error());
  Result<uint32_t> added = co_await state_->add_namespace(std::move(nqn), std::move(options));
  state_->changes.release(1);
  co_return added;
}

task::Task<Result<void>> Registry::remove_namespace(std::string_view nqn_view, uint32_t nsid) {
  const std::string nqn(nqn_view);
  Result<void> done = co_await state_->changes.acquire(1);
  if (!done) co_return done;
  Subsystem* subsystem = state_->find(nqn);
  if (subsystem != nullptr) done = co_await subsystem->remove(nsid);
  state_->changes.release(1);
  if (subsystem == nullptr) co_return fail(Errc::kNotFound, kNoSubsystem);
  co_return done;
}

task::Task<Result<void>> Registry::resize_namespace(std::string_view nqn_view, uint32_t nsid,
                                                    uint64_t bytes) {
  const std::string nqn(nqn_view);
  Result<void> done = co_await state_->changes.acquire(1);
  if (!done) co_return done;
  Subsystem* subsystem = state_->find(nqn);
  if (subsystem != nullptr) done = co_await subsystem->resize(nsid, bytes);
  state_->changes.release(1);
  if (subsystem == nullptr) co_return fail(Errc::kNotFound, kNoSubsystem);
  co_return done;
}

task::Task<Result<void>> Registry::set_ana_state(std::string_view nqn_view, uint32_t group,
                                                 AnaState ana_state) {
  const std::string nqn(nqn_view);
  if (group == 0 || group > kAnaGroupsMax) co_return fail(Errc::kInvalid, "ANA group (1 to 128)");
  Result<void> turn = co_await state_->changes.acquire(1);
  if (!turn) co_return turn;
  Subsystem* subsystem = state_->find(nqn);
  if (subsystem != nullptr) co_await subsystem->set_ana_state(group, ana_state);
  state_->changes.release(1);
  if (subsystem == nullptr) co_return fail(Errc::kNotFound, kNoSubsystem);
  co_return Result<void>{};
}

Result<void> Registry::set_hosts(std::string_view nqn, bool any, std::vector<std::string> hosts) {
  Subsystem* subsystem = state_->find(nqn);
  if (subsystem == nullptr) return fail(Errc::kNotFound, kNoSubsystem);
  // Those who lose sight of it hear of it, and those who gain it.
  state_->discovery_changed(subsystem);
  subsystem->set_hosts(any, std::move(hosts));
  state_->discovery_changed(subsystem);
  return {};
}

std::vector<NamespaceInfo> Registry::namespaces(std::string_view nqn) const {
  std::vector<NamespaceInfo> all;
  const Subsystem* subsystem = state_->find(nqn);
  if (subsystem == nullptr) return all;
  for (const auto& [nsid, space] : subsystem->namespaces()) {
    all.push_back({.options = space.options,
                   .geometry = space.geometry,
                   .ana_state = subsystem->ana_state(space.options.ana_group),
                   .modelled = space.source().modelled()});
  }
  return all;
}

void Registry::on_vendor_command(VendorHook hook) { state_->vendor_hook = std::move(hook); }
void Registry::on_drive_failure(DriveFailureHook hook) { state_->failure_hook = std::move(hook); }

task::Task<std::vector<DriveFailure>> Registry::flush(task::CancelToken token) {
  std::vector<DriveFailure> all;
  Result<void> turn = co_await state_->changes.acquire(1);
  if (!turn) co_return all;
  for (const auto& [nqn, subsystem] : state_->subsystems) {
    std::vector<DriveFailure> failed = co_await subsystem->flush(token);
    all.insert(all.end(), failed.begin(), failed.end());
  }
  state_->changes.release(1);
  co_return all;
}

std::vector<SubsystemOptions> Registry::subsystems() const {
  std::vector<SubsystemOptions> all;
  for (const auto& [nqn, subsystem] : state_->subsystems) all.push_back(subsystem->options());
  return all;
}

std::vector<ControllerInfo> Registry::controllers(std::string_view nqn) const {
  std::vector<ControllerInfo> all;
  Subsystem* subsystem = state_->find(nqn);
  if (subsystem == nullptr) return all;
  for (const auto& [id, controller] : subsystem->controllers()) {
    all.push_back({.id = id,
                   .host_nqn = controller->host_nqn(),
                   .peer = controller->peer(),
                   .local = controller->local(),
                   .queues = controller->queue_count(),
                   .keep_alive_ms = controller->features.keep_alive_ms()});
  }
  return all;
}

task::Task<Result<IoTotals>> Registry::totals(std::string_view nqn_view, uint32_t nsid) const {
  const std::string nqn(nqn_view);
  // In turn, so that the namespace stays while its cores are asked.
  Result<void> turn = co_await state_->changes.acquire(1);
  if (!turn) co_return fail(turn.error());
  Subsystem* subsystem = state_->find(nqn);
  const bool found = subsystem != nullptr && subsystem->find(nsid) != nullptr;
  IoTotals totals;
  if (found) totals = co_await subsystem->totals(nsid);
  state_->changes.release(1);
  if (!found) co_return fail(Errc::kNotFound, "there is no such namespace");
  co_return totals;
}

void Registry::add_port(const PortOptions& options) {
  state_->ports.push_back(options);
  state_->discovery_changed();
}

void Registry::set_loading(bool loading) { state_->loading = loading; }

task::Task<ConnectReply> Registry::connect(const ConnectRequest& request) {
  const ConnectReply reply = state_->connect(request);
  if (!reply.status.ok() && *reply.refused != '\0' && state_->refused_host_hook) {
    state_->refused_host_hook({.nqn = std::string(request.data.subsystem_nqn.get().value_or("")),
                               .host_nqn = std::string(request.data.host_nqn.get().value_or("")),
                               .peer = request.peer,
                               .why = reply.refused,
                               .not_listed = reply.not_listed});
  }
  co_return reply;
}

task::Task<void> Registry::disconnected(Controller& controller, uint16_t queue_id,
                                        QueueLink& link) {
  const bool last = co_await controller.remove_queue(queue_id, link);
  if (last) co_await controller.subsystem().remove_controller(controller);
}

task::Task<Cqe> Registry::admin(Controller& controller, const Sqe& entry, MutableBytes data,
                                task::CancelToken token, uint16_t queue_id) {
  const Sqe sqe = entry;
  if (!controller.gate.enter()) {
    co_return make_cqe(sqe, StatusCode::kAbortedQueueDeletion);
  }
  const Answer answer = co_await state_->execute(controller, queue_id, sqe, data, token);
  const Cqe cqe = State::conclude(controller, queue_id, sqe, answer);
  controller.gate.leave();
  co_return cqe;
}

Cqe Registry::State::conclude(Controller& controller, uint16_t queue_id, const Sqe& sqe,
                              Answer answer) {
  const bool is_abort = answer.status == StatusCode::kAbortRequested ||
                        answer.status == StatusCode::kAbortedQueueDeletion;
  if (!answer.ok() && !is_abort) {
    answer.status = answer.status.with_more();
    controller.errors.add(queue_id, sqe, answer.status);
  }
  Cqe cqe = make_cqe(sqe, answer.status);
  cqe.set_result64(answer.result);
  return cqe;
}

std::optional<Cqe> Registry::refusal(Controller& controller, const Sqe& sqe, size_t data_size,
                                     uint16_t queue_id) {
  const Status status = State::judge(controller, queue_id, sqe, data_size);
  if (status.ok()) return std::nullopt;
  return State::conclude(controller, queue_id, sqe, {.status = status});
}

void Registry::end_event_request(Controller& controller, uint16_t cid) {
  controller.events.abort(cid);
}

void Registry::log_error(Controller& controller, uint16_t queue_id, const Sqe& sqe, Status status) {
  controller.errors.add(queue_id, sqe, status.with_more());
}

task::Task<Status> Registry::reservation(Controller& controller, const Sqe& sqe,
                                         MutableBytes data) {
  if (!controller.gate.enter()) co_return StatusCode::kAbortedQueueDeletion;
  const Status status = co_await controller.subsystem().reserve(controller.host(), sqe, data);
  controller.gate.leave();
  co_return status;
}

task::Task<void> Registry::close() {
  Result<void> turn = co_await state_->changes.acquire(1);
  if (!turn) co_return;
  while (!state_->subsystems.empty()) {
    auto node = state_->subsystems.extract(state_->subsystems.begin());
    co_await node.mapped()->disconnect_all("the box is closing");
    co_await node.mapped()->close();
  }
  co_await state_->discovery.disconnect_all("the box is closing");
  state_->changes.release(1);
}

}  // namespace cairn::nvme
