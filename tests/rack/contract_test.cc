// SPDX-License-Identifier: Apache-2.0
// What becomes of space when somebody is refused, dies, comes back or is not who they say.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "base/uuid.h"
#include "fabric/host/remote_drive.h"
#include "rack/billboard.h"
#include "rack/pledge.h"
#include "rack/record_format.h"
#include "task/deadline.h"
#include "tests/rack/rack.h"

namespace cairn::rack_tests {
namespace {

using env::Env;
using rack::Raid;
using task::Task;

// A rack, and a program on a node of its own.
class RackFacts : public testing::Test {
 protected:
  using Body = Task<void> (*)(Env&, RackFacts&);

  void start() { rack.start(cluster); }
  void run(Body body, const char* node = "tenant") {
    const env::Address store = rack.store_address(cluster);
    store_ = store;
    cluster.node(node).start([this, body](Env& env) { return body(env, *this); });
    ASSERT_TRUE(cluster.run_until([&] { return !cluster.node(node).is_running(); }, 600_s))
        << cluster.report();
  }

 public:
  env::Address store() const { return store_; }
  uint64_t given() const {
    uint64_t all = 0;
    for (const auto& [name, facts] : rack.boxes()) all += rack.given_mib(name);
    return all;
  }

  Rack rack;
  rack::DriveRecord made;
  sim::Cluster cluster;

 private:
  env::Address store_;
};

// Until as many boxes are on the billboard.
Task<void> see_offers(Tenant& tenant, size_t count) {
  for (size_t seen = 0; seen != count;) {
    const Result<rack::Board> board =
        co_await rack::read_board(*tenant.store, rack::wall_ms(tenant.env), {});
    seen = board ? board->offers.size() : 0;
    [[maybe_unused]] const Result<void> slept = co_await task::sleep_for(tenant.env, 100_ms);
  }
}

Task<void> make_mirror(Env& env, RackFacts& facts) {
  Tenant tenant(env, facts.store());
  co_await see_offers(tenant, facts.rack.boxes().size());
  const rack::Outcome<rack::DriveRecord> made = co_await tenant.create("d", Raid::kMirror, 4);
  EXPECT_TRUE(made) << made.error();
  if (made) facts.made = *made;
  co_await tenant.store->close();
}

Task<void> release_it(Env& env, RackFacts& facts) {
  Tenant tenant(env, facts.store());
  const rack::Outcome<void> released = co_await tenant.release("d");
  EXPECT_TRUE(released) << released.error();
  co_await tenant.store->close();
}

TEST_F(RackFacts, ADriveIsMadeConfirmedAndGivenBack) {
  rack.box("a", 16);
  rack.box("b", 16);
  start();
  run(make_mirror);
  EXPECT_EQ(given(), 10u);
  EXPECT_EQ(rack.check(), "");
  cluster.run_for(2 * kTerm);
  EXPECT_EQ(rack.audit(), "");
  const rack::Outcome<std::string> stack = rack::stack_of(made);
  ASSERT_TRUE(stack);
  const auto leg = [](const char* host, const rack::ContractId& id) {
    return fmt::format(
        "nvme-tcp://{}:4420/nqn.2026-11.io.cairn:box?uuid={}&hostnqn={}&"
        "loss_timeout=5s",
        host, uuid_text(id), kOwner);
  };
  EXPECT_EQ(*stack, fmt::format("mirror({}, {})", leg("10.0.0.2", made.legs[0].id),
                                leg("10.0.0.3", made.legs[1].id)));
  run(release_it);
  EXPECT_EQ(given(), 0u);
  EXPECT_TRUE(rack.drives().empty());
}

TEST_F(RackFacts, ContractsOutliveTheirBox) {
  rack.box("a", 16);
  rack.box("b", 16);
  start();
  run(make_mirror);
  cluster.node("a").crash();
  cluster.run_for(1_s);
  cluster.node("a").restart();
  cluster.run_for(3 * kTerm);
  EXPECT_EQ(rack.audit(), "");
  EXPECT_EQ(given(), 10u);
  run(release_it);
  EXPECT_EQ(given(), 0u);
}

// Reserves and says no more.
Task<void> reserve_only(Env& env, RackFacts& facts) {
  Tenant tenant(env, facts.store());
  co_await see_offers(tenant, 1);
  const rack::Endpoint place{.address = facts.cluster.node("a").address(4420).text(),
                             .nqn = "nqn.2026-11.io.cairn:box"};
  const rack::SpaceRequest request{
      .id = {1}, .drive = "d", .shelf = "d0", .amount = {.bytes = 4 * rack::kUnit}};
  const Result<uint32_t> first = co_await tenant.peers.ask(place, request, {});
  EXPECT_TRUE(first) << first.error().text();
  const Result<uint32_t> again = co_await tenant.peers.ask(place, request, {});
  EXPECT_EQ(again.value_or(0), first.value_or(1)) << "the same id is the same contract";
  rack::SpaceRequest other = request;
  other.amount.bytes += rack::kUnit;
  const Result<uint32_t> refused = co_await tenant.peers.ask(place, other, {});
  EXPECT_EQ(refused.error(), Errc::kExists);
  other.id = {2};
  other.amount.bytes = 13 * rack::kUnit;
  const Result<uint32_t> full = co_await tenant.peers.ask(place, other, {});
  EXPECT_EQ(full.error(), Errc::kNoSpace);
  other.shelf = "d1";
  const Result<uint32_t> nowhere = co_await tenant.peers.ask(place, other, {});
  EXPECT_EQ(nowhere.error(), Errc::kNotFound);
  Tenant stranger(env, facts.store(), "nqn.2026-11.io.cairn:stranger");
  const rack::SpaceRequest steal{.verb = rack::SpaceRequest::Verb::kRelease, .id = {1}};
  const Result<uint32_t> denied = co_await stranger.peers.ask(place, steal, {});
  EXPECT_EQ(denied.error(), Errc::kDenied);
  co_await stranger.store->close();
  co_await tenant.store->close();
}

TEST_F(RackFacts, WhatNobodyConfirmsIsGivenBackAtTheEndOfTheTerm) {
  rack.box("a", 16);
  start();
  run(reserve_only);
  EXPECT_EQ(given(), 4u);
  cluster.run_for(2 * kTerm);
  EXPECT_EQ(given(), 0u);
}

TEST_F(RackFacts, ABoxThatCannotAskKeepsWhatItReserved) {
  rack.box("a", 16);
  start();
  run(reserve_only);
  cluster.node("store").kill();
  cluster.run_for(10 * kTerm);
  EXPECT_EQ(given(), 4u);
  cluster.node("store").restart();
  cluster.run_for(5 * kTerm);
  EXPECT_EQ(given(), 0u);
}

Task<void> race_for_the_last(Env& env, RackFacts& facts) {
  Tenant tenant(env, facts.store());
  co_await see_offers(tenant, 2);
  Task<rack::Outcome<rack::DriveRecord>> one = tenant.create("one", Raid::kMirror, 4);
  Task<rack::Outcome<rack::DriveRecord>> other = tenant.create("other", Raid::kMirror, 4);
  const rack::Outcome<rack::DriveRecord> first = co_await one;
  const rack::Outcome<rack::DriveRecord> second = co_await other;
  EXPECT_LE(int{first.has_value()} + int{second.has_value()}, 1);
  co_await tenant.store->close();
}

TEST_F(RackFacts, OfTwoWhoWantTheLastSpaceNotBothGetIt) {
  rack.box("a", 7);
  rack.box("b", 7);
  start();
  run(race_for_the_last);
  cluster.run_for(2 * kTerm);
  EXPECT_EQ(rack.audit(), "");
  EXPECT_EQ(given(), 10u * rack.drives().size());
}

// An offer that promises what is not there any more, and one whose box is dead.
Task<void> meet_bad_offers(Env& env, RackFacts& facts) {
  Tenant tenant(env, facts.store());
  co_await see_offers(tenant, 3);
  meta::Batch batch;
  const rack::Endpoint dead{.address = "10.0.0.99:4420", .nqn = "nqn.2026-11.io.cairn:box"};
  rack::Offer offer{.box = "dead",
                    .shelf = "d0",
                    .place = dead,
                    .spare = {.bytes = 6 * rack::kUnit},
                    .expires_ms = rack::wall_ms(env) + 100'000};
  batch.put(rack::offer_key("dead", "d0"), rack::encode(offer));
  offer.box = "stale";
  offer.spare.bytes = 5 * rack::kUnit;
  offer.expires_ms = rack::wall_ms(env) - 1;
  batch.put(rack::offer_key("stale", "d0"), rack::encode(offer));
  batch.put(rack::offer_key("odd", "d0"), "not an offer");
  const Result<meta::Committed> committed = co_await tenant.store->commit(batch, {});
  EXPECT_TRUE(committed);
  const rack::Outcome<rack::DriveRecord> made = co_await tenant.create("d", Raid::kMirror, 4);
  EXPECT_TRUE(made) << made.error();
  for (size_t i = 0; made && i < made->legs.size(); ++i) EXPECT_EQ(made->legs[i].box.size(), 1u);
  const rack::Outcome<rack::DriveRecord> none = co_await tenant.create("e", Raid::kMirror, 400);
  EXPECT_FALSE(none);
  if (!none) {
    EXPECT_NE(none.error().find("1 offers are stale"), std::string::npos) << none.error();
    EXPECT_NE(none.error().find("1 cannot be read"), std::string::npos) << none.error();
  }
  const rack::Outcome<rack::DriveRecord> twice = co_await tenant.create("d", Raid::kMirror, 4);
  EXPECT_FALSE(twice);
  co_await tenant.store->close();
}

TEST_F(RackFacts, StaleOffersArePassedOverAndDeadBoxesAreReplaced) {
  rack.box("a", 16);
  rack.box("b", 16);
  rack.box("c", 16);
  start();
  run(meet_bad_offers);
  EXPECT_EQ(rack.check(), "");
}

Task<void> release_in_part(Env& env, RackFacts& facts) {
  Tenant tenant(env, facts.store());
  const rack::Outcome<void> released = co_await tenant.release("d", rack::Release::kByForce);
  EXPECT_FALSE(released);
  if (!released) {
    EXPECT_NE(released.error().find("1 of 2 legs are not given back yet (a/d0"), std::string::npos)
        << released.error();
  }
  co_await tenant.store->close();
}

Task<void> release_the_only_copy(Env& env, RackFacts& facts) {
  Tenant tenant(env, facts.store());
  const rack::Outcome<void> released = co_await tenant.release("d");
  EXPECT_FALSE(released);
  if (!released) {
    EXPECT_NE(released.error().find("its only current copy"), std::string::npos)
        << released.error();
  }
  co_await tenant.store->close();
}

TEST_F(RackFacts, WithoutForceNothingIsReleasedWhileABoxIsAway) {
  rack.box("a", 16);
  rack.box("b", 16);
  start();
  run(make_mirror);
  cluster.node("a").kill();
  run(release_the_only_copy);
  EXPECT_EQ(given(), 10u);
  ASSERT_EQ(rack.drives().size(), 1u);
  EXPECT_FALSE(rack.drives()[0].is_leaving);
}

Result<fabric::Uri> leg_uri(const rack::Leg& leg, const std::string& which,
                            const std::string& host) {
  const auto uri = fabric::Uri::parse(
      fmt::format("nvme-tcp://{}/{}?{}&hostnqn={}&hdgst=on&ddgst=on&depth=4&loss_timeout=2s",
                  leg.place.address, leg.place.nqn, which, host));
  EXPECT_TRUE(uri) << uri.error();
  if (!uri) return fail(Errc::kInvalid, "the URI");
  return *uri;
}

// What opening a leg comes to; it is closed again.
Task<Result<void>> try_to_open(Env& env, rack::Leg leg, std::string which,
                               std::string host = kOwner) {
  const Result<fabric::Uri> uri = leg_uri(leg, which, host);
  if (!uri) co_return fail(uri.error());
  Result<std::unique_ptr<fabric::RemoteDrive>> drive =
      co_await fabric::RemoteDrive::open(env, *uri, env.stop_token());
  if (!drive) co_return fail(drive.error());
  co_await (*drive)->close();
  co_return Result<void>{};
}

std::string by_uuid(const rack::Leg& leg) { return "uuid=" + uuid_text(leg.id); }
std::string by_nsid(const rack::Leg& leg) { return fmt::format("nsid={}", leg.nsid); }

Task<void> open_as_others(Env& env, RackFacts& facts) {
  const rack::Leg leg = facts.made.legs[0];
  for (const std::string& which : {by_uuid(leg), by_nsid(leg)}) {
    const Result<void> own = co_await try_to_open(env, leg, which);
    EXPECT_TRUE(own) << own.error().text();
    const Result<void> other =
        co_await try_to_open(env, leg, which, "nqn.2026-11.io.cairn:stranger");
    EXPECT_EQ(other.error(), Errc::kNotFound);
  }
}

TEST_F(RackFacts, ALegIsThereForItsOwnerAlone) {
  rack.box("a", 16);
  rack.box("b", 16);
  start();
  run(make_mirror);
  run(open_as_others, "other");
  cluster.node("a").crash();
  cluster.node("a").restart();
  cluster.run_for(1_s);
  run(open_as_others, "other");
}

// Makes another drive where "d" was, and comes with the line of the first.
Task<void> come_with_an_old_line(Env& env, RackFacts& facts) {
  const rack::Leg old = facts.made.legs[0];
  Tenant tenant(env, facts.store());
  co_await see_offers(tenant, 2);
  const rack::Outcome<rack::DriveRecord> next = co_await tenant.create("e", Raid::kMirror, 4);
  EXPECT_TRUE(next) << next.error();
  for (size_t i = 0; next && i < next->legs.size(); ++i) {
    EXPECT_GT(next->legs[i].nsid, facts.made.legs[i].nsid) << "somebody may remember the first";
  }
  for (const std::string& which : {by_uuid(old), by_nsid(old)}) {
    const Result<void> opened = co_await try_to_open(env, old, which);
    EXPECT_EQ(opened.error(), Errc::kNotFound) << which;
  }
  co_await tenant.store->close();
}

TEST_F(RackFacts, TheLineOfAReleasedDriveLeadsToNoOther) {
  rack.box("a", 16);
  rack.box("b", 16);
  start();
  run(make_mirror);
  run(release_it);
  cluster.node("a").crash();
  cluster.node("a").restart();
  cluster.run_for(2 * kExpiry);
  run(come_with_an_old_line);
}

Task<void> release_while_it_is_served(Env& env, RackFacts& facts) {
  const rack::Leg leg = facts.made.legs[1];
  const Result<fabric::Uri> uri = leg_uri(leg, by_uuid(leg), kOwner);
  if (!uri) co_return;
  Result<std::unique_ptr<fabric::RemoteDrive>> drive =
      co_await fabric::RemoteDrive::open(env, *uri, env.stop_token());
  EXPECT_TRUE(drive) << drive.error().text();
  if (!drive) co_return;
  Tenant tenant(env, facts.store());
  const rack::Outcome<void> refused = co_await tenant.release("d");
  EXPECT_FALSE(refused);
  if (!refused) {
    EXPECT_NE(refused.error().find("is in use"), std::string::npos) << refused.error();
    EXPECT_NE(refused.error().find("--force"), std::string::npos) << refused.error();
  }
  EXPECT_EQ(facts.given(), 10u);
  EXPECT_FALSE(facts.rack.drives()[0].is_leaving);
  const rack::Outcome<void> forced = co_await tenant.release("d", rack::Release::kByForce);
  EXPECT_TRUE(forced) << forced.error();
  EXPECT_EQ(facts.given(), 0u);
  co_await tenant.store->close();
  co_await (*drive)->close();
}

TEST_F(RackFacts, ADriveInUseIsReleasedByForceAlone) {
  rack.box("a", 16);
  rack.box("b", 16);
  start();
  run(make_mirror);
  run(release_while_it_is_served);
}

TEST_F(RackFacts, AReleaseIsFinishedWhenTheBoxIsBack) {
  rack.box("a", 16);
  rack.box("b", 16);
  start();
  run(make_mirror);
  cluster.node("a").kill();
  run(release_in_part);
  EXPECT_EQ(given(), 5u);
  ASSERT_EQ(rack.drives().size(), 1u);
  EXPECT_TRUE(rack.drives()[0].is_leaving);
  cluster.node("a").restart();
  cluster.run_for(1_s);
  run(release_it);
  EXPECT_EQ(given(), 0u);
  EXPECT_TRUE(rack.drives().empty());
}

// A box ends a contract, and its power goes before the file of it is removed.
TEST_F(RackFacts, SpaceIsOfferedAgainWhenItsFileIsGone) {
  Rack::BoxFacts& a = rack.box("a", 16);
  a.folder = "/shelf";
  a.dies_at_removal = true;
  rack.box("b", 16);
  start();
  run(make_mirror);
  const auto offered_mib = [this] {
    const meta::State& state = rack.state();
    const auto entry = state.get(rack::offer_key("a", "d0"), state.revision());
    const Result<rack::Offer> offer =
        entry ? rack::decode_offer(as_bytes(entry->value)) : fail(Errc::kNotFound, "the offer");
    return offer ? offer->spare.bytes / rack::kUnit : 0;
  };
  run(release_in_part);
  EXPECT_EQ(rack.given_mib("a"), 0u) << "the contract has ended";
  for (const bool can_remove : {false, true}) {
    cluster.node("a").crash();
    a.dies_at_removal = !can_remove;
    cluster.node("a").restart();
    cluster.run_for(2 * kExpiry);
    EXPECT_EQ(offered_mib(), can_remove ? 16u : 11u);
  }
  EXPECT_EQ(a.removed, std::vector<std::string>{"/shelf/" + uuid_text(made.legs[0].id)});
  run(release_it);
  EXPECT_TRUE(rack.drives().empty());
}

TEST_F(RackFacts, AnOfferGoesWithItsBoxAndComesBackSmaller) {
  rack.box("a", 16);
  rack.box("b", 16);
  start();
  run(make_mirror);
  const auto offered = [this] {
    const meta::State& state = rack.state();
    return state.get(rack::offer_key("a", "d0"), state.revision());
  };
  ASSERT_TRUE(offered());
  cluster.run_for(1_s);
  const Result<rack::Offer> offer = rack::decode_offer(as_bytes(offered()->value));
  ASSERT_TRUE(offer);
  EXPECT_EQ(offer->spare.bytes, 11 * rack::kUnit);
  cluster.node("a").crash();
  cluster.run_for(2 * kExpiry);
  EXPECT_FALSE(offered());
  cluster.node("a").restart();
  cluster.run_for(1_s);
  EXPECT_TRUE(offered());
  cluster.node("a").stop();
  cluster.run_for(1_s);
  EXPECT_FALSE(offered()) << "an end in order takes it away at once";
}

}  // namespace
}  // namespace cairn::rack_tests
