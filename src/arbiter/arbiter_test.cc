// SPDX-License-Identifier: Apache-2.0
// Operators and clients at one arbiter: what they get, what they are refused, what a restart keeps.
#include "arbiter/arbiter.h"

#include <gtest/gtest.h>

#include "arbiter/arbiter_testing.h"

namespace cairn::arbiter {
namespace {

using drive::run_in_sim;
using task::Task;
using volume::Mapping;
using volume::Opened;
using volume::Session;

// Four drives of 9 extents of which one is the label's, and an arbiter that has them.
struct Scene {
  explicit Scene(env::Env& its_env)
      : env(its_env),
        local(meta::memory_store(its_env)),
        store(its_env, *local),
        media(test_media(4, 9)),
        fence(media) {}
  Task<void> begin(const std::string& host) {
    arbiter = std::make_unique<TestArbiter>(env, store, media, fence, host);
    const bool leads = co_await arbiter->wait_until_leading();
    EXPECT_TRUE(leads);
  }
  Task<void> end() {
    co_await arbiter->close();
    arbiter.reset();
  }
  Task<Session> must_open(std::string name, std::string client, bool take_over = false) {
    const Result<Opened> opened = co_await arbiter->host().open(
        {.volume = std::move(name), .client = std::move(client), .take_over = take_over}, {});
    EXPECT_TRUE(opened) << (opened ? "" : opened.error().text());
    co_return opened ? opened->session : Session{};
  }
  const Volume& volume(const std::string& name) {
    return *const_cast<Pool&>(arbiter->use()->pool()).volume(name);
  }
  std::string audit() { return arbiter::audit(arbiter->use()->pool(), media); }
  meta::Store& meta() { return store; }

  env::Env& env;
  std::unique_ptr<meta::Store> local;
  SlowStore store;
  volume::TestMedia media;
  TestFence fence;
  std::unique_ptr<TestArbiter> arbiter;
};

// Runs `body(scene)` with an arbiter that has all drives.
template <class Body>
void run_scene(Body body) {
  run_in_sim([body](env::Env& env) -> Task<void> {
    return [](env::Env& world, Body test) -> Task<void> {
      Scene scene(world);
      co_await scene.begin("arbiter.1");
      co_await scene.arbiter->add_all(4);
      co_await test(scene);
      co_await scene.end();
      co_await scene.store.close();
    }(env, body);
  });
}

Task<Errc> create(Scene& scene, std::string name, uint64_t extents, uint32_t replicas) {
  const Result<VolumeRecord> made = co_await scene.arbiter->use()->create(
      {.name = std::move(name), .bytes = extents * kTestExtent, .replicas = replicas});
  co_return made ? Errc{} : made.error().code();
}

constexpr Errc kDone{};

Task<void> promises(Scene& scene) {
  // 32 extents are free; a volume has one more than its data needs.
  Errc made = co_await create(scene, "large", 32, 1);
  EXPECT_EQ(made, Errc::kNoSpace);
  made = co_await create(scene, "three", 7, 3);
  EXPECT_EQ(made, kDone);
  made = co_await create(scene, "more", 8, 1);
  EXPECT_EQ(made, Errc::kNoSpace) << "24 of 32 are promised";
  made = co_await create(scene, "rest", 7, 1);
  EXPECT_EQ(made, kDone);
  EXPECT_EQ(scene.arbiter->free(), 32U) << "nothing is placed yet";
  const Result<void> grown = co_await scene.arbiter->use()->resize("rest", 8 * kTestExtent);
  EXPECT_EQ(grown.error().code(), Errc::kNoSpace);
  Result<void> destroyed = co_await scene.arbiter->use()->destroy("three", false);
  EXPECT_TRUE(destroyed);
  co_await scene.arbiter->settle();
  made = co_await create(scene, "more", 8, 1);
  EXPECT_EQ(made, kDone);
}
TEST(Arbiter, PromisesNoMoreThanThereIs) { run_scene(promises); }

Task<void> bad_input(Scene& scene) {
  Errc made = co_await create(scene, "a/b", 1, 1);
  EXPECT_EQ(made, Errc::kInvalid);
  made = co_await create(scene, "a", 0, 1);
  EXPECT_EQ(made, Errc::kInvalid);
  made = co_await create(scene, "a", 1, 4);
  EXPECT_EQ(made, Errc::kInvalid);
  made = co_await create(scene, "a", 1, 1);
  EXPECT_EQ(made, kDone);
  made = co_await create(scene, "a", 1, 1);
  EXPECT_EQ(made, Errc::kExists);
  const Result<Opened> unknown = co_await scene.arbiter->host().open({"b", "c", false}, {});
  EXPECT_EQ(unknown.error().code(), Errc::kNotFound);
  const Session session = co_await scene.must_open("a", "client");
  const auto beyond = co_await scene.arbiter->host().allocate(session, {2}, {});
  EXPECT_EQ(beyond.error().code(), Errc::kInvalid);
  const auto none = co_await scene.arbiter->host().allocate(session, {}, {});
  EXPECT_EQ(none.error().code(), Errc::kInvalid);
  const Result<MegaVolInfo> member = co_await scene.arbiter->use()->add_mega_vol({.uri = "m0"});
  EXPECT_EQ(member.error().code(), Errc::kExists);
  const Result<MegaVolInfo> nowhere = co_await scene.arbiter->use()->add_mega_vol({.uri = "x"});
  EXPECT_EQ(nowhere.error().code(), Errc::kNotFound);
}
TEST(Arbiter, RefusesWhatMakesNoSense) { run_scene(bad_input); }

Task<void> allocates(Scene& scene) {
  co_await create(scene, "v", 6, 3);
  const Session session = co_await scene.must_open("v", "client");
  const auto got = co_await scene.arbiter->host().allocate(session, {1, 2, 3}, {});
  CO_ASSERT_TRUE(got);
  EXPECT_EQ(got->size(), 3U);
  for (const Mapping& each : *got) EXPECT_EQ(each.entry.size(), 3U);
  EXPECT_EQ(scene.arbiter->use()->counters().allocating_commits, 1U) << "one for all three";
  const auto again = co_await scene.arbiter->host().allocate(session, {3, 4}, {});
  CO_ASSERT_TRUE(again);
  EXPECT_EQ((*again)[0].entry, (*got)[2].entry) << "what was given is given again";
  EXPECT_EQ(scene.arbiter->free(), 32U - 12U);
  EXPECT_EQ(scene.audit(), "");
  EXPECT_EQ(scene.volume("v").matrices.back().rows.size(), 4U);
}
TEST(Arbiter, GivesManyExtentsInOneCommit) { run_scene(allocates); }

Task<void> shares_commits(Scene& scene) {
  co_await create(scene, "v", 6, 1);
  const Session session = co_await scene.must_open("v", "client");
  std::vector<Task<Result<std::vector<Mapping>>>> calls;
  for (uint32_t extent = 1; extent <= 6; ++extent) {
    calls.push_back(scene.arbiter->host().allocate(session, {extent}, {}));
  }
  for (auto& call : calls) {
    const auto got = co_await call;
    EXPECT_TRUE(got);
  }
  EXPECT_LE(scene.arbiter->use()->counters().allocating_commits, 2U);
  EXPECT_EQ(scene.arbiter->use()->counters().extents_allocated, 6U);
}
TEST(Arbiter, ThoseWhoWaitShareACommit) { run_scene(shares_commits); }

void scribble(Scene& scene, const MapEntry& entry) {
  const std::vector<std::byte> data(volume::TestMedium::kBlock, std::byte{0x77});
  for (size_t i = 0; i < entry.size(); ++i) {
    const std::string uri = fmt::format("m{}", entry.leg(i).mega_vol.value());
    const uint64_t blocks = kTestExtent / volume::TestMedium::kBlock;
    scene.media.at(uri)->write(entry.leg(i).extent * blocks + 3, data);
  }
}

Task<void> clears(Scene& scene) {
  co_await create(scene, "v", 7, 3);
  const Session session = co_await scene.must_open("v", "client");
  const auto got = co_await scene.arbiter->host().allocate(session, {1, 2, 5}, {});
  CO_ASSERT_TRUE(got);
  for (const Mapping& each : *got) scribble(scene, each.entry);
  scene.media.at("m1")->is_down = true;
  const Result<void> released = co_await scene.arbiter->host().release(session, {1, 5}, {});
  EXPECT_TRUE(released);
  const Result<void> slept = co_await task::sleep_for(scene.env, 1_s);
  EXPECT_TRUE(slept);
  EXPECT_EQ(scene.audit(), "");
  EXPECT_LT(scene.arbiter->free(), 32U - 3U) << "what cannot be cleared is not free";
  scene.media.at("m1")->is_down = false;
  co_await scene.arbiter->settle();
  EXPECT_EQ(scene.arbiter->free(), 32U - 3U);
  EXPECT_EQ(scene.audit(), "");
}
TEST(Arbiter, FreesExtentsOnlyWhenTheyAreClear) { run_scene(clears); }

Task<void> clears_while_closing(Scene& scene) {
  co_await create(scene, "v", 7, 3);
  const Session session = co_await scene.must_open("v", "client");
  const auto got = co_await scene.arbiter->host().allocate(session, {1, 5}, {});
  CO_ASSERT_TRUE(got);
  for (auto& [uri, medium] : scene.media) medium->close_takes = 100_ms;
  const Result<void> first = co_await scene.arbiter->host().release(session, {1}, {});
  EXPECT_TRUE(first);
  const Result<void> closing = co_await task::sleep_for(scene.env, 50_ms);
  EXPECT_TRUE(closing);
  const Result<void> second = co_await scene.arbiter->host().release(session, {5}, {});
  EXPECT_TRUE(second);
  const Result<void> slept = co_await task::sleep_for(scene.env, 1_s);
  EXPECT_TRUE(slept);
  EXPECT_EQ(scene.arbiter->free(), 32U);
  EXPECT_EQ(scene.audit(), "");
}
TEST(Arbiter, ClearsWhatComesWhileADriveIsClosed) { run_scene(clears_while_closing); }

Task<void> destroys(Scene& scene) {
  co_await create(scene, "v", 7, 3);
  const Session session = co_await scene.must_open("v", "client");
  const auto got = co_await scene.arbiter->host().allocate(session, {1, 2, 3, 4}, {});
  CO_ASSERT_TRUE(got);
  for (const Mapping& each : *got) scribble(scene, each.entry);
  Result<void> gone = co_await scene.arbiter->use()->destroy("v", false);
  EXPECT_EQ(gone.error().code(), Errc::kExists) << "it is open";
  const Result<void> closed = co_await scene.arbiter->host().close(session, true, {});
  EXPECT_TRUE(closed);
  gone = co_await scene.arbiter->use()->destroy("v", false);
  EXPECT_TRUE(gone);
  co_await scene.arbiter->settle();
  EXPECT_EQ(scene.arbiter->free(), 32U);
  EXPECT_EQ(scene.audit(), "");
  const Result<meta::Page> left = co_await scene.meta().list({meta::Range::prefix(kMapPrefix)});
  EXPECT_TRUE(left && left->entries.empty());
}
TEST(Arbiter, ADestroyedVolumeGivesAllItsExtentsBack) { run_scene(destroys); }

Task<void> restarts(Scene& scene) {
  co_await create(scene, "v", 6, 3);
  const Session session = co_await scene.must_open("v", "client");
  const auto got = co_await scene.arbiter->host().allocate(session, {1, 4}, {});
  CO_ASSERT_TRUE(got);
  const auto stale = co_await scene.arbiter->host().report(
      session, {{.extent = 4, .mega_vol = (*got)[1].entry.leg(1).mega_vol, .is_stale = true}}, {});
  CO_ASSERT_TRUE(stale);
  const std::vector<MapEntry> before = scene.volume("v").table;
  co_await scene.end();
  co_await scene.begin("arbiter.2");
  EXPECT_EQ(scene.volume("v").table, before);
  EXPECT_TRUE(before[4].leg(1).is_stale);
  EXPECT_EQ(scene.audit(), "");
  const Result<volume::Renewed> renewed = co_await scene.arbiter->host().renew(session, {});
  EXPECT_TRUE(renewed) << "the holder goes on";
  const Result<Opened> other = co_await scene.arbiter->host().open({"v", "other", false}, {});
  EXPECT_EQ(other.error().code(), Errc::kExists) << "and has all of its lease again";
}
TEST(Arbiter, KnowsEverythingAfterARestart) { run_scene(restarts); }

Task<void> one_writer(Scene& scene) {
  co_await create(scene, "v", 6, 1);
  const Session first = co_await scene.must_open("v", "one");
  const Result<Opened> second = co_await scene.arbiter->host().open({"v", "two", false}, {});
  EXPECT_EQ(second.error().code(), Errc::kExists);
  scene.fence.is_broken = true;
  const Result<Opened> unfenced = co_await scene.arbiter->host().open({"v", "two", true}, {});
  EXPECT_EQ(unfenced.error().code(), Errc::kUnreachable) << "it might still write";
  scene.fence.is_broken = false;
  const Session taken = co_await scene.must_open("v", "two", true);
  EXPECT_EQ(scene.fence.fenced, std::vector<std::string>{"one"});
  EXPECT_GT(taken.epoch, first.epoch);
  const auto late = co_await scene.arbiter->host().allocate(first, {1}, {});
  EXPECT_EQ(late.error().code(), Errc::kDenied);
  const Result<volume::Renewed> renewed = co_await scene.arbiter->host().renew(first, {});
  EXPECT_EQ(renewed.error().code(), Errc::kDenied);
  // A lease that ended needs no force, but the holder is fenced all the same.
  const Result<void> slept = co_await task::sleep_for(scene.env, 11_s);
  EXPECT_TRUE(slept);
  co_await scene.must_open("v", "three");
  EXPECT_EQ(scene.fence.fenced.back(), "two");
}
TEST(Arbiter, HasOneWriterAndFencesTheOneBefore) { run_scene(one_writer); }

std::vector<MegaVolId> ids(std::initializer_list<uint16_t> numbers) {
  std::vector<MegaVolId> all;
  for (const uint16_t each : numbers) all.emplace_back(each);
  return all;
}

Task<void> sleep(Scene& scene, Duration time) {
  const Result<void> slept = co_await task::sleep_for(scene.env, time);
  EXPECT_TRUE(slept);
}

// A box dies together with the holder: the next one has the volume when the lease ends.
Task<void> dies_with_a_box(Scene& scene) {
  co_await create(scene, "v", 6, 3);
  const Session first = co_await scene.must_open("v", "one");
  const auto got = co_await scene.arbiter->host().allocate(first, {1, 2, 3}, {});
  CO_ASSERT_TRUE(got);
  for (auto& [uri, medium] : scene.media) medium->add_host("one");
  volume::TestMedium& away = *scene.media.at("m1");
  away.is_down = true;
  const Result<Opened> early = co_await scene.arbiter->host().open({"v", "two", true}, {});
  EXPECT_EQ(early.error().code(), Errc::kUnreachable) << "one may live, and read what is old there";
  co_await sleep(scene, 11_s);
  Result<Opened> opened = co_await scene.arbiter->host().open({"v", "two", false}, {});
  CO_ASSERT_TRUE(opened);
  EXPECT_EQ(opened->unfenced, ids({1}));
  EXPECT_FALSE(scene.media.at("m0")->has_host("one"));
  // Another arbiter knows it too, and so does who comes next.
  co_await scene.end();
  co_await scene.begin("arbiter.2");
  Result<volume::Renewed> renewed = co_await scene.arbiter->host().renew(opened->session, {});
  CO_ASSERT_TRUE(renewed);
  EXPECT_EQ(renewed->unfenced, ids({1}));
  const Result<void> closed = co_await scene.arbiter->host().close(opened->session, false, {});
  EXPECT_TRUE(closed);
  opened = co_await scene.arbiter->host().open({"v", "three", false}, {});
  CO_ASSERT_TRUE(opened);
  EXPECT_EQ(opened->unfenced, ids({1}));
  // The drive is back, and nobody can be fenced there: what is given back is not cleared yet.
  away.is_down = false;
  away.is_cut_off = true;
  const Result<void> released = co_await scene.arbiter->host().release(opened->session, {1}, {});
  EXPECT_TRUE(released);
  co_await sleep(scene, 2_s);
  const Member& member = scene.arbiter->use()->pool().members().at(MegaVolId(1));
  const uint64_t waiting = (*got)[0].entry.find(MegaVolId(1)) < 3 ? 1 : 0;
  EXPECT_EQ(member.cleaning, waiting);
  EXPECT_TRUE(away.has_host("one"));
  away.is_cut_off = false;
  co_await sleep(scene, 2_s);
  EXPECT_FALSE(away.has_host("one"));
  EXPECT_TRUE(member.unfenced.empty());
  EXPECT_EQ(member.cleaning, 0U);
  renewed = co_await scene.arbiter->host().renew(opened->session, {});
  CO_ASSERT_TRUE(renewed);
  EXPECT_TRUE(renewed->unfenced.empty());
  EXPECT_EQ(scene.audit(), "");
}
TEST(Arbiter, AHolderThatDiesWithABoxIsFencedThereWhenItIsBack) { run_scene(dies_with_a_box); }

Task<void> dies_with_all(Scene& scene) {
  co_await create(scene, "v", 6, 2);
  const Session first = co_await scene.must_open("v", "one");
  const auto got = co_await scene.arbiter->host().allocate(first, {1, 2, 3}, {});
  CO_ASSERT_TRUE(got);
  for (auto& [uri, medium] : scene.media) medium->is_down = true;
  co_await sleep(scene, 11_s);
  Result<Opened> opened = co_await scene.arbiter->host().open({"v", "two", false}, {});
  EXPECT_EQ(opened.error().code(), Errc::kUnreachable);
  EXPECT_EQ(scene.volume("v").record.holder, "one");
  for (auto& [uri, medium] : scene.media) medium->is_down = false;
  opened = co_await scene.arbiter->host().open({"v", "two", false}, {});
  CO_ASSERT_TRUE(opened);
  EXPECT_TRUE(opened->unfenced.empty());
}
TEST(Arbiter, AVolumeNoneOfWhoseDrivesAnswersStaysWhereItIs) { run_scene(dies_with_all); }

// Who led before may still clear extents of the drive that does not answer, and of no other.
Task<void> leads_without_a_box(Scene& scene) {
  co_await create(scene, "v", 6, 3);
  const Session session = co_await scene.must_open("v", "one");
  const auto got = co_await scene.arbiter->host().allocate(session, {1, 2, 3, 4}, {});
  CO_ASSERT_TRUE(got);
  for (const Mapping& each : *got) scribble(scene, each.entry);
  co_await scene.end();
  scene.media.at("m1")->is_cut_off = true;
  co_await scene.begin("arbiter.2");
  const Result<void> released = co_await scene.arbiter->host().release(session, {1, 2, 3, 4}, {});
  EXPECT_TRUE(released);
  co_await sleep(scene, 2_s);
  for (const auto& [id, member] : scene.arbiter->use()->pool().members()) {
    EXPECT_EQ(member.cleaning > 0, id == MegaVolId(1)) << id.value();
    EXPECT_EQ(member.unfenced.contains(kOfArbiters), id == MegaVolId(1)) << id.value();
  }
  // One that leads after it is not at that drive either.
  co_await scene.end();
  co_await scene.begin("arbiter.3");
  scene.media.at("m1")->is_cut_off = false;
  co_await scene.arbiter->settle();
  EXPECT_TRUE(scene.arbiter->use()->pool().members().at(MegaVolId(1)).unfenced.empty());
  EXPECT_EQ(scene.audit(), "");
}
TEST(Arbiter, ClearsExtentsOfDrivesThatAnswerAlthoughOneDoesNot) { run_scene(leads_without_a_box); }

Task<void> clean_close(Scene& scene) {
  co_await create(scene, "v", 6, 3);
  Result<Opened> opened = co_await scene.arbiter->host().open({"v", "one", false}, {});
  EXPECT_TRUE(opened->is_clean);
  Result<void> closed = co_await scene.arbiter->host().close(opened->session, true, {});
  EXPECT_TRUE(closed);
  closed = co_await scene.arbiter->host().close(opened->session, true, {});
  EXPECT_TRUE(closed) << "a repeated close";
  opened = co_await scene.arbiter->host().open({"v", "two", false}, {});
  EXPECT_TRUE(opened->is_clean);
  opened = co_await scene.arbiter->host().open({"v", "two", false}, {});
  EXPECT_FALSE(opened->is_clean) << "it was not closed";
  EXPECT_TRUE(scene.fence.fenced.empty());
}
TEST(Arbiter, SaysWhetherTheLastHolderClosed) { run_scene(clean_close); }

Task<void> stale_legs(Scene& scene) {
  co_await create(scene, "v", 6, 2);
  const Session session = co_await scene.must_open("v", "one");
  volume::ArbiterLink& link = scene.arbiter->host();
  const auto got = co_await link.allocate(session, {1}, {});
  CO_ASSERT_TRUE(got);
  const MegaVolId head = (*got)[0].entry.leg(0).mega_vol;
  const MegaVolId tail = (*got)[0].entry.leg(1).mega_vol;
  const auto both = co_await link.report(session, {{1, head, true}, {1, tail, true}}, {});
  EXPECT_EQ(both.error().code(), Errc::kInvalid);
  const auto one = co_await link.report(session, {{1, head, true}}, {});
  CO_ASSERT_TRUE(one);
  EXPECT_EQ((*one)[0].entry.in_sync(), 1U);
  Result<Mapping> moved = co_await link.relocate(session, {.extent = 1, .drop = tail}, {});
  EXPECT_EQ(moved.error().code(), Errc::kInvalid) << "the last that is not stale";
  moved = co_await link.relocate(session, {.extent = 1, .drop = head, .add = true}, {});
  CO_ASSERT_TRUE(moved);
  EXPECT_EQ(moved->entry.size(), 2U);
  EXPECT_EQ(moved->entry.find(head), 2U);
  EXPECT_TRUE(moved->entry.leg(1).is_stale);
  const Result<Mapping> again =
      co_await link.relocate(session, {.extent = 1, .drop = head, .add = true}, {});
  CO_ASSERT_TRUE(again);
  EXPECT_EQ(again->entry, moved->entry) << "a repeated request";
  co_await scene.arbiter->settle();
  EXPECT_EQ(scene.audit(), "");
  EXPECT_EQ(scene.arbiter->free(), 30U);
}
TEST(Arbiter, AnExtentKeepsALegThatIsNotStale) { run_scene(stale_legs); }

Task<void> drains(Scene& scene) {
  co_await create(scene, "v", 6, 1);
  const Session session = co_await scene.must_open("v", "one");
  const auto got = co_await scene.arbiter->host().allocate(session, {1}, {});
  CO_ASSERT_TRUE(got);
  const MegaVolId home = (*got)[0].entry.leg(0).mega_vol;
  Result<void> removed = co_await scene.arbiter->use()->remove_mega_vol(home, false);
  EXPECT_EQ(removed.error().code(), Errc::kExists);
  const Result<void> drained = co_await scene.arbiter->use()->drain(home, true);
  EXPECT_TRUE(drained);
  const auto more = co_await scene.arbiter->host().allocate(session, {2, 3, 4, 5}, {});
  CO_ASSERT_TRUE(more);
  for (const Mapping& each : *more) EXPECT_EQ(each.entry.find(home), 1U) << "it gets no more";
  const Result<void> released = co_await scene.arbiter->host().release(session, {1}, {});
  EXPECT_TRUE(released);
  co_await scene.arbiter->settle();
  removed = co_await scene.arbiter->use()->remove_mega_vol(home, false);
  EXPECT_TRUE(removed);
  EXPECT_EQ(scene.arbiter->use()->pool().members().size(), 3U);
  const Result<MegaVolInfo> back =
      co_await scene.arbiter->use()->add_mega_vol({.uri = fmt::format("m{}", home.value())});
  EXPECT_TRUE(back) << "it is nobody's now";
}
TEST(Arbiter, ADrainedDriveGetsNoExtentsAndCanLeave) { run_scene(drains); }

Task<void> weights(Scene& scene) {
  co_await create(scene, "v", 12, 1);
  const Session session = co_await scene.must_open("v", "one");
  std::vector<uint32_t> some = {1, 2, 3, 4};
  const auto spread = co_await scene.arbiter->host().allocate(session, some, {});
  CO_ASSERT_TRUE(spread);
  EXPECT_EQ(scene.volume("v").legs.size(), 4U) << "on each drive one";
  const Result<void> changed = co_await scene.arbiter->use()->set_weights("v", volume::kPack);
  EXPECT_TRUE(changed);
  const auto packed = co_await scene.arbiter->host().allocate(session, {5, 6, 7, 8}, {});
  CO_ASSERT_TRUE(packed);
  for (const Mapping& each : *packed) {
    EXPECT_EQ(each.entry.leg(0).mega_vol, (*packed)[0].entry.leg(0).mega_vol);
  }
}
TEST(Arbiter, AChangedPolicyMovesTheNextExtents) { run_scene(weights); }

Task<void> deposed(Scene& scene) {
  co_await create(scene, "v", 6, 1);
  const Session session = co_await scene.must_open("v", "one");
  const Result<std::optional<meta::Entry>> leader = co_await scene.meta().get(kLeaderKey);
  CO_ASSERT_TRUE(leader && *leader);
  {
    const ArbiterHost::Use old = scene.arbiter->use();
    const Result<void> revoked = co_await scene.meta().revoke((*leader)->lease);
    EXPECT_TRUE(revoked);
    const auto late = co_await old->allocate(session, {1}, {});
    EXPECT_FALSE(late);
    const Result<volume::Renewed> renewed = co_await old->renew(session, {});
    EXPECT_EQ(renewed.error().code(), Errc::kUnreachable);
  }
  const Result<void> slept = co_await task::sleep_for(scene.env, 1_s);
  EXPECT_TRUE(slept);
  const bool leads = co_await scene.arbiter->wait_until_leading();
  EXPECT_TRUE(leads) << "it leads anew";
  EXPECT_EQ(scene.volume("v").mapped, 0U) << "what was not committed is not there";
  EXPECT_EQ(scene.audit(), "");
}
TEST(Arbiter, OneThatWasDeposedChangesNothing) { run_scene(deposed); }

}  // namespace
}  // namespace cairn::arbiter
