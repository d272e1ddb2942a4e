// SPDX-License-Identifier: Apache-2.0
// Elections: one leader at a time, each with a larger token, and none that does not know its end.
#include "meta/election.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "meta/suite.h"
#include "task/cancel.h"
#include "task/when_all.h"

namespace cairn::meta_tests {
namespace {

META_TEST_SUITE(Elections);

using meta::Election;
using meta::Leadership;

// A fenced write of a leader: "done" or "void".
Task<std::string> write_as(Store& store, const Leadership& leader, std::string value) {
  Batch batch;
  leader.fence(batch);
  batch.put("record", std::move(value));
  const Committed committed = co_await sure(store.commit(std::move(batch)));
  co_return committed.done() ? "done" : "void";
}

META_TEST(Elections, ALeaderThatResignsIsFollowedAndItsWritesAreVoid) {
  Election first(place.env(), place.client(0), {.key = "leader", .value = "first"});
  Election second(place.env(), place.client(1), {.key = "leader", .value = "second"});
  const std::unique_ptr<Leadership> one = co_await sure(first.campaign());
  EXPECT_TRUE(one->is_leader());
  Task<Result<std::unique_ptr<Leadership>>> waiting = second.campaign();
  const std::optional<Entry> leader = co_await sure(second.leader());
  EXPECT_EQ(leader->value, "first");
  const std::string valid = co_await write_as(place.client(0), *one, "1");
  EXPECT_EQ(valid, "done");
  EXPECT_FALSE(waiting.is_done());
  co_await one->resign();
  const std::unique_ptr<Leadership> other = co_await sure(std::move(waiting));
  EXPECT_TRUE(other->is_leader());
  EXPECT_GT(other->fencing(), one->fencing());
  const std::string late = co_await write_as(place.client(0), *one, "late");
  EXPECT_EQ(late, "void");
  const std::string next = co_await write_as(place.client(1), *other, "2");
  EXPECT_EQ(next, "done");
  co_await other->resign();
}

META_TEST(Elections, ADeadLeaderIsFollowedWhenItsLeaseEnds) {
  const meta::Lease dead = co_await sure(place.client(0).grant(1_s));
  co_await put(place.client(0), "leader", "dead", dead.id);
  Election election(place.env(), place.client(1), {.key = "leader", .value = "next", .ttl = 5_s});
  const std::unique_ptr<Leadership> next = co_await sure(election.campaign());
  EXPECT_TRUE(next->is_leader());
  const std::optional<Entry> leader = co_await sure(election.leader());
  EXPECT_EQ(leader->value, "next");
  EXPECT_EQ(leader->created, next->fencing());
  co_await next->resign();
  const std::optional<Entry> nobody = co_await sure(election.leader());
  EXPECT_FALSE(nobody.has_value());
}

META_TEST(Elections, ALeaderWhoseLeaseWasRevokedIsTold) {
  Election election(place.env(), place.client(0), {.key = "leader", .value = "x", .ttl = 3_s});
  const std::unique_ptr<Leadership> leads = co_await sure(election.campaign());
  const std::optional<Entry> entry = co_await sure(election.leader());
  co_await sure(place.client(1).revoke(entry->lease));
  task::Event never;
  const Result<void> lost = co_await never.wait(leads->lost_token());
  EXPECT_EQ(outcome(lost), "timed_out");
  EXPECT_FALSE(leads->is_leader());
  co_await leads->resign();
}

META_TEST(Elections, ACancelledCampaignLeavesNothingBehind) {
  Election first(place.env(), place.client(0), {.key = "leader", .value = "first"});
  Election second(place.env(), place.client(1), {.key = "leader", .value = "second"});
  const std::unique_ptr<Leadership> one = co_await sure(first.campaign());
  task::CancelSource source;
  Task<Result<std::unique_ptr<Leadership>>> waiting = second.campaign(source.token());
  co_await conformance::hesitate(place.env());
  source.request();
  const Result<std::unique_ptr<Leadership>> given_up = co_await waiting;
  EXPECT_EQ(outcome(given_up), "cancelled");
  co_await one->resign();
  const std::optional<Entry> nobody = co_await sure(first.leader());
  EXPECT_FALSE(nobody.has_value());
}

Task<void> lead_once(Place& place, size_t client, int& leading, std::vector<Revision>& tokens) {
  Election election(place.env(), place.client(client), {.key = "leader", .value = "somebody"});
  const std::unique_ptr<Leadership> leads = co_await sure(election.campaign());
  EXPECT_EQ(leading++, 0) << "two lead";
  tokens.push_back(leads->fencing());
  const std::string written = co_await write_as(place.client(client), *leads, "x");
  EXPECT_EQ(written, "done");
  --leading;
  co_await leads->resign();
}

META_TEST(Elections, ManyCandidatesLeadOneAfterTheOther) {
  int leading = 0;
  std::vector<Revision> tokens;
  std::vector<Task<void>> candidates;
  for (size_t i = 0; i < 6; ++i) candidates.push_back(lead_once(place, i % 2, leading, tokens));
  co_await task::when_all(std::move(candidates));
  EXPECT_EQ(tokens.size(), 6U);
  for (size_t i = 1; i < tokens.size(); ++i) EXPECT_GT(tokens[i], tokens[i - 1]);
}

META_TEST(Elections, AKeyThatIsNoneIsInvalid) {
  Election election(place.env(), place.store(), {.key = "", .value = "x"});
  const auto campaign = co_await election.campaign();
  EXPECT_EQ(outcome(campaign), "invalid");
}

}  // namespace
}  // namespace cairn::meta_tests
