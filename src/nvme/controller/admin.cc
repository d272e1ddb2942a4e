// SPDX-License-Identifier: Apache-2.0
// Commands of the admin queue, one function each (NVMe Base 2.0, 5 and 6).
#include <algorithm>
#include <optional>
#include <utility>

#include "nvme/controller/command.h"
#include "nvme/controller/identify.h"
#include "nvme/controller/registry_parts.h"
#include "nvme/format/limits.h"

namespace cairn::nvme {

namespace {

template <class Layout>
Answer send_page(const Layout& layout, MutableBytes data) {
  store(data, layout);
  return answered();
}

// Discovery controllers serve what finding subsystems takes (NVMe Base 2.0, 3.1.2.3).
bool is_served(AdminOpcode opcode, ControllerKind kind) {
  const bool pci = kind == ControllerKind::kPci;
  switch (opcode) {
    case AdminOpcode::kGetLogPage:
    case AdminOpcode::kIdentify:
    case AdminOpcode::kAbort:
    case AdminOpcode::kSetFeatures:
    case AdminOpcode::kGetFeatures:
    case AdminOpcode::kAsynchronousEventRequest:
      return true;
    case AdminOpcode::kKeepAlive:
      return !pci;
    case AdminOpcode::kVendorSend:
      return kind == ControllerKind::kIo;
    case AdminOpcode::kCreateCompletionQueue:
    case AdminOpcode::kCreateSubmissionQueue:
    case AdminOpcode::kDeleteCompletionQueue:
    case AdminOpcode::kDeleteSubmissionQueue:
    case AdminOpcode::kDoorbellBufferConfig:
      return pci;
    default:
      return false;
  }
}

bool is_controller_wide(uint32_t nsid) { return nsid == 0 || nsid == kBroadcastNsid; }

bool is_authentication(const Sqe& sqe) {
  return sqe.is_fabrics() && (sqe.fabrics_type() == FabricsType::kAuthenticationSend ||
                              sqe.fabrics_type() == FabricsType::kAuthenticationReceive);
}

size_t data_max(const Sqe& sqe, ControllerKind kind) {
  if (sqe.transfer() == Transfer::kHostToController || is_authentication(sqe)) {
    return kAdminSendMax;
  }
  return kind == ControllerKind::kDiscovery ? kDiscoveryTransferBytesMax : kTransferBytesMax;
}

}  // namespace

Status AdminCommands::judge(const Controller& controller, uint16_t queue_id, const Sqe& sqe,
                            size_t data_size) {
  if (sqe.fuse() != Fuse::kNone) return final_status(StatusCode::kInvalidField);
  if (sqe.is_fabrics() && controller.is_pci()) return final_status(StatusCode::kInvalidOpcode);
  if (!is_authentication(sqe)) {
    if (!controller.is_open(queue_id)) return final_status(StatusCode::kAuthenticationRequired);
    if (queue_id == 0 && !sqe.is_fabrics()) {
      if (!is_served(sqe.admin_opcode(), controller.kind())) {
        return final_status(StatusCode::kInvalidOpcode);
      }
      if (!controller.properties.is_ready()) {
        return final_status(StatusCode::kCommandSequenceError);
      }
    }
  } else if (!controller.may_authenticate(queue_id)) {
    return final_status(StatusCode::kInvalidOpcode);  // there is no key to check
  }
  if (data_size > data_max(sqe, controller.kind())) {
    return final_status(StatusCode::kDataSglLengthInvalid);
  }
  return {};
}

Cqe AdminCommands::conclude(Controller& controller, uint16_t queue_id, const Sqe& sqe,
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

task::Task<Answer> AdminCommands::execute(Controller& controller, uint16_t queue_id, const Sqe& sqe,
                                          MutableBytes data, task::CancelToken token) {
  controller.note_traffic();
  const Status verdict = judge(controller, queue_id, sqe, data.size());
  if (!verdict.ok()) co_return Answer{.status = verdict};
  if (is_authentication(sqe)) {
    co_return co_await authentication_.execute(controller, queue_id, sqe, data, token);
  }
  if (queue_id != 0) co_return execute_fabrics_of_io(controller, queue_id, sqe);
  if (sqe.is_fabrics()) co_return execute_fabrics(controller, sqe);
  switch (sqe.admin_opcode()) {
    case AdminOpcode::kGetLogPage:
      co_return co_await get_log(controller, sqe, data);
    case AdminOpcode::kIdentify:
      co_return identify(controller, sqe, data);
    case AdminOpcode::kAbort:
      co_return co_await abort(controller, sqe);
    case AdminOpcode::kSetFeatures:
      co_return co_await set_features(controller, sqe, data);
    case AdminOpcode::kGetFeatures:
      co_return get_features(controller, sqe, data);
    case AdminOpcode::kAsynchronousEventRequest:
      co_return co_await wait_for_event(controller, sqe.cid, token);
    case AdminOpcode::kKeepAlive:
      controller.restart_keep_alive();
      co_return answered();
    case AdminOpcode::kVendorSend:
      co_return co_await execute_vendor(controller, data);
    default:
      co_return co_await queues_.execute(controller, sqe);
  }
}

Answer AdminCommands::execute_fabrics(Controller& controller, const Sqe& sqe) {
  switch (sqe.fabrics_type()) {
    case FabricsType::kPropertyGet:
      return controller.properties.get(fabrics_cast<PropertyCommand>(sqe));
    case FabricsType::kPropertySet: {
      const auto outcome = controller.properties.set(fabrics_cast<PropertyCommand>(sqe));
      if (outcome.change == Properties::Change::kReset) controller.reset();
      return {.status = outcome.status};
    }
    case FabricsType::kConnect:
      // The queue is connected already.
      return refused(StatusCode::kCommandSequenceError);
    case FabricsType::kDisconnect:
      return refused(StatusCode::kDisconnectInvalidQueueType);
    default:
      return refused(StatusCode::kInvalidField);
  }
}

Answer AdminCommands::execute_fabrics_of_io(const Controller& controller, uint16_t queue_id,
                                            const Sqe& sqe) {
  if (!sqe.is_fabrics()) return refused(StatusCode::kInvalidOpcode);
  switch (sqe.fabrics_type()) {
    case FabricsType::kConnect:
      return refused(StatusCode::kCommandSequenceError);
    case FabricsType::kDisconnect:
      if (fabrics_cast<DisconnectCommand>(sqe).record_format != 0) {
        return refused(StatusCode::kConnectIncompatibleFormat);
      }
      return controller.may_disconnect(queue_id) ? answered() : refused(StatusCode::kInvalidOpcode);
    default:
      return refused(StatusCode::kInvalidOpcode);
  }
}

Answer AdminCommands::identify(Controller& controller, const Sqe& sqe, MutableBytes data) {
  const IdentifyFields fields = IdentifyFields::decode(sqe);
  Subsystem& subsystem = controller.subsystem();
  if (data.size() < kIdentifySize) return refused(StatusCode::kDataSglLengthInvalid);
  std::ranges::fill(data, std::byte{0});
  if (fields.cns == Cns::kController) {
    return send_page(
        identify_controller({.subsystem = subsystem.options(),
                             .id = controller.id(),
                             .kind = controller.kind(),
                             .capacity = subsystem.capacity_for(controller.host_nqn())}),
        data);
  }
  if (controller.is_discovery()) return refused(StatusCode::kInvalidField);
  switch (fields.cns) {
    case Cns::kActiveNamespaces: {
      if (sqe.nsid >= kBroadcastNsid - 1) return refused(StatusCode::kInvalidNamespaceOrFormat);
      NamespaceList list;
      size_t count = 0;
      const auto& all = subsystem.namespaces();
      for (auto at = all.upper_bound(sqe.nsid); at != all.end() && count < list.nsids.size();
           ++at) {
        if (at->second.options.is_for(controller.host_nqn())) list.nsids[count++] = at->first;
      }
      return send_page(list, data);
    }
    case Cns::kCommandSetController:
      if (fields.csi != Csi::kNvm) return refused(StatusCode::kInvalidField);
      return send_page(IdentifyControllerNvm{}, data);
    case Cns::kNamespace:
    case Cns::kNamespaceDescriptors:
    case Cns::kCommandSetNamespace:
    case Cns::kIndependentNamespace:
      break;
    default:
      return refused(StatusCode::kInvalidField);
  }
  if (fields.cns == Cns::kCommandSetNamespace && fields.csi != Csi::kNvm) {
    return refused(StatusCode::kInvalidField);
  }
  if (sqe.nsid == 0 || sqe.nsid > nsid_max(controller.kind())) {
    return refused(StatusCode::kInvalidNamespaceOrFormat);
  }
  const Namespace* space = subsystem.find_for(controller.host_nqn(), sqe.nsid);
  if (space == nullptr) {
    // An id that could exist and does not is told by zeroes, except where there is no such form.
    return fields.cns == Cns::kNamespaceDescriptors ? refused(StatusCode::kInvalidNamespaceOrFormat)
                                                    : answered();
  }
  const NamespaceFacts facts{.options = space->options,
                             .geometry = space->geometry,
                             .limits = {},
                             .keep_reservations = subsystem.options().keep_reservations,
                             .shared = !controller.is_pci(),
                             .incarnation = space->told.incarnation};
  switch (fields.cns) {
    case Cns::kNamespace:
      return send_page(identify_namespace(facts), data);
    case Cns::kIndependentNamespace:
      return send_page(identify_independent(facts), data);
    case Cns::kNamespaceDescriptors:
      identify_descriptors(space->options, data);
      return answered();
    default:
      return send_page(IdentifyNamespaceNvm{}, data);
  }
}

task::Task<Answer> AdminCommands::get_log(Controller& controller, const Sqe& sqe,
                                          MutableBytes data) {
  const GetLogFields fields = GetLogFields::decode(sqe);
  if (!has_log_page(fields.page, controller.kind())) {
    co_return refused(StatusCode::kInvalidLogPage);
  }
  if (fields.csi != 0) co_return refused(StatusCode::kInvalidField);
  if (fields.page == LogPage::kHealth && !is_controller_wide(sqe.nsid) &&
      controller.subsystem().find_for(controller.host_nqn(), sqe.nsid) == nullptr) {
    co_return refused(StatusCode::kInvalidNamespaceOrFormat);
  }
  const LogBytes page = co_await make_log(controller, sqe);
  const Answer answer = read_log(page, fields, data);
  if (answer.ok() && !fields.retain_event) {
    if (fields.page == LogPage::kChangedNamespaces) controller.changed_namespaces.clear();
    controller.events.page_was_read(fields.page);
    if (fields.page == LogPage::kReservation && controller.notices.pop()) {
      controller.raise(EventKind::kReservation);
    }
  }
  co_return answer;
}

task::Task<LogBytes> AdminCommands::make_log(Controller& controller, const Sqe& sqe) {
  const GetLogFields fields = GetLogFields::decode(sqe);
  switch (fields.page) {
    case LogPage::kSupported:
      co_return supported_pages(controller.kind());
    case LogPage::kError: {
      const ErrorLog::Page page = controller.errors.page();
      const Bytes bytes = bytes_of(page);
      co_return LogBytes(bytes.begin(), bytes.end());
    }
    case LogPage::kHealth: {
      std::optional<uint32_t> nsid;
      if (!is_controller_wide(sqe.nsid)) nsid = sqe.nsid;
      const IoTotals totals = co_await controller.subsystem().totals(nsid);
      co_return health_page({.totals = totals,
                             .errors = controller.errors.count(),
                             .up = table_.env().now() - started_,
                             .warnings = controller.features.temperature_warning()});
    }
    case LogPage::kFirmware:
      co_return firmware_page();
    case LogPage::kChangedNamespaces:
      co_return changed_namespaces_page(controller.changed_namespaces);
    case LogPage::kCommandEffects:
      co_return command_effects(controller.kind(), static_cast<bool>(vendor_hook_));
    case LogPage::kAna:
      co_return ana_page(controller.subsystem(), controller.host_nqn(),
                         (fields.specific & kAnaGroupsOnly) != 0);
    case LogPage::kFeatureEffects:
      co_return feature_effects(controller.kind());
    case kManagementEffects:
      co_return LogBytes(4096);
    case LogPage::kDiscovery:
      co_return discovery_page(table_.discovery_for(controller));
    case LogPage::kReservation:
      co_return reservation_page(controller.notices);
    default:
      co_return LogBytes();
  }
}

task::Task<Answer> AdminCommands::abort(Controller& controller, const Sqe& sqe) {
  constexpr uint64_t kNotAborted = 1;
  const AbortFields fields = AbortFields::decode(sqe);
  if (controller.aborts_in_flight == kAbortsMax) {
    co_return refused(StatusCode::kAbortLimitExceeded);
  }
  // Event requests wait here; every other command is with its queue.
  if (fields.sqid == 0 && controller.events.abort(fields.cid)) co_return answered(0);
  ++controller.aborts_in_flight;
  const bool aborted = co_await controller.abort(fields.sqid, fields.cid);
  --controller.aborts_in_flight;
  co_return answered(aborted ? 0 : kNotAborted);
}

task::Task<Answer> AdminCommands::execute_vendor(Controller& controller, Bytes data) {
  if (!vendor_hook_) co_return refused(StatusCode::kInvalidOpcode);
  const VendorHook hook = vendor_hook_;  // it may be set anew meanwhile
  co_return co_await hook({.nqn = controller.subsystem().options().nqn,
                           .host_nqn = controller.host_nqn(),
                           .data = {data.begin(), data.end()}});
}

task::Task<Answer> AdminCommands::wait_for_event(Controller& controller, uint16_t cid,
                                                 task::CancelToken token) {
  if (!controller.events.has_room()) co_return refused(StatusCode::kEventRequestLimitExceeded);
  Result<uint32_t> event = co_await controller.events.next(cid, token);
  if (event) co_return answered(*event);
  co_return Answer{.status = event.error() == Errc::kClosed ? StatusCode::kAbortedQueueDeletion
                                                            : StatusCode::kAbortRequested};
}

}  // namespace cairn::nvme
