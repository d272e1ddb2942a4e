// SPDX-License-Identifier: Apache-2.0
// Where keys should be, and how a view gets there without losing any of them.
#include "kv/ring/plan.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "kv/ring/placement.h"
#include "kv/ring/view_format.h"
#include "meta/types.h"

namespace cairn::kv::ring {
namespace {

using State = Replica::State;

Member member_of(uint64_t id, std::string machine = "", std::string rack = "") {
  return {.id = MemberId(id),
          .incarnation = Incarnation(id * 100),
          .address = fmt::format("10.0.0.{}:4450", id),
          .location = {.machine = std::move(machine), .rack = std::move(rack)}};
}

std::vector<Member> members_of(size_t count) {
  std::vector<Member> members;
  for (uint64_t id = 1; id <= count; ++id) members.push_back(member_of(id));
  return members;
}

// The share of 20,000 hashes whose owners, taken as a set, gained somebody.
double share_moved(const std::vector<Member>& before, const std::vector<Member>& after,
                   size_t replicas) {
  const Placement one(before);
  const Placement other(after);
  const auto end_of = [](const Placement& placement, uint64_t hash) {
    const std::vector<uint64_t> ends = placement.ends();
    const auto found = std::ranges::lower_bound(ends, hash);
    return found == ends.end() ? ends.front() : *found;
  };
  Rng rng(5);
  double gained = 0;
  constexpr int kCount = 20'000;
  for (int i = 0; i < kCount; ++i) {
    const uint64_t hash = rng.next();
    const std::vector<MemberId> was = one.owners(end_of(one, hash), replicas);
    for (const MemberId owner : other.owners(end_of(other, hash), replicas)) {
      gained += std::ranges::find(was, owner) == was.end() ? 1.0 : 0.0;
    }
  }
  return gained / (kCount * static_cast<double>(replicas));
}

TEST(Placement, OneMoreOfNMovesAboutOneNthOfAllCopies) {
  for (const size_t count : {4, 8, 16}) {
    const double share = 1.0 / static_cast<double>(count + 1);
    const double moved = share_moved(members_of(count), members_of(count + 1), 3);
    EXPECT_GT(moved, share * 0.6) << count;
    EXPECT_LT(moved, share * 1.6) << count;
    fmt::print("one more than {}: {:.1f}% of copies move, 1/n is {:.1f}%\n", count, moved * 100,
               share * 100);
  }
}

TEST(Placement, AMemberWithTwiceTheDrivesHasAboutTwiceTheKeys) {
  std::vector<Member> members = members_of(8);
  members[3].drives = 2;
  const Placement placement(members);
  std::map<MemberId, double> share;
  const std::vector<uint64_t> ends = placement.ends();
  for (size_t i = 1; i < ends.size(); ++i) {
    share[placement.owners(ends[i], 1)[0]] += static_cast<double>(ends[i] - ends[i - 1]);
  }
  double others = 0;
  for (const auto& [id, part] : share) others += id == MemberId(4) ? 0 : part / 7;
  EXPECT_GT(share[MemberId(4)], 1.3 * others);
  EXPECT_LT(share[MemberId(4)], 2.8 * others);
}

TEST(Placement, ReplicasAreInDifferentRacksAsLongAsThereAreEnough) {
  std::vector<Member> members;
  for (uint64_t id = 1; id <= 9; ++id) {
    members.push_back(member_of(id, fmt::format("m{}", id / 2), fmt::format("r{}", id % 3)));
  }
  const Placement placement(members);
  for (const uint64_t end : placement.ends()) {
    std::set<std::string> racks;
    for (const MemberId owner : placement.owners(end, 3)) {
      racks.insert(members[owner.value() - 1].location.rack);
    }
    EXPECT_EQ(racks.size(), 3u);
  }
}

TEST(Placement, OneRackLeavesMachinesApartAndOneMachineLeavesMembersApart) {
  std::vector<Member> members;
  for (uint64_t id = 1; id <= 6; ++id) {
    members.push_back(member_of(id, fmt::format("m{}", id % 3), "r"));
  }
  for (const uint64_t end : Placement(members).ends()) {
    std::set<std::string> machines;
    for (const MemberId owner : Placement(members).owners(end, 3)) {
      machines.insert(members[owner.value() - 1].location.machine);
    }
    EXPECT_EQ(machines.size(), 3u);
  }
  for (Member& member : members) member.location.machine = "m";
  EXPECT_EQ(Placement(members).owners(7, 3).size(), 3u);
  EXPECT_EQ(Placement(members).owners(7, 9).size(), 6u);
}

// Nodes as the plan sees them, and who really holds which ranges.
class Model {
 public:
  explicit Model(uint64_t seed) : rng_(seed) {}

  void start(uint64_t id) {
    Member member = member_of(id);
    member.incarnation = Incarnation(++incarnations_ << kLeaseCountBits);
    input_.nodes[member.id] = {.member = member, .seen = {}, .copied = {}};
    input_.given_up.erase(member.id);
  }
  // The same process has another lease.
  void renew(uint64_t id, Incarnation before) {
    start(id);
    --incarnations_;
    input_.nodes.at(MemberId(id)).member.incarnation = Incarnation(before.value() + 1);
  }
  Incarnation incarnation(uint64_t id) const {
    return input_.nodes.at(MemberId(id)).member.incarnation;
  }
  // One that is dead, or does nothing, though its lease lasts.
  void stand_still(uint64_t id) { still_.insert(id); }
  void await(uint64_t id) { input_.awaited.insert(MemberId(id)); }
  void await_nobody() { input_.awaited.clear(); }
  void stop(uint64_t id) { input_.nodes.erase(MemberId(id)); }
  void give_up(uint64_t id) { input_.given_up.insert(MemberId(id)); }
  void leave(uint64_t id) { input_.nodes.at(MemberId(id)).member.state = Member::State::kLeaving; }
  bool is_up(uint64_t id) const { return input_.nodes.contains(MemberId(id)); }

  // What nodes do by themselves: some see the view, some finish copies.
  void work(double probability) {
    if (!view_) return;
    for (auto& [id, node] : input_.nodes) {
      if (still_.contains(id.value()) || !rng_.bernoulli(probability)) continue;
      node.seen = view_->epoch;
      node.copied.clear();
      for (const RingRange& range : view_->ranges) {
        const bool copies = range.chain.size() > 1 && range.chain.back().state == State::kJoining &&
                            range.chain[range.chain.size() - 2].member == id;
        if (copies) node.copied.emplace_back(range.end, range.epoch);
      }
    }
  }

  // False: there was nothing to do.
  bool step() {
    if (view_) note_missed();
    const std::optional<View> next = next_view(view_, input_, {.replicas = 3, .members_min = 3});
    if (!next) return false;
    EXPECT_EQ(next->epoch.value(), view_ ? view_->epoch.value() + 1 : 1);
    const Result<View> again = decode_view(as_bytes(encode(*next)));
    EXPECT_TRUE(again && *again == *next);
    if (view_) compare(*view_, *next);
    view_ = next;
    return true;
  }

  bool settle() {
    for (int i = 0; i < 400; ++i) {
      work(1);
      if (!step() && is_settled(*view_)) return true;
    }
    return false;
  }
  const View& view() const { return *view_; }

 private:
  void note_missed() {
    std::map<MemberId, Epoch> missed;
    for (const Member& member : view_->members) {
      const auto node = input_.nodes.find(member.id);
      const bool is_here = node != input_.nodes.end() &&
                           is_same_process(node->second.member.incarnation, member.incarnation);
      if (is_here) continue;
      const auto before = input_.missed.find(member.id);
      missed.emplace(member.id, before == input_.missed.end() ? view_->epoch : before->second);
    }
    input_.missed = std::move(missed);
  }

  // Each range of the new view has somebody who held all of it, and nobody answers reads who did
  // not hold it, or was not filled.
  void compare(const View& before, const View& after) {
    for (const RingRange& range : after.ranges) {
      const RingRange& was = before.range_of(range.end);
      EXPECT_GE(range.running(), 1u);
      size_t joining = 0;
      for (const Replica& each : range.chain) {
        joining += each.state == State::kJoining ? 1 : 0;
        if (each.state == State::kJoining) continue;
        const std::optional<size_t> position = was.position(each.member);
        ASSERT_TRUE(position) << "a stranger holds a range";
        // One that was started anew does not know what it had not passed on: it holds it alone.
        if (!is_same_process(after.member(each.member)->incarnation,
                             before.member(each.member)->incarnation)) {
          EXPECT_EQ(holders_of(range), 1u);
        }
        const bool was_joining = was.chain[*position].state == State::kJoining;
        if (was_joining) EXPECT_TRUE(was_filled(was)) << "a replica was not filled";
      }
      EXPECT_LE(joining, 1u);
      EXPECT_LE(range.chain.size(), 4u);
      if (range.chain != was.chain) EXPECT_EQ(range.epoch, after.epoch);
      // Who lives and answered reads goes only when it has seen that it may not any more.
      for (const Replica& each : was.chain) {
        const auto node = input_.nodes.find(each.member);
        const Member* member = before.member(each.member);
        const bool lives = node != input_.nodes.end() && member != nullptr &&
                           is_same_process(node->second.member.incarnation, member->incarnation);
        if (!lives || each.state == State::kJoining || range.position(each.member)) continue;
        EXPECT_EQ(each.state, State::kLeaving);
        EXPECT_GE(node->second.seen, was.epoch);
      }
    }
  }
  static size_t holders_of(const RingRange& range) {
    return static_cast<size_t>(std::ranges::count_if(
        range.chain, [](const Replica& each) { return each.state != State::kJoining; }));
  }
  bool was_filled(const RingRange& range) const {
    const auto before = input_.nodes.find(range.chain[range.chain.size() - 2].member);
    const std::pair<uint64_t, Epoch> told{range.end, range.epoch};
    return before != input_.nodes.end() &&
           std::ranges::find(before->second.copied, told) != before->second.copied.end();
  }

  Rng rng_;
  PlanInput input_;
  std::set<uint64_t> still_;
  std::optional<View> view_;
  uint64_t incarnations_ = 0;
};

TEST(Plan, TheFirstViewWaitsForEnoughNodes) {
  Model model(1);
  model.start(1);
  model.start(2);
  EXPECT_FALSE(model.step());
  model.start(3);
  EXPECT_TRUE(model.step());
  EXPECT_TRUE(is_settled(model.view()));
  EXPECT_EQ(model.view().ranges.size(), 90u);
}

TEST(Plan, AJoiningNodeIsFilledBeforeItAnswers) {
  Model model(1);
  for (uint64_t id = 1; id <= 3; ++id) model.start(id);
  EXPECT_TRUE(model.step());
  model.start(4);
  EXPECT_TRUE(model.settle());
  EXPECT_EQ(model.view().members.size(), 4u);
  EXPECT_EQ(model.view().ranges.size(), 120u);
}

TEST(Plan, ALeavingNodeGoesWhenOthersHaveWhatItHad) {
  Model model(1);
  for (uint64_t id = 1; id <= 4; ++id) model.start(id);
  EXPECT_TRUE(model.settle());
  model.leave(2);
  EXPECT_TRUE(model.settle());
  EXPECT_EQ(model.view().member(MemberId(2)), nullptr);
  EXPECT_EQ(model.view().ranges.size(), 90u);
}

TEST(Plan, TheLastHolderOfARangeStaysThoughItIsAway) {
  Model model(1);
  for (uint64_t id = 1; id <= 3; ++id) model.start(id);
  EXPECT_TRUE(model.step());
  for (uint64_t id = 1; id <= 3; ++id) model.stop(id);
  for (uint64_t id = 1; id <= 3; ++id) model.give_up(id);
  model.step();
  for (const RingRange& range : model.view().ranges) EXPECT_GE(range.chain.size(), 1u);
  // Whoever comes back first goes on, once it has shown that it is alive.
  model.start(2);
  for (int i = 0; i < 3; ++i) {
    model.work(1);
    model.step();
  }
  for (const RingRange& range : model.view().ranges) {
    EXPECT_EQ(range.chain.size(), 1u);
    EXPECT_EQ(range.chain[0].member, MemberId(2));
  }
}

// The metadata store was away: the dead node's lease is the last one, and the others come back.
TEST(Plan, ADeadNodeWhoseLeaseLastsDoesNotPushOutThoseWhoComeBack) {
  Model model(1);
  for (uint64_t id = 1; id <= 3; ++id) model.start(id);
  EXPECT_TRUE(model.step());
  model.work(1);
  model.stop(1);
  model.stop(2);
  model.stand_still(3);
  for (int i = 0; i < 5; ++i) {
    model.work(1);
    model.step();
  }
  for (const RingRange& range : model.view().ranges) EXPECT_EQ(range.chain.size(), 3u);
  model.start(1);
  model.start(2);
  for (int i = 0; i < 5; ++i) {
    model.work(1);
    model.step();
  }
  for (const RingRange& range : model.view().ranges) EXPECT_EQ(range.chain.size(), 3u);
  model.stop(3);
  for (int i = 0; i < 5; ++i) {
    model.work(1);
    model.step();
  }
  for (const RingRange& range : model.view().ranges) EXPECT_GE(range.running(), 1u);
  EXPECT_TRUE(model.view().member(MemberId(3)) != nullptr);
}

TEST(Plan, AskingWhoIsAliveTakesOneViewAndNotMore) {
  Model model(1);
  for (uint64_t id = 1; id <= 3; ++id) model.start(id);
  EXPECT_TRUE(model.step());
  model.work(1);
  model.stop(1);
  EXPECT_TRUE(model.step());
  EXPECT_FALSE(model.step());
  EXPECT_EQ(model.view().ranges[0].chain.size(), 3u);
  model.work(1);
  EXPECT_TRUE(model.step());
  for (const RingRange& range : model.view().ranges) EXPECT_EQ(range.chain.size(), 2u);
}

TEST(Plan, AProcessThatLostItsLeaseStaysInItsChainsWithAnotherEpoch) {
  Model model(1);
  for (uint64_t id = 1; id <= 3; ++id) model.start(id);
  EXPECT_TRUE(model.step());
  model.work(1);
  const Incarnation before = model.incarnation(2);
  model.stop(2);
  EXPECT_TRUE(model.step());  // who is alive?
  const Epoch epoch = model.view().epoch;
  model.renew(2, before);
  model.work(1);
  EXPECT_TRUE(model.step());
  EXPECT_EQ(model.view().member(MemberId(2))->incarnation, model.incarnation(2));
  for (const RingRange& range : model.view().ranges) {
    EXPECT_EQ(range.running(), 3u);
    EXPECT_GT(range.epoch, epoch);
  }
}

TEST(Plan, WhoeverIsAwaitedKeepsItsPlaceForAWhile) {
  Model model(1);
  for (uint64_t id = 1; id <= 3; ++id) model.start(id);
  EXPECT_TRUE(model.step());
  model.stop(1);
  model.stop(2);
  model.await(1);
  for (int i = 0; i < 5; ++i) {
    model.work(1);
    model.step();
  }
  for (const RingRange& range : model.view().ranges) EXPECT_EQ(range.chain.size(), 3u);
  model.await_nobody();
  for (int i = 0; i < 3; ++i) {
    model.work(1);
    model.step();
  }
  for (const RingRange& range : model.view().ranges) EXPECT_EQ(range.chain.size(), 1u);
}

TEST(Plan, KeepsEveryRangeThroughAnythingThatHappens) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    Model model(seed);
    for (uint64_t id = 1; id <= 3; ++id) model.start(id);
    for (int i = 0; i < 150; ++i) {
      const uint64_t id = 1 + rng.below(6);
      const uint64_t what = rng.below(10);
      if (what < 3) model.start(id);
      if (what == 3) model.stop(id);
      if (what == 4 && !model.is_up(id)) model.give_up(id);
      if (what == 5 && id > 3 && model.is_up(id)) model.leave(id);
      if (what == 6 && model.is_up(id)) model.renew(id, model.incarnation(id));
      model.work(0.5);
      model.step();
      if (HasFatalFailure() || HasNonfatalFailure()) return;
    }
    for (uint64_t id = 1; id <= 6; ++id) model.start(id);
    EXPECT_TRUE(model.settle());
  }
}

TEST(ViewFormat, DamageIsSeen) {
  Model model(1);
  for (uint64_t id = 1; id <= 3; ++id) model.start(id);
  ASSERT_TRUE(model.step());
  const std::string bytes = encode(model.view());
  Rng rng(3);
  for (int i = 0; i < 500; ++i) {
    std::string damaged = bytes;
    damaged[rng.below(damaged.size())] ^= static_cast<char>(1 << rng.below(8));
    EXPECT_FALSE(decode_view(as_bytes(damaged)));
  }
  EXPECT_FALSE(decode_view(as_bytes(bytes.substr(0, bytes.size() - 1))));
  EXPECT_FALSE(decode_node(as_bytes(bytes)));
}

TEST(ViewFormat, TheLargestRingFitsIntoAnEntryOfTheMetadataStore) {
  View view{.epoch = Epoch(9), .replicas = 3, .members = members_of(60), .ranges = {}};
  for (uint64_t i = 0; i < kRangesMax; ++i) {
    RingRange range{.end = i << 32, .epoch = Epoch(1), .chain = {}};
    for (uint64_t id = 1; id <= 3; ++id) range.chain.push_back({MemberId(i % 57 + id), {}});
    view.ranges.push_back(std::move(range));
  }
  EXPECT_LE(encode(view).size(), meta::kValueMax);
}

}  // namespace
}  // namespace cairn::kv::ring
