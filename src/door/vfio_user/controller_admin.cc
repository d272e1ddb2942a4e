// SPDX-License-Identifier: Apache-2.0
// What a PciController has the registry do, on the registry's core.
#include <algorithm>
#include <utility>

#include "door/vfio_user/controller.h"
#include "drive/scatter.h"
#include "env/call.h"
#include "nvme/format/admin_data.h"
#include "nvme/format/feature_format.h"

namespace cairn::door::vfio_user {

namespace {

// Errors of I/O on their way to the error log at a time; more are not kept.
constexpr size_t kNotesMax = 16;

bool is_event_request(const nvme::Sqe& sqe) {
  return sqe.admin_opcode() == nvme::AdminOpcode::kAsynchronousEventRequest;
}

// Whether a Set Features sets what another one has set before.
bool sets_the_same(const nvme::Sqe& a, const nvme::Sqe& b) {
  const auto feature = nvme::SetFeaturesFields::decode(a).feature;
  if (feature != nvme::SetFeaturesFields::decode(b).feature || a.nsid != b.nsid) return false;
  if (feature == nvme::Feature::kInterruptVector) {
    return nvme::InterruptVector::decode(a.cdw11).vector ==
           nvme::InterruptVector::decode(b.cdw11).vector;
  }
  if (feature == nvme::Feature::kTemperatureThreshold) {
    return nvme::bits<21, 16>(a.cdw11) == nvme::bits<21, 16>(b.cdw11);
  }
  return true;
}

}  // namespace

task::Task<Result<void>> PciController::attach() {
  // The admin queue comes and goes with the driver; the registry's link to it stays.
  Result<nvme::Attached> attached =
      co_await env::call_on(parts_.env, options_.control, [this](env::Env&) {
        control_.cancel.emplace();
        Result<nvme::Attached> made = options_.registry.attach({.nqn = options_.nqn,
                                                                .vectors = options_.vectors,
                                                                .core = parts_.env.core(),
                                                                .link = &admin_link_,
                                                                .queues = this});
        if (made) control_.controller = made->controller;
        return made;
      });
  if (!attached) co_return cairn::fail(attached.error());
  attached_ = *attached;
  registers_.emplace(attached_.queue_entries_max);
  co_return Result<void>{};
}

task::Task<nvme::Cqe> PciController::ask_registry(nvme::Sqe sqe, MutableBytes data) {
  nvme::Cqe cqe = co_await env::call_on(parts_.env, options_.control, [&](env::Env&) {
    return options_.registry.admin(*control_.controller, sqe, data, control_.cancel->token());
  });
  co_return cqe;
}

void PciController::execute_admin(PciCommand& command) { gate_.spawn(run_admin(command)); }

task::Task<void> PciController::run_admin(PciCommand& command) {
  const nvme::Sqe sqe = command.sqe;
  // Admin commands of this transport use PRPs (NVMe over PCIe 1.0, 3.3).
  if (sqe.psdt() != nvme::Psdt::kPrp) {
    co_return command.complete(
        nvme::make_cqe(sqe, nvme::final_status(nvme::StatusCode::kInvalidField)));
  }
  const std::expected<size_t, nvme::Status> size = nvme::admin_data_size(sqe);
  if (!size) co_return command.complete(nvme::make_cqe(sqe, size.error()));
  std::vector<std::byte> data(*size);
  const bool to_guest = sqe.transfer() == nvme::Transfer::kControllerToHost;
  // What cannot be told later is refused before anything is done.
  const nvme::Status reached = to_guest ? command.check_out(data.size()) : command.copy_in(data);
  if (!reached.ok()) co_return command.complete(nvme::make_cqe(sqe, reached));
  event_requests_ += is_event_request(sqe) ? 1 : 0;
  nvme::Cqe cqe = co_await ask_registry(sqe, data);
  event_requests_ -= is_event_request(sqe) ? 1 : 0;
  const nvme::Status status = cqe.get_status();
  if (is_parking_ && is_event_request(sqe) && status.code() == nvme::StatusCode::kAbortRequested) {
    parked_.push_back(sqe);
    co_return command.queue().forget(command);
  }
  if (status.ok() && to_guest) {
    const nvme::Status copied = command.copy_out(data);
    if (!copied.ok()) cqe.set_status(copied);
  }
  if (status.ok() && sqe.admin_opcode() == nvme::AdminOpcode::kSetFeatures) {
    keep_setting(sqe, data);
  }
  command.complete(cqe);
}

void PciController::keep_setting(const nvme::Sqe& sqe, Bytes data) {
  std::erase_if(settings_, [&](const Setting& setting) { return sets_the_same(setting.sqe, sqe); });
  settings_.push_back({.sqe = sqe, .data = {data.begin(), data.end()}});
}

task::Task<void> PciController::cancel_admin() {
  co_await env::call_on(parts_.env, options_.control,
                        [this](env::Env&) { control_.cancel->request(); });
}

task::Task<nvme::Status> PciController::reserve(const nvme::Sqe& sqe, nvme::Pieces data) {
  std::vector<std::byte> bytes(total_size(data));
  const bool to_guest = sqe.transfer() == nvme::Transfer::kControllerToHost;
  if (!to_guest) drive::gather(data, 0, bytes);
  const nvme::Status status = co_await env::call_on(parts_.env, options_.control, [&](env::Env&) {
    return options_.registry.reservation(*control_.controller, sqe, bytes);
  });
  if (to_guest) drive::scatter(bytes, data, 0);
  co_return status;
}

void PciController::note_error(uint16_t queue, const nvme::Sqe& sqe, nvme::Status status) {
  if (notes_ == kNotesMax) return;
  ++notes_;
  gate_.spawn(tell_error(queue, sqe, status));
}

task::Task<void> PciController::tell_error(uint16_t queue, nvme::Sqe sqe, nvme::Status status) {
  co_await env::call_on(parts_.env, options_.control, [&](env::Env&) {
    options_.registry.log_error(*control_.controller, queue, sqe, status);
  });
  --notes_;
}

}  // namespace cairn::door::vfio_user
