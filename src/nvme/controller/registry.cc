// SPDX-License-Identifier: Apache-2.0
#include "nvme/controller/registry.h"

#include <fmt/format.h>

#include <utility>

#include "nvme/controller/attachment.h"
#include "nvme/controller/command.h"
#include "nvme/controller/namespace_ids.h"
#include "nvme/controller/registry_parts.h"

namespace cairn::nvme {

namespace {

constexpr auto kNoSubsystem = "there is no such subsystem";

}  // namespace

Registry::Registry(env::Env& env) : state_(std::make_unique<State>(env)) {}
Registry::~Registry() = default;

Result<void> Registry::add_subsystem(const SubsystemOptions& options) {
  return state_->table.add(options, state_->failure_hook);
}

task::Task<Result<void>> Registry::remove_subsystem(std::string_view nqn_view) {
  const std::string nqn(nqn_view);
  Result<void> turn = co_await state_->changes.acquire(1);
  if (!turn) co_return turn;
  const std::unique_ptr<Subsystem> taken = state_->table.take(nqn);
  if (taken != nullptr) {
    co_await taken->disconnect_all("the subsystem was removed");
    co_await taken->close();
  }
  state_->changes.release(1);
  if (taken == nullptr) co_return fail(Errc::kNotFound, kNoSubsystem);
  co_return Result<void>{};
}

task::Task<Result<uint32_t>> Registry::add_namespace(std::string_view nqn_view,
                                                     const NamespaceOptions& asked) {
  std::string nqn(nqn_view);
  NamespaceOptions options = asked;
  Result<void> turn = co_await state_->changes.acquire(1);
  if (!turn) co_return fail(turn.error());
  Result<uint32_t> added = co_await state_->table.add_namespace(std::move(nqn), std::move(options));
  state_->changes.release(1);
  co_return added;
}

task::Task<Result<void>> Registry::remove_namespace(std::string_view nqn_view, uint32_t nsid) {
  const std::string nqn(nqn_view);
  Result<void> done = co_await state_->changes.acquire(1);
  if (!done) co_return done;
  Subsystem* subsystem = state_->table.find(nqn);
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
  Subsystem* subsystem = state_->table.find(nqn);
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
  Subsystem* subsystem = state_->table.find(nqn);
  if (subsystem != nullptr) co_await subsystem->set_ana_state(group, ana_state);
  state_->changes.release(1);
  if (subsystem == nullptr) co_return fail(Errc::kNotFound, kNoSubsystem);
  co_return Result<void>{};
}

Result<void> Registry::set_hosts(std::string_view nqn, bool any, std::vector<std::string> hosts) {
  Subsystem* subsystem = state_->table.find(nqn);
  if (subsystem == nullptr) return fail(Errc::kNotFound, kNoSubsystem);
  // Those who lose sight of it hear of it, and those who gain it.
  state_->table.discovery_changed(subsystem);
  subsystem->set_hosts(any, std::move(hosts));
  state_->table.discovery_changed(subsystem);
  return {};
}

std::vector<NamespaceInfo> Registry::namespaces(std::string_view nqn) const {
  std::vector<NamespaceInfo> all;
  const Subsystem* subsystem = state_->table.find(nqn);
  if (subsystem == nullptr) return all;
  for (const auto& [nsid, space] : subsystem->namespaces()) {
    all.push_back({.options = space.options,
                   .geometry = space.geometry,
                   .ana_state = subsystem->ana_state(space.options.ana_group),
                   .modelled = space.source().modelled()});
  }
  return all;
}

void Registry::on_vendor_command(VendorHook hook) {
  state_->admin.on_vendor_command(std::move(hook));
}
void Registry::on_drive_failure(DriveFailureHook hook) { state_->failure_hook = std::move(hook); }

task::Task<std::vector<DriveFailure>> Registry::flush(task::CancelToken token) {
  std::vector<DriveFailure> all;
  Result<void> turn = co_await state_->changes.acquire(1);
  if (!turn) co_return all;
  for (const auto& [nqn, subsystem] : state_->table.all()) {
    std::vector<DriveFailure> failed = co_await subsystem->flush(token);
    all.insert(all.end(), failed.begin(), failed.end());
  }
  state_->changes.release(1);
  co_return all;
}

std::vector<SubsystemOptions> Registry::subsystems() const {
  std::vector<SubsystemOptions> all;
  for (const auto& [nqn, subsystem] : state_->table.all()) all.push_back(subsystem->options());
  return all;
}

std::vector<ControllerInfo> Registry::controllers(std::string_view nqn) const {
  std::vector<ControllerInfo> all;
  Subsystem* subsystem = state_->table.find(nqn);
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
  Subsystem* subsystem = state_->table.find(nqn);
  const bool found = subsystem != nullptr && subsystem->find(nsid) != nullptr;
  IoTotals totals;
  if (found) totals = co_await subsystem->totals(nsid);
  state_->changes.release(1);
  if (!found) co_return fail(Errc::kNotFound, "there is no such namespace");
  co_return totals;
}

void Registry::add_port(const PortOptions& options) { state_->table.add_port(options); }

void Registry::set_loading(bool loading) { state_->connector.set_loading(loading); }

Result<void> Registry::set_authentication(std::string_view nqn, AuthPolicy policy) {
  Subsystem* subsystem = state_->table.find(nqn);
  if (subsystem == nullptr) return fail(Errc::kNotFound, kNoSubsystem);
  if (policy.means.hashes.empty() || policy.means.groups.empty() || policy.timeout <= 0_s) {
    return fail(Errc::kInvalid, "authentication needs a hash, a DH group and some time");
  }
  subsystem->authentication = std::make_shared<const AuthPolicy>(std::move(policy));
  return {};
}

void Registry::on_authentication(AuthenticationHook hook) {
  state_->strangers.on_failure(std::move(hook));
}

void Registry::on_refused_host(RefusedHostHook hook) {
  state_->refused_host_hook = std::move(hook);
}

uint64_t Registry::refused_hosts(std::string_view nqn) const {
  const Subsystem* subsystem = state_->table.find(nqn);
  return subsystem == nullptr ? 0 : subsystem->refused_hosts;
}

AuthTotals Registry::authentication_totals(std::string_view nqn) const {
  const Subsystem* subsystem = state_->table.find(nqn);
  return subsystem == nullptr ? AuthTotals{} : subsystem->authenticated;
}

Result<void> Registry::set_tls(std::string_view nqn, TlsKeys keys) {
  Subsystem* subsystem = state_->table.find(nqn);
  if (subsystem == nullptr) return fail(Errc::kNotFound, kNoSubsystem);
  subsystem->tls_keys = std::move(keys);
  return {};
}

AuthTotals Registry::tls_totals() const { return state_->tls.totals(); }

task::Task<Result<TlsPsk>> Registry::choose_tls_key(const TlsOffer& offer,
                                                    task::CancelToken token) {
  return state_->tls.choose_key(offer, token);
}

void Registry::tls_succeeded(const env::Address& peer, std::string_view host_nqn) {
  state_->tls.succeeded(peer, host_nqn);
}

void Registry::tls_failed(const TlsFailure& failure) { state_->tls.failed(failure); }

task::Task<ConnectReply> Registry::connect(const ConnectRequest& request) {
  const ConnectReply reply = state_->connector.connect(request);
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

Result<Attached> Registry::attach(const AttachRequest& request) {
  Subsystem* subsystem = state_->table.find(request.nqn);
  if (subsystem == nullptr) return fail(Errc::kNotFound, "there is no such subsystem");
  Controller* controller = subsystem->add_controller(
      {.kind = ControllerKind::kPci,
       .host_nqn = request.host_nqn.empty() ? request.nqn + ":attached" : request.host_nqn,
       .host = request.host,
       .vectors = request.vectors});
  if (controller == nullptr) {
    return fail(Errc::kLimit, "the subsystem has as many controllers as it may, or is closing");
  }
  if (request.host == HostId{}) {
    controller->set_host(
        make_named_ids(request.nqn, fmt::format("host {}", controller->id())).uuid);
  }
  const SubsystemOptions& options = subsystem->options();
  controller->attachment = std::make_unique<Attachment>(
      request.core, *request.queues,
      QueueBook::Limits{.entries_max = options.queue_entries_max, .vectors = request.vectors});
  controller->add_queue(0, request.core, *request.link, false);
  return Attached{.controller = controller,
                  .namespaces = &subsystem->on_core(request.core),
                  .queues_max = options.queues_max,
                  .queue_entries_max = options.queue_entries_max,
                  .limits = {}};
}

void Registry::enable(Controller& controller) { controller.properties.set_ready(true); }

task::Task<void> Registry::reset(Controller& controller) {
  controller.properties.set_ready(false);
  co_await controller.reset_attached();
}

task::Task<std::vector<DriveFailure>> Registry::shut_down(Controller& controller,
                                                          task::CancelToken token) {
  std::vector<DriveFailure> failed;
  if (!controller.gate.enter()) co_return failed;
  failed = co_await controller.subsystem().flush(token);
  controller.gate.leave();
  co_return failed;
}

task::Task<Cqe> Registry::admin(Controller& controller, const Sqe& entry, MutableBytes data,
                                task::CancelToken token, uint16_t queue_id) {
  const Sqe sqe = entry;
  if (!controller.gate.enter()) {
    co_return make_cqe(sqe, StatusCode::kAbortedQueueDeletion);
  }
  const Answer answer = co_await state_->admin.execute(controller, queue_id, sqe, data, token);
  const Cqe cqe = AdminCommands::conclude(controller, queue_id, sqe, answer);
  controller.gate.leave();
  co_return cqe;
}

std::optional<Cqe> Registry::refusal(Controller& controller, const Sqe& sqe, size_t data_size,
                                     uint16_t queue_id) {
  const Status status = AdminCommands::judge(controller, queue_id, sqe, data_size);
  if (status.ok()) return std::nullopt;
  return AdminCommands::conclude(controller, queue_id, sqe, {.status = status});
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
  while (const std::unique_ptr<Subsystem> taken = state_->table.take_any()) {
    co_await taken->disconnect_all("the box is closing");
    co_await taken->close();
  }
  co_await state_->table.discovery().disconnect_all("the box is closing");
  state_->changes.release(1);
}

}  // namespace cairn::nvme
