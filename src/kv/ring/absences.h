// SPDX-License-Identifier: Apache-2.0
// Absences: which members of a view are not there, and since when; what the plan has to know to
// tell a node that died from one that the metadata store did not hear for a while.
//
// A lease that lasts says that a node was there a lease ago. When the metadata store itself was
// away, a dead node's lease may be the only one that is left, while the living have lost theirs and
// are about to come back. So whoever is missed is noted with the view's epoch: only a node that has
// seen a later view was certainly alive when the other was not.
#pragma once

#include <map>

#include "base/units.h"
#include "kv/ring/plan.h"
#include "kv/ring/view.h"

namespace cairn::kv::ring {

struct AbsenceOptions {
  Duration give_up_after = 600_s;  // a member that is away so long loses its place
  // When half of all lost their leases at once, the metadata store was away rather: so long those
  // who have no other yet may come back.
  Duration return_time = 1500_ms;
};

class Absences {
 public:
  explicit Absences(const AbsenceOptions& options) : options_(options) {}

  // Fills in who is missed, awaited and given up, by the nodes that are there now.
  void look(const View& view, Time now, PlanInput& input);
  // At the beginning of a leadership: others changed the view meanwhile.
  void forget() { absent_.clear(); }

 private:
  struct Absence {
    Incarnation incarnation;
    Epoch epoch;              // of the view when it was missed first
    Time away;                // since when nobody was at the store; never: somebody is
    bool is_of_many = false;  // others lost their leases then, too
  };

  const AbsenceOptions options_;
  std::map<MemberId, Absence> absent_;
};

}  // namespace cairn::kv::ring
