// SPDX-License-Identifier: Apache-2.0
// ReservationView: who may do what to a namespace, in the form each core checks commands against.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "nvme/format/reservation_format.h"

namespace cairn::nvme {

using HostId = std::array<uint8_t, 16>;

// A copy of the truth on the control core, replaced whole when that changes.
struct ReservationView {
  ReservationType type = ReservationType::kNone;
  HostId holder{};
  std::vector<HostId> registrants;

  bool is_registrant(const HostId& host) const {
    for (const HostId& each : registrants) {
      if (each == host) return true;
    }
    return false;
  }
  // Whether a command that reads, or one that writes, is allowed from this host.
  bool permits(const HostId& host, bool writes) const {
    switch (type) {
      case ReservationType::kNone:
        return true;
      case ReservationType::kWriteExclusive:
        return !writes || host == holder;
      case ReservationType::kExclusiveAccess:
        return host == holder;
      case ReservationType::kWriteExclusiveRegistrants:
      case ReservationType::kWriteExclusiveAll:
        return !writes || is_registrant(host);
      case ReservationType::kExclusiveAccessRegistrants:
      case ReservationType::kExclusiveAccessAll:
        return is_registrant(host);
    }
    return false;
  }
};

}  // namespace cairn::nvme
