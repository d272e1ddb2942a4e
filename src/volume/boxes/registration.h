// SPDX-License-Identifier: Apache-2.0
// Registration: a host's place among those that a namespace serves.
//
// The first time it registers the host's key, asks the box to keep reservations over a restart if
// it can, and acquires the reservation if nobody has. Whenever a session begins later it only looks
// whether the host is still registered and the reservation held. If not, the host was fenced, or
// the box has forgotten its reservations and with them who was fenced: either way nothing is sent
// (kDenied). So a box without memory is safe as long as all hosts that come back do this.
//
// kUnsupported: the box has no reservations of the kind that is needed.
#pragma once

#include <cstdint>
#include <optional>
#include <set>

#include "fabric/host/admission.h"
#include "fabric/host/reservation.h"
#include "task/sync.h"
#include "volume/boxes/box_identity.h"

namespace cairn::volume {

// An all-registrants type: with others the reservation goes when one host does, or is one host's.
inline constexpr nvme::ReservationType kBoxReservation = nvme::ReservationType::kExclusiveAccessAll;

class Registration final : public fabric::Admission {
 public:
  // Who loses its registration when this host has its own.
  struct Expelled {
    std::optional<uint64_t> key;                // the host with this key
    std::optional<std::set<uint64_t>> besides;  // all hosts but this one and those with these keys
  };

  // It stays registered, or leaves with its drive.
  Registration(BoxIdentity self, bool stays) : self_(self), stays_(stays) {}
  Registration(BoxIdentity self, bool stays, Expelled expelled)
      : self_(self), stays_(stays), expelled_(std::move(expelled)) {}

  task::Task<Result<void>> enter(fabric::HostSession& session, fabric::NamespaceInfo info,
                                 task::CancelToken token) override;
  task::Task<void> leave(fabric::HostSession& session, fabric::NamespaceInfo info) override;

 private:
  task::Task<Result<void>> register_once(fabric::ReservationPlace place, bool persists,
                                         task::CancelToken token);
  task::Task<Result<void>> hold(fabric::ReservationPlace place, fabric::ReservationReport report,
                                task::CancelToken token);
  task::Task<Result<void>> expel(fabric::ReservationPlace place, fabric::ReservationReport report,
                                 task::CancelToken token);
  bool is_expelled(const fabric::ReservationReport::Host& host) const;

  const BoxIdentity self_;
  const bool stays_;
  const Expelled expelled_;
  bool has_registered_ = false;  // or tried to
  task::Semaphore turn_{1};
};

}  // namespace cairn::volume
