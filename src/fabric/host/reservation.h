// SPDX-License-Identifier: Apache-2.0
// Reservation commands as calls (NVMe Base 2.0, 8.19). Each fails as CommandOp does, and with
// error_of() the status that was answered: a conflict is kDenied.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/error.h"
#include "fabric/host/session.h"
#include "nvme/format/reservation_format.h"
#include "task/cancel.h"
#include "task/task.h"

namespace cairn::fabric {

// The commands are sent to a namespace of a session.
struct ReservationPlace {
  HostSession& session;
  uint32_t nsid = 0;
};

task::Task<Result<void>> register_host(ReservationPlace place, nvme::RegisterFields fields,
                                       nvme::RegisterData keys, task::CancelToken token);
task::Task<Result<void>> acquire_reservation(ReservationPlace place, nvme::AcquireFields fields,
                                             nvme::AcquireData keys, task::CancelToken token);

struct ReservationReport {
  struct Host {
    std::array<uint8_t, 16> id{};
    uint64_t key = 0;
  };
  nvme::ReservationType type{};
  bool persists = false;  // through power loss
  std::vector<Host> hosts;

  // The key of a host; 0: it is not registered.
  uint64_t key_of(const std::array<uint8_t, 16>& id) const;
};
// kCorrupt: the answer makes no sense.
task::Task<Result<ReservationReport>> report_reservation(ReservationPlace place,
                                                         task::CancelToken token);

}  // namespace cairn::fabric
