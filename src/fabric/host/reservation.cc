// SPDX-License-Identifier: Apache-2.0
#include "fabric/host/reservation.h"

#include <algorithm>
#include <optional>

#include "base/bytes.h"
#include "fabric/host/status_error.h"
#include "nvme/format/field.h"

namespace cairn::fabric {

using nvme::IoOpcode;
using task::CancelToken;
using task::Task;

namespace {

constexpr size_t kHead = sizeof(nvme::ReservationStatusExtended);
constexpr size_t kEntry = sizeof(nvme::RegistrantExtended);
constexpr size_t kFirstPage = 4096;

Task<Result<void>> send(ReservationPlace place, nvme::Sqe sqe, MutableBytes data,
                        CancelToken token) {
  const Result<nvme::Cqe> answer = co_await place.session.io(sqe, data, token);
  if (!answer) co_return fail(answer.error());
  if (!answer->get_status().ok()) co_return fail(error_of(answer->get_status()));
  co_return Result<void>();
}

// None: there are more hosts than the page has room for.
std::optional<ReservationReport> read_report(Bytes page, size_t hosts) {
  if (kHead + hosts * kEntry > page.size()) return std::nullopt;
  const auto head = load<nvme::ReservationStatusExtended>(page);
  ReservationReport report{.type = head.status.type, .persists = head.status.persist != 0};
  report.hosts.reserve(hosts);
  for (size_t i = 0; i < hosts; ++i) {
    const auto entry = load<nvme::RegistrantExtended>(page.subspan(kHead + i * kEntry));
    report.hosts.push_back({.id = entry.host_id, .key = entry.key});
  }
  return report;
}

}  // namespace

Task<Result<void>> register_host(ReservationPlace place, nvme::RegisterFields fields,
                                 nvme::RegisterData keys, CancelToken token) {
  nvme::Sqe sqe = nvme::Sqe::make(IoOpcode::kReservationRegister, place.nsid);
  fields.encode(sqe);
  const Result<void> done = co_await send(place, sqe, nvme::mutable_bytes_of(keys), token);
  co_return done;
}

Task<Result<void>> acquire_reservation(ReservationPlace place, nvme::AcquireFields fields,
                                       nvme::AcquireData keys, CancelToken token) {
  nvme::Sqe sqe = nvme::Sqe::make(IoOpcode::kReservationAcquire, place.nsid);
  fields.encode(sqe);
  const Result<void> done = co_await send(place, sqe, nvme::mutable_bytes_of(keys), token);
  co_return done;
}

Task<Result<ReservationReport>> report_reservation(ReservationPlace place, CancelToken token) {
  size_t size = kFirstPage;
  // Hosts may come between two looks.
  for (int tries = 0; tries < 3; ++tries) {
    std::vector<std::byte> page(size);
    nvme::Sqe sqe = nvme::Sqe::make(IoOpcode::kReservationReport, place.nsid);
    nvme::ReportFields{.dwords = static_cast<uint32_t>(size / 4 - 1), .extended = true}.encode(sqe);
    const Result<void> done = co_await send(place, sqe, page, token);
    if (!done) co_return fail(done.error());
    const size_t hosts = load<nvme::ReservationStatusExtended>(page).status.registrants;
    std::optional<ReservationReport> report = read_report(page, hosts);
    if (report) co_return std::move(*report);
    size = kHead + hosts * kEntry;
  }
  co_return fail(Errc::kCorrupt, "the target's report of reservations is never whole");
}

uint64_t ReservationReport::key_of(const std::array<uint8_t, 16>& id) const {
  const auto found = std::ranges::find(hosts, id, &Host::id);
  return found == hosts.end() ? 0 : found->key;
}

}  // namespace cairn::fabric
