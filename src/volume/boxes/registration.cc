// SPDX-License-Identifier: Apache-2.0
#include "volume/boxes/registration.h"

#include <utility>

#include "nvme/format/identify_namespace_format.h"
#include "task/deadline.h"

namespace cairn::volume {

using fabric::HostSession;
using fabric::NamespaceInfo;
using fabric::ReservationPlace;
using fabric::ReservationReport;
using task::CancelToken;
using task::Task;

namespace {

constexpr Duration kEnterLimit = 10_s;
constexpr Duration kLeaveLimit = 1_s;

constexpr Error kNoReservations{
    Errc::kUnsupported,
    "the box has no NVMe reservations for all registrants, by which writers of volumes are fenced: "
    "boxes of ours have them, and Linux from 6.13 on where resv_enable is 1"};
constexpr Error kNotRegistered{Errc::kDenied,
                               "the box does not know this host any more: it was fenced"};
constexpr Error kForeign{Errc::kDenied, "somebody else has reserved the drive, in another way"};

}  // namespace

Task<Result<void>> Registration::enter(HostSession& session, NamespaceInfo info,
                                       CancelToken token) {
  if ((info.reservations & nvme::Rescap::kExclusiveAccessAll) == 0) co_return fail(kNoReservations);
  task::Deadline deadline(session.env(), session.env().now() + kEnterLimit, token);
  // One path after the other: what is sent late registers nobody who was fenced meanwhile.
  const Result<void> turn = co_await turn_.acquire(1, deadline.token());
  if (!turn) co_return turn;
  const task::Units units(turn_, 1);
  const ReservationPlace place{.session = session, .nsid = info.nsid};
  if (!std::exchange(has_registered_, true)) {
    const bool persists = (info.reservations & nvme::Rescap::kPersist) != 0;
    const Result<void> done = co_await register_once(place, persists, deadline.token());
    if (!done) co_return done;
  }
  const Result<ReservationReport> report = co_await report_reservation(place, deadline.token());
  if (!report) co_return fail(report.error());
  if (report->key_of(self_.host_id) != self_.key) co_return fail(kNotRegistered);
  const Result<void> held = co_await hold(place, *report, deadline.token());
  if (!held) co_return held;
  co_return co_await expel(place, *report, deadline.token());
}

Task<Result<void>> Registration::register_once(ReservationPlace place, bool persists,
                                               CancelToken token) {
  const nvme::RegisterFields fields{
      .action = nvme::RegisterAction::kRegister,
      .persist = persists ? nvme::PersistChange::kSet : nvme::PersistChange::kKeep};
  co_return co_await register_host(place, fields, {.current_key = 0, .new_key = self_.key}, token);
}

// Whoever is registered with a reservation of this type holds it.
Task<Result<void>> Registration::hold(ReservationPlace place, ReservationReport report,
                                      CancelToken token) {
  if (report.type == kBoxReservation) co_return Result<void>();
  if (report.type != nvme::ReservationType::kNone) co_return fail(kForeign);
  const nvme::AcquireFields fields{.action = nvme::AcquireAction::kAcquire,
                                   .type = kBoxReservation};
  co_return co_await acquire_reservation(place, fields,
                                         {.current_key = self_.key, .preempt_key = 0}, token);
}

bool Registration::is_expelled(const ReservationReport::Host& host) const {
  if (host.id == self_.host_id) return false;
  if (expelled_.key && host.key == *expelled_.key) return true;
  return expelled_.besides && !expelled_.besides->contains(host.key);
}

// One command for each: what such a host has sent is aborted before the box answers.
Task<Result<void>> Registration::expel(ReservationPlace place, ReservationReport report,
                                       CancelToken token) {
  for (const ReservationReport::Host& host : report.hosts) {
    if (!is_expelled(host)) continue;
    const nvme::AcquireFields fields{.action = nvme::AcquireAction::kPreemptAndAbort,
                                     .type = kBoxReservation};
    const Result<void> done = co_await acquire_reservation(
        place, fields, {.current_key = self_.key, .preempt_key = host.key}, token);
    if (done) continue;
    // It may have left by itself, or somebody else has expelled it, which others do as well.
    const Result<ReservationReport> now = co_await report_reservation(place, token);
    if (!now) co_return fail(now.error());
    if (now->key_of(self_.host_id) != self_.key) co_return fail(kNotRegistered);
    if (now->key_of(host.id) == host.key) co_return done;
  }
  co_return Result<void>();
}

Task<void> Registration::leave(HostSession& session, NamespaceInfo info) {
  if (stays_) co_return;
  task::Deadline deadline(session.env(), session.env().now() + kLeaveLimit);
  const nvme::RegisterFields fields{.action = nvme::RegisterAction::kUnregister};
  // A registration that stays is in nobody's way: whoever had it writes nothing more.
  [[maybe_unused]] const Result<void> left =
      co_await fabric::register_host({.session = session, .nsid = info.nsid}, fields,
                                     {.current_key = self_.key, .new_key = 0}, deadline.token());
}

}  // namespace cairn::volume
