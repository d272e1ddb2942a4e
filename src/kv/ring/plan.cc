// SPDX-License-Identifier: Apache-2.0
#include "kv/ring/plan.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "kv/ring/placement.h"

namespace cairn::kv::ring {

namespace {

using State = Replica::State;

Epoch after(Epoch epoch) { return Epoch(epoch.value() + 1); }

bool is_busy(const RingRange& range) { return range.running() != range.chain.size(); }

View first_view(const PlanInput& input, const PlanOptions& options) {
  View view{.epoch = Epoch(1), .replicas = options.replicas, .members = {}, .ranges = {}};
  for (const auto& [id, node] : input.nodes) view.members.push_back(node.member);
  const Placement placement(view.members);
  for (const uint64_t end : placement.ends()) {
    RingRange& range = view.ranges.emplace_back(RingRange{end, view.epoch, {}});
    for (const MemberId owner : placement.owners(end, view.replicas)) {
      range.chain.push_back({owner, State::kRunning});
    }
  }
  return view;
}

class Step {
 public:
  Step(View view, const PlanInput& input, const PlanOptions& options)
      : view_(std::move(view)), input_(input), options_(options), epoch_(after(view_.epoch)) {}

  std::optional<View> take() {
    drop_lost();
    update_members();
    for (RingRange& range : view_.ranges) {
      finish_join(range);
      finish_leave(range);
    }
    forget_members();
    place();
    merge();
    // Whoever sees another view, though nothing else is new in it, is alive now.
    if (!changed_ && !asks_for_life_) return std::nullopt;
    if (view_.ranges.size() > kRangesMax) return std::nullopt;
    view_.epoch = epoch_;
    return std::move(view_);
  }

 private:
  // The process that the view knows is there, perhaps with another lease.
  bool is_here(MemberId id) const {
    const auto found = input_.nodes.find(id);
    const Member* member = view_.member(id);
    return found != input_.nodes.end() && member != nullptr &&
           is_same_process(found->second.member.incarnation, member->incarnation);
  }
  Epoch missed_at(MemberId id) const {
    const auto found = input_.missed.find(id);
    return found == input_.missed.end() ? view_.epoch : found->second;
  }
  // Whether the node was alive when the others were missed already. If that cannot be known yet, it
  // is asked.
  bool outlived(MemberId id, const std::vector<MemberId>& others) {
    const Epoch seen = input_.nodes.at(id).seen;
    bool did = true;
    for (const MemberId other : others) {
      if (other == id || seen > missed_at(other)) continue;
      did = false;
      asks_for_life_ = asks_for_life_ || missed_at(other) == view_.epoch;
    }
    return did;
  }
  void change(RingRange& range) {
    range.epoch = epoch_;
    changed_ = true;
  }

  // What is to become of a chain of which somebody is not here.
  struct Loss {
    RingRange* range;
    std::vector<Replica> kept;
    std::optional<MemberId> back;  // another process at a store, which goes on as all who hold it
  };

  // None: nothing yet.
  std::optional<Loss> judge(RingRange& range) {
    Loss loss{.range = &range, .kept = {}, .back = {}};
    std::vector<MemberId> lost;  // who held it
    bool has_holder = false;
    bool is_sure = false;
    for (const Replica& each : range.chain) {
      if (is_here(each.member)) {
        loss.kept.push_back(each);
        has_holder = has_holder || each.state != State::kJoining;
      } else if (each.state != State::kJoining) {
        lost.push_back(each.member);
      }
    }
    if (std::ranges::any_of(lost, [&](MemberId id) { return input_.awaited.contains(id); })) {
      return std::nullopt;
    }
    for (const Replica& each : loss.kept) {
      is_sure = is_sure || (each.state != State::kJoining && outlived(each.member, lost));
    }
    // All who hold it are away: the first that is back, by its store, stays.
    for (size_t i = 0; i < range.chain.size() && !has_holder; ++i) {
      const Replica& each = range.chain[i];
      if (each.state == State::kJoining || !input_.nodes.contains(each.member)) continue;
      if (!outlived(each.member, lost)) continue;
      loss.kept.insert(loss.kept.begin(), {each.member, State::kRunning});
      loss.back = each.member;
      has_holder = is_sure = true;
    }
    if (!is_sure) return std::nullopt;
    return loss;
  }

  void drop_lost() {
    std::vector<Loss> losses;
    for (RingRange& range : view_.ranges) {
      if (std::ranges::all_of(range.chain, [&](const Replica& r) { return is_here(r.member); })) {
        continue;
      }
      if (std::optional<Loss> loss = judge(range)) {
        losses.push_back(std::move(*loss));
      } else {
        note_open(range);
      }
    }
    // A process that goes on by its store is the member from now on: not while another chain has
    // the one before it.
    const auto waits = [&](const Loss& loss) { return loss.back && open_.contains(*loss.back); };
    for (auto found = std::ranges::find_if(losses, waits); found != losses.end();
         found = std::ranges::find_if(losses, waits)) {
      note_open(*found->range);
      losses.erase(found);
    }
    for (Loss& loss : losses) {
      // One that was leaving may be all that is left.
      if (std::ranges::none_of(loss.kept,
                               [](const Replica& r) { return r.state == State::kRunning; })) {
        std::ranges::find_if(loss.kept, [](const Replica& r) {
          return r.state == State::kLeaving;
        })->state = State::kRunning;
      }
      loss.range->chain = std::move(loss.kept);
      change(*loss.range);
    }
  }
  void note_open(const RingRange& range) {
    for (const Replica& each : range.chain) {
      if (!is_here(each.member)) open_.insert(each.member);
    }
  }

  void update_members() {
    for (const auto& [id, node] : input_.nodes) {
      const auto found = std::ranges::lower_bound(view_.members, id, {}, &Member::id);
      if (found != view_.members.end() && found->id == id) {
        if (*found == node.member || open_.contains(id)) continue;
        // Where it is in chains yet, their epochs are others now.
        if (found->incarnation != node.member.incarnation) {
          for (RingRange& range : view_.ranges) {
            if (range.position(id)) change(range);
          }
        }
        *found = node.member;
      } else {
        const bool goes = node.member.state == Member::State::kLeaving;
        if (goes || view_.members.size() == kMembersMax) continue;
        view_.members.insert(found, node.member);
      }
      changed_ = true;
    }
  }

  void finish_join(RingRange& range) {
    if (range.chain.back().state != State::kJoining || range.chain.size() < 2) return;
    const auto before = input_.nodes.find(range.chain[range.chain.size() - 2].member);
    if (before == input_.nodes.end()) return;
    const std::pair<uint64_t, Epoch> told{range.end, range.epoch};
    if (std::ranges::find(before->second.copied, told) == before->second.copied.end()) return;
    range.chain.back().state = State::kRunning;
    change(range);
  }

  void finish_leave(RingRange& range) {
    const size_t gone = std::erase_if(range.chain, [&](const Replica& each) {
      const auto node = input_.nodes.find(each.member);
      return each.state == State::kLeaving && range.epoch != epoch_ && node != input_.nodes.end() &&
             node->second.seen >= range.epoch;
    });
    if (gone > 0) change(range);
  }

  // Those who will not come back, or want to go, once no chain has them.
  void forget_members() {
    const size_t gone = std::erase_if(view_.members, [&](const Member& member) {
      const bool goes = member.state == Member::State::kLeaving ||
                        (input_.given_up.contains(member.id) && !is_here(member.id));
      return goes && std::ranges::none_of(view_.ranges, [&](const RingRange& range) {
               return range.position(member.id).has_value();
             });
    });
    changed_ = changed_ || gone > 0;
  }

  void place() {
    std::vector<Member> staying;
    for (const Member& member : view_.members) {
      const bool goes = member.state == Member::State::kLeaving ||
                        (input_.given_up.contains(member.id) && !is_here(member.id));
      if (!goes) staying.push_back(member);
    }
    const Placement placement(staying);
    for (const uint64_t end : placement.ends()) split(end);
    size_t joining = 0;
    for (const RingRange& range : view_.ranges) {
      joining += range.chain.back().state == State::kJoining ? 1 : 0;
    }
    for (RingRange& range : view_.ranges) {
      if (is_busy(range)) continue;
      improve(range, placement.owners(range.end, view_.replicas), joining);
    }
  }

  void split(uint64_t end) {
    const auto found = std::ranges::lower_bound(view_.ranges, end, {}, &RingRange::end);
    if (found != view_.ranges.end() && found->end == end) return;
    if (view_.ranges.size() == kRangesMax) return;
    const RingRange& whole = found == view_.ranges.end() ? view_.ranges.front() : *found;
    // What is being copied stays as it is until it is there.
    if (is_busy(whole)) return;
    RingRange part = whole;
    part.end = end;
    view_.ranges.insert(found, std::move(part));
    changed_ = true;
  }

  void improve(RingRange& range, const std::vector<MemberId>& owners, size_t& joining) {
    if (range.chain.size() > view_.replicas && remove_surplus(range, owners)) return;
    for (const MemberId owner : owners) {
      if (range.position(owner) || !is_here(owner)) continue;
      if (joining >= options_.joining_max) return;
      range.chain.push_back({owner, State::kJoining});
      ++joining;
      return change(range);
    }
    // All who should have it and are there do. Who should not goes, if enough are left.
    const size_t enough = std::min<size_t>(view_.replicas, owners.size());
    if (!owners.empty() && range.chain.size() > enough) remove_surplus(range, owners);
  }

  // False: all of the chain should be in it.
  bool remove_surplus(RingRange& range, const std::vector<MemberId>& owners) {
    for (Replica& each : range.chain) {
      if (std::ranges::find(owners, each.member) != owners.end()) continue;
      each.state = State::kLeaving;
      change(range);
      return true;
    }
    return false;
  }

  // Ranges whose end is nobody's token go up in the next, if that has the same chain.
  // One that is being copied is busy, so what it covers does not change meanwhile.
  void merge() {
    const Placement placement(view_.members);
    for (size_t i = 0; i + 1 < view_.ranges.size();) {
      RingRange& next = view_.ranges[i + 1];
      if (placement.is_end(view_.ranges[i].end) || next.chain != view_.ranges[i].chain ||
          is_busy(next)) {
        ++i;
        continue;
      }
      change(next);
      view_.ranges.erase(view_.ranges.begin() + static_cast<ptrdiff_t>(i));
    }
  }

  View view_;
  const PlanInput& input_;
  const PlanOptions& options_;
  const Epoch epoch_;
  bool changed_ = false;
  bool asks_for_life_ = false;
  std::set<MemberId> open_;  // not here, and still in chains as the process that they were
};

}  // namespace

std::optional<View> next_view(const std::optional<View>& now, const PlanInput& input,
                              const PlanOptions& options) {
  if (now) return Step(*now, input, options).take();
  if (input.nodes.size() < std::max<size_t>(options.members_min, 1)) return std::nullopt;
  return first_view(input, options);
}

bool is_settled(const View& view) {
  const Placement placement(view.members);
  return std::ranges::all_of(view.ranges, [&](const RingRange& range) {
    const std::vector<MemberId> owners = placement.owners(range.end, view.replicas);
    return range.chain.size() == owners.size() && range.running() == owners.size() &&
           std::ranges::all_of(owners, [&](MemberId id) { return range.position(id).has_value(); });
  });
}

}  // namespace cairn::kv::ring
