// SPDX-License-Identifier: Apache-2.0
// Controllers that are attached: their life, without a Connect (NVMe Base 2.0, 3.5 and 3.6).
#include <fmt/format.h>

#include "nvme/controller/attachment.h"
#include "nvme/controller/namespace_ids.h"
#include "nvme/controller/registry_state.h"

namespace cairn::nvme {

Result<Attached> Registry::State::attach(const AttachRequest& request) {
  Subsystem* subsystem = find(request.nqn);
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

Result<Attached> Registry::attach(const AttachRequest& request) { return state_->attach(request); }

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

}  // namespace cairn::nvme
