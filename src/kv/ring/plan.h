// SPDX-License-Identifier: Apache-2.0
// How a view becomes the next one: a pure function of it and of what nodes say of themselves.
//
// What keeps readers and writers right at each step:
// - Whoever is added gets all writes from then on (kJoining), and answers reads only when the one
//   before it in the chain has said that it holds everything.
// - Whoever lives and has to go is kLeaving until it has seen that view: it answers no reads by
//   then, so a chain without it may go on. Whoever's lease has ended answers none either.
// - Every running or leaving replica of a chain holds all that was acknowledged. So any of them may
//   be taken out, but the last one; of several that are all away, the first to come back stays.
// - Nobody is taken out because others have leases, which the dead have for a while too: one who
//   stays and holds everything has to have seen a view that was made after the loss was noticed.
// - A process that lost its lease and has another one knows what it knew. As long as the view has
// it
//   in a chain, nothing was acknowledged without it: it stays, and the chain's epoch changes.
// - A node that came back as another process kept its store at best as it was: it is taken out, and
//   joins again, unless nobody else of the chain is there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include "kv/ring/view.h"
#include "kv/ring/view_format.h"

namespace cairn::kv::ring {

struct PlanInput {
  std::map<MemberId, NodeRecord> nodes;  // whose leases last
  std::set<MemberId> given_up;           // away for so long that others take their place
  // Members whose process is not there, and the view's epoch when that was noticed (absences.h).
  // Whoever is missing here was noticed just now.
  std::map<MemberId, Epoch> missed;
  std::set<MemberId> awaited;  // of them, those who may be back in a moment
};

struct PlanOptions {
  uint32_t replicas = 3;
  size_t members_min = 3;   // for the first view
  size_t joining_max = 32;  // ranges with a replica that is joining, at once
};

// None: nothing is to be done now.
std::optional<View> next_view(const std::optional<View>& now, const PlanInput& input,
                              const PlanOptions& options);

// Whether every chain has its replicas where they should be, and nobody is on the way.
bool is_settled(const View& view);

}  // namespace cairn::kv::ring
