// SPDX-License-Identifier: Apache-2.0
// Reservation commands: decided here, known to every core before they complete.
#include <algorithm>
#include <utility>

#include "nvme/controller/every_core.h"
#include "nvme/controller/subsystem.h"
#include "nvme/reservation/reservation_state_format.h"
#include "task/when_all.h"

namespace cairn::nvme {

namespace {

size_t data_size_of(IoOpcode opcode) {
  switch (opcode) {
    case IoOpcode::kReservationRegister:
      return sizeof(RegisterData);
    case IoOpcode::kReservationAcquire:
      return sizeof(AcquireData);
    case IoOpcode::kReservationRelease:
      return sizeof(ReleaseData);
    default:
      return 0;
  }
}

Reservations::Outcome apply(Reservations& to, const HostId& host, const Sqe& sqe, Bytes data) {
  switch (sqe.io_opcode()) {
    case IoOpcode::kReservationRegister:
      return to.registration(host, RegisterFields::decode(sqe), load<RegisterData>(data));
    case IoOpcode::kReservationAcquire:
      return to.acquire(host, AcquireFields::decode(sqe), load<AcquireData>(data));
    case IoOpcode::kReservationRelease:
      return to.release(host, ReleaseFields::decode(sqe), load<ReleaseData>(data));
    default:
      return {.status = final_status(StatusCode::kInvalidOpcode)};
  }
}

// A report may be read in any state of the path; everything else needs a path that works.
Status path_status(AnaState state) {
  switch (state) {
    case AnaState::kInaccessible:
      return StatusCode::kAnaInaccessible;
    case AnaState::kPersistentLoss:
      return StatusCode::kAnaPersistentLoss;
    case AnaState::kChange:
      return StatusCode::kAnaTransition;
    default:
      return {};
  }
}

Status report(const Reservations& reservations, const Sqe& sqe, MutableBytes data) {
  const ReportFields fields = ReportFields::decode(sqe);
  // Fabrics has host identifiers of 16 bytes only, for which the short report has no room.
  if (!fields.extended) return final_status(StatusCode::kHostIdInconsistentFormat);
  if (data.size() < fields.length()) return final_status(StatusCode::kDataSglLengthInvalid);
  std::ranges::fill(data, std::byte{0});
  reservations.report(data.first(static_cast<size_t>(fields.length())));
  return {};
}

}  // namespace

task::Task<Status> Subsystem::reserve(const HostId& from, const Sqe& entry, MutableBytes data) {
  const HostId host = from;
  const Sqe sqe = entry;
  if (data.size() < data_size_of(sqe.io_opcode())) {
    co_return final_status(StatusCode::kDataSglLengthInvalid);
  }
  Result<void> turn = co_await reserving_.acquire(1);
  if (!turn) co_return StatusCode::kAbortRequested;
  Reservations::Outcome outcome;
  if (const Namespace* space = find(sqe.nsid); space == nullptr) {
    outcome.status = final_status(StatusCode::kInvalidNamespaceOrFormat);
  } else if (sqe.io_opcode() == IoOpcode::kReservationReport) {
    outcome.status = report(space->reservations, sqe, data);
  } else if (outcome.status = path_status(ana_state(space->options.ana_group));
             outcome.status.ok()) {
    Reservations next = space->reservations;
    outcome = apply(next, host, sqe, data);
    if (outcome.status.ok()) outcome.status = co_await replace(sqe.nsid, std::move(next));
  }
  reserving_.release(1);
  if (!outcome.status.ok()) co_return outcome.status;
  tell(sqe.nsid, outcome.notices);
  co_await abort_commands(sqe.nsid, outcome.preempted);
  co_return outcome.status;
}

// Stores, then takes effect, then reaches every core: in this order a crash forgets nothing that
// was acknowledged, and a command that starts after the answer meets the new rules.
task::Task<Status> Subsystem::replace(uint32_t nsid, Reservations next) {
  Namespace* space = find(nsid);
  const Reservations::Saved saved = next.save();
  if (options_.reservation_store != nullptr && saved != space->reservations.save()) {
    const std::vector<std::byte> bytes = encode_reservations(saved, space->options.nguid);
    Result<void> stored = co_await options_.reservation_store->save(options_.nqn, nsid, bytes);
    if (!stored) co_return StatusCode::kInternalError;
    space = find(nsid);
    if (space == nullptr) co_return final_status(StatusCode::kInvalidNamespaceOrFormat);
  }
  space->reservations = std::move(next);
  const ReservationView view = space->reservations.view();
  co_await on_every_core(env_, [this, nsid, &view](env::Env& there) {
    if (CoreNamespace* each = on_core(there.core()).find(nsid)) each->reservation = view;
  });
  co_return Status();
}

void Subsystem::tell(uint32_t nsid, std::span<const Reservations::Notice> notices) {
  for (const Reservations::Notice& notice : notices) {
    for (const auto& [id, controller] : controllers_) {
      if (controller->host() == notice.host && controller->notices.add(nsid, notice.type)) {
        controller->raise(EventKind::kReservation);
      }
    }
  }
}

task::Task<void> Subsystem::abort_commands(uint32_t nsid, std::span<const HostId> hosts) {
  std::vector<task::Task<void>> aborts;
  for (const auto& [id, controller] : controllers_) {
    if (std::ranges::find(hosts, controller->host()) != hosts.end()) {
      aborts.push_back(controller->abort_namespace(nsid));
    }
  }
  co_await task::when_all(std::move(aborts));
}

task::Task<Status> Subsystem::set_persistence(std::string host_nqn, uint32_t nsid, bool persists) {
  if (persists && !options_.keep_reservations) co_return final_status(StatusCode::kInvalidField);
  std::vector<uint32_t> nsids;
  for (const auto& [id, space] : namespaces_) {
    if (nsid != id && nsid != kBroadcastNsid) continue;
    if (space.options.is_for(host_nqn)) nsids.push_back(id);
  }
  if (nsids.empty()) co_return final_status(StatusCode::kInvalidNamespaceOrFormat);
  Result<void> turn = co_await reserving_.acquire(1);
  if (!turn) co_return StatusCode::kAbortRequested;
  Status status;
  for (const uint32_t id : nsids) {
    const Namespace* space = find(id);
    if (space == nullptr || !status.ok()) continue;
    Reservations next = space->reservations;
    next.set_persists(persists);
    status = co_await replace(id, std::move(next));
  }
  reserving_.release(1);
  co_return status;
}

}  // namespace cairn::nvme
