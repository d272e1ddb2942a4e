// SPDX-License-Identifier: Apache-2.0
#include "kv/ring/absences.h"

#include <utility>

namespace cairn::kv::ring {

void Absences::look(const View& view, Time now, PlanInput& input) {
  std::map<MemberId, Absence> absent;
  size_t lost = 0;  // leases that the view knows
  for (const Member& member : view.members) {
    const auto node = input.nodes.find(member.id);
    const bool is_away = node == input.nodes.end();
    if (!is_away && node->second.member.incarnation == member.incarnation) continue;
    ++lost;
    if (!is_away && is_same_process(node->second.member.incarnation, member.incarnation)) continue;
    Absence absence{member.incarnation, view.epoch, now};
    if (const auto before = absent_.find(member.id); before != absent_.end()) {
      // Else another incarnation of it came into the view, and was missed after that.
      if (before->second.incarnation == member.incarnation) absence = before->second;
      absence.away = before->second.away != Time::never() ? before->second.away : now;
      absence.is_of_many = before->second.is_of_many;
    }
    if (!is_away) absence.away = Time::never();
    absent.emplace(member.id, absence);
  }
  absent_ = std::move(absent);
  const bool are_many = lost >= 2 && lost * 2 >= view.members.size();
  for (auto& [id, absence] : absent_) {
    absence.is_of_many = absence.is_of_many || are_many;
    input.missed.emplace(id, absence.epoch);
    if (absence.away == Time::never()) continue;
    if (now - absence.away >= options_.give_up_after) input.given_up.insert(id);
    if (absence.is_of_many && now - absence.away < options_.return_time) input.awaited.insert(id);
  }
}

}  // namespace cairn::kv::ring
