// SPDX-License-Identifier: Apache-2.0
// Roster: a ring as operators see it, in its metadata store, and what they ask of it.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/error.h"
#include "kv/ring/view.h"
#include "kv/ring/view_format.h"
#include "meta/store.h"
#include "meta/types.h"
#include "task/cancel.h"
#include "task/task.h"

namespace cairn::kv::ring {

struct Roster {
  std::optional<View> view;              // none: there is no ring yet
  meta::Revision modified;               // when the view was written; 0: never
  std::map<MemberId, NodeRecord> nodes;  // whose leases last
  std::set<MemberId> sent_away;          // by operators, until they are called back
};

// `prefix` as in MembershipOptions. Errors of the store; kCorrupt, kUnsupported: of the view. A
// node's record that makes no sense is left out, as if the node were away.
task::Task<Result<Roster>> read_roster(meta::Store& store, std::string prefix,
                                       task::CancelToken token);

// The member's keys go to others, and it takes part no more: a node that runs once all are there,
// one that is away as soon as others can take its place. It stays so until it is called back.
task::Task<Result<void>> send_away(meta::Store& store, std::string prefix, MemberId member,
                                   task::CancelToken token);
// It may take part again. Nothing happens if it was not sent away.
task::Task<Result<void>> call_back(meta::Store& store, std::string prefix, MemberId member,
                                   task::CancelToken token);

// How far a member is: ranges that it keeps, gets, gives away, and is to have in the end.
struct Share {
  size_t running = 0;
  size_t joining = 0;
  size_t leaving = 0;
  size_t wanted = 0;
  size_t named = 0;  // whose chain names it
};
std::map<MemberId, Share> shares(const View& view);

}  // namespace cairn::kv::ring
