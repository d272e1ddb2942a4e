// SPDX-License-Identifier: Apache-2.0
// Reservations: which hosts registered with a namespace and which of them hold it (NVMe Base 2.0,
// 7 and 8.19). A value: commands change a copy, and whoever owns the truth replaces it.
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "nvme/format/log_format.h"
#include "nvme/format/reservation_format.h"
#include "nvme/format/status_format.h"
#include "nvme/reservation/reservation_view.h"

namespace cairn::nvme {

class Reservations {
 public:
  struct Registration {
    HostId host{};
    uint64_t key = 0;
    friend bool operator==(const Registration&, const Registration&) = default;
  };
  // What is to be told to a host.
  struct Notice {
    HostId host{};
    ReservationNotice type{};
    friend bool operator==(const Notice&, const Notice&) = default;
  };
  struct Outcome {
    Status status;
    std::vector<Notice> notices;
    std::vector<HostId> preempted;  // kPreemptAndAbort: whose commands are to be aborted
  };

  // Each is one command of `host`. When it fails nothing has changed.
  Outcome registration(const HostId& host, const RegisterFields& fields, const RegisterData& data);
  Outcome acquire(const HostId& host, const AcquireFields& fields, const AcquireData& data);
  Outcome release(const HostId& host, const ReleaseFields& fields, const ReleaseData& data);
  // Writes the extended report, cut off or filled up with zeroes to the size of `into`.
  void report(MutableBytes into) const;

  // What cores check commands against.
  ReservationView view() const;

  const std::vector<Registration>& registrations() const { return registrations_; }
  ReservationType type() const { return type_; }
  // Who acquired it; with the types for all registrants every one of them holds it.
  const HostId& holder() const { return holder_; }
  bool is_holder(const HostId& host) const;
  uint32_t generation() const { return generation_; }
  bool persists() const { return persists_; }

  // PTPL. Ignored unless the namespace can keep its reservations, which is what RESCAP says: Linux
  // asks for it with every registration and does not look.
  void set_persists(bool persists) { persists_ = persists && can_persist_; }
  void set_can_persist(bool can) { can_persist_ = can; }
  bool can_persist() const { return can_persist_; }

  // For those who store it: everything but can_persist().
  struct Saved {
    bool persists = false;
    uint32_t generation = 0;
    ReservationType type = ReservationType::kNone;
    HostId holder{};
    std::vector<Registration> registrations;
    friend bool operator==(const Saved&, const Saved&) = default;
  };
  // Nothing unless persists().
  Saved save() const;
  void restore(const Saved& saved);

 private:
  Registration* find(const HostId& host);
  bool has_key(const HostId& host, uint64_t key);
  bool is_for_all() const;
  void take(const HostId& host, ReservationType type);
  void drop_reservation();
  Outcome unregister(const HostId& host);
  Outcome preempt(const HostId& host, const AcquireFields& fields, uint64_t key);
  // Unregisters those with the key, or all, except `host`, and notes it.
  void unregister_others(const HostId& host, const uint64_t* key, Outcome& outcome);
  void tell_others(const HostId& host, ReservationNotice type, Outcome& outcome) const;

  std::vector<Registration> registrations_;
  ReservationType type_ = ReservationType::kNone;
  HostId holder_{};
  uint32_t generation_ = 0;
  bool persists_ = false;
  bool can_persist_ = false;
};

}  // namespace cairn::nvme
