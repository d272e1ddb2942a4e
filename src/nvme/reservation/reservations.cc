// SPDX-License-Identifier: Apache-2.0
#include "nvme/reservation/reservations.h"

#include <algorithm>
#include <utility>

#include "nvme/format/limits.h"

namespace cairn::nvme {

namespace {

Reservations::Outcome refuse(StatusCode code) { return {.status = final_status(code)}; }

bool is_valid(ReservationType type) {
  return type >= ReservationType::kWriteExclusive && type <= ReservationType::kExclusiveAccessAll;
}

// Types whose end concerns the other registrants: they had access because of it.
bool is_shared(ReservationType type) {
  return type != ReservationType::kNone && type != ReservationType::kWriteExclusive &&
         type != ReservationType::kExclusiveAccess;
}

}  // namespace

Reservations::Registration* Reservations::find(const HostId& host) {
  const auto found = std::ranges::find(registrations_, host, &Registration::host);
  return found == registrations_.end() ? nullptr : &*found;
}

bool Reservations::has_key(const HostId& host, uint64_t key) {
  const Registration* registration = find(host);
  return registration != nullptr && registration->key == key;
}

bool Reservations::is_for_all() const {
  return type_ == ReservationType::kWriteExclusiveAll ||
         type_ == ReservationType::kExclusiveAccessAll;
}

bool Reservations::is_holder(const HostId& host) const {
  if (type_ == ReservationType::kNone) return false;
  if (!is_for_all()) return host == holder_;
  return std::ranges::find(registrations_, host, &Registration::host) != registrations_.end();
}

void Reservations::take(const HostId& host, ReservationType type) {
  type_ = type;
  holder_ = host;
}

void Reservations::drop_reservation() { take({}, ReservationType::kNone); }

void Reservations::tell_others(const HostId& host, ReservationNotice type, Outcome& outcome) const {
  for (const Registration& each : registrations_) {
    if (each.host != host) outcome.notices.push_back({.host = each.host, .type = type});
  }
}

Reservations::Outcome Reservations::registration(const HostId& host, const RegisterFields& fields,
                                                 const RegisterData& data) {
  if (fields.persist == PersistChange::kReserved) return refuse(StatusCode::kInvalidField);
  Registration* mine = find(host);
  const bool key_fits = mine != nullptr && (fields.ignore_key || mine->key == data.current_key);
  Outcome outcome;
  switch (fields.action) {
    case RegisterAction::kRegister:
      if (data.new_key == 0) return refuse(StatusCode::kInvalidField);
      if (mine != nullptr && mine->key != data.new_key) {
        return refuse(StatusCode::kReservationConflict);
      }
      break;
    case RegisterAction::kUnregister:
      if (!key_fits) return refuse(StatusCode::kReservationConflict);
      break;
    case RegisterAction::kReplace:
      if (data.new_key == 0) return refuse(StatusCode::kInvalidField);
      // With IEKEY a host may say its key without regard to whether it is registered (8.19.3).
      if (!key_fits && !fields.ignore_key) return refuse(StatusCode::kReservationConflict);
      break;
    default:
      return refuse(StatusCode::kInvalidField);
  }
  if (fields.action == RegisterAction::kUnregister) {
    outcome = unregister(host);
  } else if (mine != nullptr) {
    mine->key = data.new_key;
  } else if (registrations_.size() == kRegistrantsMax) {
    return {.status = StatusCode::kInternalError};
  } else {
    registrations_.push_back({.host = host, .key = data.new_key});
  }
  ++generation_;
  if (fields.persist != PersistChange::kKeep) set_persists(fields.persist == PersistChange::kSet);
  return outcome;
}

// The holder that leaves takes its reservation along; one for all registrants ends with the last.
Reservations::Outcome Reservations::unregister(const HostId& host) {
  Outcome outcome;
  const bool ends = is_for_all() ? registrations_.size() == 1 : is_holder(host);
  std::erase_if(registrations_, [&](const Registration& each) { return each.host == host; });
  if (!ends) return outcome;
  if (is_shared(type_)) tell_others(host, ReservationNotice::kReservationReleased, outcome);
  drop_reservation();
  return outcome;
}

Reservations::Outcome Reservations::acquire(const HostId& host, const AcquireFields& fields,
                                            const AcquireData& data) {
  // IEKEY is an error here since NVMe 1.3, as RESCAP says.
  if (fields.ignore_key || !is_valid(fields.type)) return refuse(StatusCode::kInvalidField);
  if (fields.action > AcquireAction::kPreemptAndAbort) return refuse(StatusCode::kInvalidField);
  if (!has_key(host, data.current_key)) return refuse(StatusCode::kReservationConflict);
  if (fields.action != AcquireAction::kAcquire) return preempt(host, fields, data.preempt_key);
  if (type_ == ReservationType::kNone) {
    take(host, fields.type);
    return {};
  }
  if (is_holder(host) && fields.type == type_) return {};
  return refuse(StatusCode::kReservationConflict);
}

void Reservations::unregister_others(const HostId& host, const uint64_t* key, Outcome& outcome) {
  std::erase_if(registrations_, [&](const Registration& each) {
    if (each.host == host || (key != nullptr && each.key != *key)) return false;
    outcome.notices.push_back(
        {.host = each.host, .type = ReservationNotice::kRegistrationPreempted});
    outcome.preempted.push_back(each.host);
    return true;
  });
}

// NVMe Base 2.0, 8.19.7. Three cases: the reservation is preempted, only registrations are, or
// nothing fits the key.
Reservations::Outcome Reservations::preempt(const HostId& host, const AcquireFields& fields,
                                            uint64_t key) {
  const bool everybody = is_for_all() && key == 0;
  if (key == 0 && !everybody) return refuse(StatusCode::kInvalidField);
  if (!everybody &&
      std::ranges::find(registrations_, key, &Registration::key) == registrations_.end()) {
    return refuse(StatusCode::kReservationConflict);
  }
  const ReservationType before = type_;
  const Registration* held =
      is_for_all() || before == ReservationType::kNone ? nullptr : find(holder_);
  const bool takes_over = everybody || (held != nullptr && held->key == key);
  Outcome outcome;
  unregister_others(host, everybody ? nullptr : &key, outcome);
  if (takes_over) {
    if (is_shared(before) && before != fields.type) {
      tell_others(host, ReservationNotice::kReservationReleased, outcome);
    }
    take(host, fields.type);
  }
  ++generation_;
  if (fields.action != AcquireAction::kPreemptAndAbort) outcome.preempted.clear();
  return outcome;
}

Reservations::Outcome Reservations::release(const HostId& host, const ReleaseFields& fields,
                                            const ReleaseData& data) {
  if (fields.ignore_key || fields.action > ReleaseAction::kClear) {
    return refuse(StatusCode::kInvalidField);
  }
  if (!has_key(host, data.current_key)) return refuse(StatusCode::kReservationConflict);
  Outcome outcome;
  if (fields.action == ReleaseAction::kClear) {
    tell_others(host, ReservationNotice::kReservationPreempted, outcome);
    registrations_.clear();
    drop_reservation();
    ++generation_;
    return outcome;
  }
  // Releasing what one does not hold does nothing.
  if (!is_holder(host)) return outcome;
  if (fields.type != type_) return refuse(StatusCode::kInvalidField);
  if (is_shared(type_)) tell_others(host, ReservationNotice::kReservationReleased, outcome);
  drop_reservation();
  return outcome;
}

void Reservations::report(MutableBytes into) const {
  ReservationStatusExtended head;
  head.status.generation = generation_;
  head.status.type = type_;
  head.status.registrants = static_cast<uint16_t>(registrations_.size());
  head.status.persist = persists_ ? 1 : 0;
  std::vector<std::byte> page;
  const auto append = [&page](Bytes bytes) { page.insert(page.end(), bytes.begin(), bytes.end()); };
  append(bytes_of(head));
  for (const Registration& each : registrations_) {
    RegistrantExtended entry;
    // Controllers are made on Connect, so none belongs to a registration.
    entry.controller_id = kNoController;
    entry.status = is_holder(each.host) ? kHoldsReservation : uint8_t{0};
    entry.key = each.key;
    entry.host_id = each.host;
    append(bytes_of(entry));
  }
  page.resize(into.size());
  std::ranges::copy(page, into.begin());
}

ReservationView Reservations::view() const {
  ReservationView view{.type = type_, .holder = holder_, .registrants = {}};
  for (const Registration& each : registrations_) view.registrants.push_back(each.host);
  return view;
}

Reservations::Saved Reservations::save() const {
  if (!persists_) return {};
  return {.persists = true,
          .generation = generation_,
          .type = type_,
          .holder = holder_,
          .registrations = registrations_};
}

void Reservations::restore(const Saved& saved) {
  generation_ = saved.generation;
  type_ = saved.type;
  holder_ = saved.holder;
  registrations_ = saved.registrations;
  set_persists(saved.persists);
}

}  // namespace cairn::nvme
