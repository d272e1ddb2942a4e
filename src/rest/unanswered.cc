// SPDX-License-Identifier: Apache-2.0
#include "rest/unanswered.h"

#include <algorithm>
#include <utility>

namespace cairn::rest {

void Unanswered::add(uint64_t object, Change change) {
  if (objects_.size() >= kUnansweredMax && !objects_.contains(object)) {
    is_full_ = true;
    return;
  }
  Sent& sent = objects_[object];
  sent.awaits_absence = sent.awaits_absence || change.before.is_absent;
  // Of many the last ones explain what is there: the others had the same condition.
  if (sent.changes.size() >= kUnansweredPerObject) sent.changes.erase(sent.changes.begin());
  sent.changes.push_back(std::move(change));
}

bool Unanswered::has(uint64_t object) const {
  const auto found = objects_.find(object);
  return is_full_ || (found != objects_.end() && !found->second.changes.empty());
}

bool Unanswered::explains(uint64_t object, const Version& found, uint32_t checksum) const {
  const auto sent = objects_.find(object);
  if (sent == objects_.end()) return false;
  return std::ranges::any_of(sent->second.changes, [&](const Change& change) {
    if (!change.before.is_known() || change.before == found) return false;
    return change.is_removal ? found.is_absent : !found.is_absent && change.checksum == checksum;
  });
}

bool Unanswered::awaits_absence(uint64_t object) const {
  const auto sent = objects_.find(object);
  return is_full_ || (sent != objects_.end() && sent->second.awaits_absence);
}

void Unanswered::outdate(uint64_t object) {
  const auto sent = objects_.find(object);
  if (sent == objects_.end()) return;
  sent->second.changes.clear();
  if (!sent->second.awaits_absence) objects_.erase(sent);
}

}  // namespace cairn::rest
