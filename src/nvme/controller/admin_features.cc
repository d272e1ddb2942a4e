// SPDX-License-Identifier: Apache-2.0
// Get and Set Features: those of the controller, and those of single namespaces.
#include <algorithm>

#include "nvme/controller/registry_parts.h"
#include "nvme/controller/subsystem.h"

namespace cairn::nvme {

namespace {

bool is_of_namespace(Feature feature) {
  return feature == Feature::kReservationNoticeMask || feature == Feature::kReservationPersistence;
}

// Which of our features may be named with a namespace. Error recovery is one for all here.
bool takes_namespace(Feature feature) {
  return is_of_namespace(feature) || feature == Feature::kErrorRecovery;
}

Answer get_of_namespace(Controller& controller, const GetFeaturesFields& fields, uint32_t nsid) {
  const Namespace* space = controller.subsystem().find_for(controller.host_nqn(), nsid);
  if (space == nullptr) return refused(StatusCode::kInvalidNamespaceOrFormat);
  if (fields.select != FeatureSelect::kCurrent) return answered(0);
  if (fields.feature == Feature::kReservationNoticeMask) {
    return answered(controller.notices.mask(nsid));
  }
  return answered(space->reservations.persists() ? kPersistThroughPowerLoss : 0);
}

Answer set_notice_mask(Controller& controller, uint32_t value, uint32_t nsid) {
  constexpr uint32_t kKnown = ReservationNoticeMask::kRegistrationPreempted |
                              ReservationNoticeMask::kReservationReleased |
                              ReservationNoticeMask::kReservationPreempted;
  if ((value & ~kKnown) != 0) return refused(StatusCode::kInvalidField);
  bool found = false;
  for (const auto& [id, space] : controller.subsystem().namespaces()) {
    if (nsid != id && nsid != kBroadcastNsid) continue;
    if (!space.options.is_for(controller.host_nqn())) continue;
    controller.notices.set_mask(id, value);
    found = true;
  }
  return found ? answered() : refused(StatusCode::kInvalidNamespaceOrFormat);
}

}  // namespace

Answer AdminCommands::get_features(Controller& controller, const Sqe& sqe, MutableBytes data) {
  const GetFeaturesFields fields = GetFeaturesFields::decode(sqe);
  std::ranges::fill(data, std::byte{0});
  const bool reads_value = fields.select < FeatureSelect::kCapabilities;
  if (!controller.is_discovery() && is_of_namespace(fields.feature) && reads_value) {
    return get_of_namespace(controller, fields, sqe.nsid);
  }
  return controller.features.get(fields, data);
}

task::Task<Answer> AdminCommands::set_features(Controller& controller, const Sqe& sqe, Bytes data) {
  const SetFeaturesFields fields = SetFeaturesFields::decode(sqe);
  if (!Features::capabilities(fields.feature, controller.kind())) {
    co_return refused(StatusCode::kInvalidField);
  }
  if (fields.save) co_return refused(StatusCode::kFeatureNotSaveable);
  if (fields.feature == Feature::kReservationNoticeMask) {
    co_return set_notice_mask(controller, fields.value, sqe.nsid);
  }
  if (fields.feature == Feature::kReservationPersistence) {
    const bool persists = (fields.value & kPersistThroughPowerLoss) != 0;
    const Status status =
        co_await controller.subsystem().set_persistence(controller.host_nqn(), sqe.nsid, persists);
    co_return Answer{.status = status};
  }
  if (sqe.nsid != 0 && sqe.nsid != kBroadcastNsid && !takes_namespace(fields.feature)) {
    co_return refused(StatusCode::kFeatureNotNamespaceSpecific);
  }
  const Answer answer = controller.features.set(fields, data, controller.has_io_queues());
  if (!answer.ok()) co_return answer;
  if (fields.feature == Feature::kKeepAlive) controller.restart_keep_alive();
  if (fields.feature == Feature::kInterruptCoalescing ||
      fields.feature == Feature::kInterruptVector) {
    co_await queues_.tell_interrupts(controller, fields);
  }
  if (controller.features.temperature_warning() != 0) controller.raise(EventKind::kTemperature);
  co_return answer;
}

}  // namespace cairn::nvme
