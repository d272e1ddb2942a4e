// SPDX-License-Identifier: Apache-2.0
// How a session comes to be (NVMe Base 2.0, 3.5.2): Connect, enable, identify, queues, events.
#include <algorithm>
#include <bit>
#include <cstddef>
#include <utility>

#include "fabric/host/admin.h"
#include "fabric/host/authenticate.h"
#include "fabric/host/session.h"
#include "fabric/host/status_error.h"
#include "nvme/format/fabrics_format.h"
#include "nvme/format/feature_format.h"
#include "nvme/format/identify_format.h"
#include "nvme/format/identify_namespace_format.h"
#include "task/deadline.h"

namespace cairn::fabric {

namespace {

// Entries of the admin queue, which every controller must take.
constexpr uint16_t kAdminEntries = 32;
// In-capsule data beyond this brings nothing.
constexpr uint32_t kInCapsuleUseful = 64 * 1024;
// The least time a controller gets to become ready, whatever CAP.TO says.
constexpr Duration kReadyMin = 1_s;

nvme::CommandSetSelect select_command_sets(uint8_t offered) {
  using nvme::CommandSets;
  if ((offered & CommandSets::kSeveral) != 0) return nvme::CommandSetSelect::kAllSupported;
  if ((offered & CommandSets::kNoneIo) != 0) return nvme::CommandSetSelect::kAdminOnly;
  return nvme::CommandSetSelect::kNvm;
}

// MDTS, as bytes and never above our own limit.
uint32_t transfer_limit(const nvme::IdentifyController& identity,
                        const nvme::Capabilities& capabilities) {
  const uint32_t shift = 12u + capabilities.page_size_min + identity.transfer_max;
  if (identity.transfer_max == 0 || shift >= std::bit_width(kHostTransferMax)) {
    return kHostTransferMax;
  }
  return uint32_t{1} << shift;
}

uint32_t in_capsule_limit(const nvme::IdentifyController& identity) {
  const uint64_t capsule = uint64_t{identity.command_capsule} * 16;
  // Data that do not follow the entry at once are a thing no target does.
  if (capsule <= sizeof(nvme::Sqe) || identity.in_capsule_offset != 0) return 0;
  return static_cast<uint32_t>(std::min<uint64_t>(capsule - sizeof(nvme::Sqe), kInCapsuleUseful));
}

}  // namespace

task::Task<Result<void>> HostSession::open(task::CancelToken token) {
  if (!options_.host.key_file.empty() && options_.host.credentials == nullptr) {
    refused_ = true;
    co_return fail(Errc::kInvalid, "the file of the host's key was not read");
  }
  if (options_.host.tls && options_.host.tls_key == nullptr) {
    refused_ = true;
    co_return fail(Errc::kInvalid, "the file of the host's TLS key was not read");
  }
  Result<void> done = co_await connect_admin(token);
  if (done) done = co_await enable(token);
  if (done) done = co_await identify(token);
  if (done) done = co_await go_by_incarnations(token);
  if (done) done = co_await connect_io(token);
  if (done) done = co_await ask_for_events(token);
  if (done && lost_) done = fail(*lost_);
  if (!done) co_return done;
  is_open_ = true;
  if (options_.host.keep_alive > 0_s) gate_.spawn(keep_alive_loop());
  if (options_.host.reauthenticate > 0_s && options_.host.credentials != nullptr) {
    gate_.spawn(reauthenticate_loop());
  }
  gate_.spawn(event_loop());
  env_.trace().record("host.session_open", controller_id_, io_.size());
  co_return Result<void>{};
}

std::unique_ptr<HostQueue> HostSession::make_queue(uint16_t id, uint16_t slots) {
  const HostOptions& host = options_.host;
  std::optional<HostTls> tls;
  if (host.tls) {
    if (tls_ == nullptr) tls_ = std::make_shared<const tls::Context>(tls::Role::kClient);
    tls = HostTls{.context = tls_,
                  .key = host.tls_key,
                  .host_nqn = host.host_nqn,
                  .nqn = options_.nqn,
                  .version = host.tls_identity};
  }
  HostQueue::Owner& owner = *this;
  return std::make_unique<HostQueue>(
      env_,
      HostQueue::Options{.address = options_.address,
                         .id = id,
                         .slots = slots,
                         .header_digest = host.header_digest,
                         .data_digest = host.data_digest,
                         .connect_timeout = host.connect_timeout,
                         .command_timeout = id == 0 ? host.admin_timeout : host.io_timeout,
                         .cancel_timeout = host.cancel_timeout,
                         .doorbell = id == 0 ? host.doorbell : host.doorbell_of(id),
                         .tls = std::move(tls)},
      owner);
}

task::Task<Result<void>> HostSession::connect_admin(task::CancelToken token) {
  admin_ = make_queue(0, kAdminEntries - 1);
  const Result<nvme::ConnectResult> connected =
      co_await connect_queue(*admin_, kAdminEntries - 1, token);
  if (!connected) co_return fail(connected.error());
  controller_id_ = connected->controller_id;
  Result<void> authenticated = co_await authenticate_queue(*admin_, *connected, token);
  co_return authenticated;
}

// `size` is zero-based, as SQSIZE is.
task::Task<Result<nvme::ConnectResult>> HostSession::connect_queue(HostQueue& queue, uint16_t size,
                                                                   task::CancelToken token) {
  task::Deadline deadline(env_, env_.now() + options_.host.connect_timeout, token);
  Result<void> opened = co_await queue.open(deadline.token());
  if (!opened) {
    // Keys that do not fit, or TLS at one end only: the next attempt would end as this one.
    if (opened.error() == Errc::kDenied || opened.error() == Errc::kUnsupported) refused_ = true;
    co_return fail(opened.error());
  }
  if (lost_) co_return fail(*lost_);

  nvme::ConnectCommand command;
  command.queue_id = queue.id();
  command.queue_size = size;
  if (!options_.flow_control) command.attributes |= nvme::ConnectAttributes::kNoFlowControl;
  if (queue.id() == 0) {
    command.keep_alive_ms = static_cast<uint32_t>(
        std::clamp<int64_t>((options_.host.keep_alive + 999'999_ns) / 1_ms, 0, UINT32_MAX));
  }
  nvme::ConnectData data;
  data.host_id = options_.host.host_id;
  data.controller_id = queue.id() == 0 ? nvme::kAnyController : controller_id_;
  data.subsystem_nqn.set(options_.nqn);
  data.host_nqn.set(options_.host.host_nqn);

  CommandOp connect(*this, &queue, nvme::to_sqe(command), nvme::mutable_bytes_of(data),
                    deadline.token());
  const Result<nvme::Cqe> answer = co_await connect;
  if (!answer) co_return fail(answer.error());
  if (!answer->get_status().ok()) co_return fail(connect_error(*answer));
  co_return nvme::ConnectResult::decode(answer->dw0);
}

// When the target demands it, and also when it has to prove itself: an impostor would not ask.
task::Task<Result<void>> HostSession::authenticate_queue(HostQueue& queue,
                                                         nvme::ConnectResult connected,
                                                         task::CancelToken token) {
  const std::shared_ptr<const HostCredentials>& credentials = options_.host.credentials;
  const bool wants_proof =
      credentials != nullptr && credentials->keys.controller && options_.nqn != nvme::kDiscoveryNqn;
  if (connected.authenticate_and_tls) {
    refused_ = true;
    co_return fail(Errc::kUnsupported, "the target demands a secure channel after authentication");
  }
  if (!connected.authenticate && !wants_proof) co_return Result<void>{};
  if (credentials == nullptr) {
    refused_ = true;
    co_return fail(Errc::kDenied, "the target demands authentication, and there is no key for it");
  }
  task::Deadline deadline(env_, env_.now() + options_.host.authenticate_timeout, token);
  Result<void> done = co_await authenticate(*this, queue, deadline.token());
  env_.trace().record("host.authenticated", queue.id(), done ? 1 : 0);
  // With the same keys the next attempt would end as this one.
  if (!done && (done.error() == Errc::kDenied || done.error() == Errc::kUnsupported)) {
    refused_ = true;
  }
  co_return done;
}

Error HostSession::connect_error(const nvme::Cqe& cqe) {
  const nvme::Status status = cqe.get_status();
  if (status.do_not_retry()) refused_ = true;
  if (status == nvme::StatusCode::kConnectInvalidParameters) {
    const nvme::ConnectInvalid invalid = nvme::ConnectInvalid::decode(cqe.dw0);
    if (invalid.in_data && invalid.offset == offsetof(nvme::ConnectData, subsystem_nqn)) {
      return {Errc::kNotFound, "the target has no subsystem of this name",
              static_cast<int32_t>(status.code())};
    }
    if (invalid.in_data && invalid.offset == offsetof(nvme::ConnectData, host_nqn)) {
      return {Errc::kDenied, "the target does not take this host's name",
              static_cast<int32_t>(status.code())};
    }
    if (!invalid.in_data && invalid.offset == offsetof(nvme::ConnectCommand, attributes)) {
      wants_flow_control_ = !options_.flow_control;
      refused_ = refused_ && !wants_flow_control_;
    }
  }
  const Error error = error_of(status, nvme::StatusContext::kFabrics);
  return {error.code(), "Connect was refused", error.detail()};
}

task::Task<Result<uint64_t>> HostSession::get_property(nvme::PropertyOffset offset,
                                                       task::CancelToken token) {
  nvme::PropertyCommand command;
  command.offset = static_cast<uint32_t>(offset);
  if (offset == nvme::PropertyOffset::kCapabilities) {
    command.attributes = nvme::PropertyCommand::k8Bytes;
  }
  const Result<nvme::Cqe> answer = co_await admin(nvme::to_sqe(command), {}, token);
  if (!answer) co_return fail(answer.error());
  if (!answer->get_status().ok()) {
    co_return fail(error_of(answer->get_status(), nvme::StatusContext::kFabrics));
  }
  co_return answer->result64();
}

task::Task<Result<void>> HostSession::set_property(nvme::PropertyOffset offset, uint64_t value,
                                                   task::CancelToken token) {
  nvme::PropertyCommand command;
  command.type = nvme::FabricsType::kPropertySet;
  command.offset = static_cast<uint32_t>(offset);
  command.value = value;
  const Result<nvme::Cqe> answer = co_await admin(nvme::to_sqe(command), {}, token);
  if (!answer) co_return fail(answer.error());
  if (!answer->get_status().ok()) {
    co_return fail(error_of(answer->get_status(), nvme::StatusContext::kFabrics));
  }
  co_return Result<void>{};
}

task::Task<Result<void>> HostSession::enable(task::CancelToken token) {
  const Result<uint64_t> cap = co_await get_property(nvme::PropertyOffset::kCapabilities, token);
  if (!cap) co_return fail(cap.error());
  capabilities_ = nvme::Capabilities::decode(*cap);
  const Result<uint64_t> version = co_await get_property(nvme::PropertyOffset::kVersion, token);
  if (!version) co_return fail(version.error());
  version_ = nvme::Version::decode(static_cast<uint32_t>(*version));
  const nvme::Configuration configuration{
      .enable = true,
      .command_sets = select_command_sets(capabilities_.command_sets),
      .page_size = capabilities_.page_size_min,
      .submission_entry_size = 6,
      .completion_entry_size = 4};
  Result<void> set =
      co_await set_property(nvme::PropertyOffset::kConfiguration, configuration.encode(), token);
  if (!set) co_return set;
  co_return co_await wait_until_ready(token);
}

task::Task<Result<void>> HostSession::wait_until_ready(task::CancelToken token) {
  const Duration limit = std::max(capabilities_.timeout_500ms * 500_ms, kReadyMin);
  task::Deadline deadline(env_, env_.now() + limit, token);
  for (Duration pause = 1_ms;; pause = std::min(pause * 2, 100_ms)) {
    const Result<uint64_t> csts =
        co_await get_property(nvme::PropertyOffset::kStatus, deadline.token());
    if (!csts) co_return fail(csts.error());
    const auto status = nvme::ControllerStatus::decode(static_cast<uint32_t>(*csts));
    if (status.fatal) co_return fail(Errc::kIo, "the controller reports a fatal status");
    if (status.ready) co_return Result<void>{};
    const Result<void> slept = co_await task::sleep_for(env_, pause, deadline.token());
    if (!slept) co_return fail(slept.error().code(), "the controller does not become ready");
  }
}

task::Task<Result<void>> HostSession::identify(task::CancelToken token) {
  identity_ = std::make_unique<nvme::IdentifyController>();
  const nvme::IdentifyFields fields{.cns = nvme::Cns::kController};
  Result<void> got = co_await fabric::identify(*this, {.fields = fields},
                                               nvme::mutable_bytes_of(*identity_), token);
  if (!got) co_return got;
  transfer_max_ = transfer_limit(*identity_, capabilities_);
  co_return Result<void>{};
}

// Queues know it from their first command on, hence before there are any. Any other target may mean
// something else by the feature.
task::Task<Result<void>> HostSession::go_by_incarnations(task::CancelToken token) {
  if (identity_->incarnation_magic != nvme::kIncarnationMagic) co_return Result<void>{};
  const Result<uint32_t> set = co_await set_feature(*this, nvme::Feature::kIncarnations, 1, token);
  // A target that refuses it tells by flushes that fail.
  if (!set && lost_) co_return fail(set.error());
  co_return Result<void>{};
}

task::Task<Result<void>> HostSession::connect_io(task::CancelToken token) {
  if (options_.host.queues == 0 || options_.nqn == nvme::kDiscoveryNqn ||
      identity_->controller_type == nvme::ControllerType::kDiscovery) {
    co_return Result<void>{};
  }
  const auto wanted = static_cast<uint16_t>(options_.host.queues - 1);
  const nvme::NumberOfQueues asked{.submission = wanted, .completion = wanted};
  const Result<uint32_t> answer =
      co_await set_feature(*this, nvme::Feature::kNumberOfQueues, asked.encode(), token);
  if (!answer) co_return fail(answer.error());
  const nvme::NumberOfQueues granted = nvme::NumberOfQueues::decode(*answer);
  const uint16_t queues = std::min({wanted, granted.submission, granted.completion});

  const uint16_t size = std::min(options_.host.depth, capabilities_.queue_entries_max);
  uint16_t slots = size;
  if (identity_->commands_max != 0) slots = std::min<uint16_t>(slots, identity_->commands_max);
  if (slots == 0) co_return fail(Errc::kInvalid, "the controller has queues of one entry");
  for (uint16_t id = 1; id <= queues + 1; ++id) {
    io_.push_back(make_queue(id, slots));
    if (is_urgent(*io_.back())) ++urgent_queues_;
    HostQueue& queue = *io_.back();
    const Result<nvme::ConnectResult> connected = co_await connect_queue(queue, size, token);
    if (!connected) co_return fail(connected.error());
    queue.set_in_capsule_max(in_capsule_limit(*identity_));
    Result<void> authenticated = co_await authenticate_queue(queue, *connected, token);
    if (!authenticated) co_return authenticated;
  }
  co_return Result<void>{};
}

task::Task<Result<void>> HostSession::ask_for_events(task::CancelToken token) {
  const uint32_t wanted = nvme::EventMask::kNamespaceAttributes | nvme::EventMask::kAna |
                          nvme::EventMask::kDiscoveryLog;
  const uint32_t mask = identity_->events & wanted;
  if (mask == 0) co_return Result<void>{};
  const Result<uint32_t> set =
      co_await set_feature(*this, nvme::Feature::kEventConfiguration, mask, token);
  // Events are a convenience: a target that refuses the feature is used without them.
  if (!set && lost_) co_return fail(set.error());
  co_return Result<void>{};
}

}  // namespace cairn::fabric
