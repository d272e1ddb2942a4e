// SPDX-License-Identifier: Apache-2.0
// Clients and operators in other processes: who answers them, what is repeated, and what not.
#include "arbiter/remote_arbiter.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "arbiter/arbiter_server.h"
#include "arbiter/arbiter_testing.h"
#include "testing/sim_test.h"

namespace cairn::arbiter {
namespace {

using task::Task;
using volume::Mapping;
using volume::Opened;
using volume::Session;

// Two arbiters over one store, each with a server, and a client that knows both.
struct Scene {
  explicit Scene(env::Env& its_env)
      : env(its_env), store(meta::memory_store(its_env)), media(test_media(4, 9)), fence(media) {}
  Task<void> begin() {
    for (size_t i = 0; i < 2; ++i) co_await start(i);
    link = std::make_unique<RemoteArbiter>(
        env, RemoteArbiterOptions{.servers = addresses, .timeout = 3_s, .connect_timeout = 200_ms});
    co_await arbiters[0]->add_all(4);
  }
  // The first that is started leads.
  Task<void> start(size_t which) {
    const std::string name = fmt::format("arbiter{}", which);
    arbiters[which] = std::make_unique<TestArbiter>(env, *store, media, fence, name);
    servers[which] =
        std::make_unique<ArbiterServer>(env, arbiters[which]->host(), name, rpc::ServerOptions{});
    const Result<env::Address> at = servers[which]->listen(env::Address::loopback(0));
    EXPECT_TRUE(at);
    if (at) addresses.push_back(*at);
    if (which == 0) {
      const bool leads = co_await arbiters[0]->wait_until_leading();
      EXPECT_TRUE(leads);
    }
  }
  Task<void> stop(size_t which) {
    if (servers[which] == nullptr) co_return;
    co_await servers[which]->close();
    servers[which].reset();
    co_await arbiters[which]->close();
    arbiters[which].reset();
  }
  Task<void> end() {
    co_await link->disconnect();
    for (size_t i = 0; i < 2; ++i) co_await stop(i);
    co_await store->close();
  }
  Task<bool> create(std::string name, uint64_t extents) {
    const auto made = co_await link->ask<VolumeView>(
        CreateArgs{.name = std::move(name), .bytes = extents * kTestExtent, .replicas = 2});
    co_return made.has_value();
  }
  Task<Session> must_open(std::string client, bool take_over = false) {
    const Result<Opened> opened = co_await link->open(
        {.volume = "vol0", .client = std::move(client), .take_over = take_over}, {});
    EXPECT_TRUE(opened) << (opened ? "" : opened.error().text());
    Session session = opened ? opened->session : Session{};
    session.turn = 1;
    co_return session;
  }

  env::Env& env;
  std::unique_ptr<meta::Store> store;
  volume::TestMedia media;
  TestFence fence;
  std::array<std::unique_ptr<TestArbiter>, 2> arbiters;
  std::array<std::unique_ptr<ArbiterServer>, 2> servers;
  std::vector<env::Address> addresses;
  std::unique_ptr<RemoteArbiter> link;
};

SIM_TEST(RemoteArbiter, CallsReachTheOneThatLeadsAndGoOnAtTheNext) {
  Scene scene(env);
  co_await scene.begin();
  std::swap(scene.addresses[0], scene.addresses[1]);  // the one that stands by is asked first
  co_await scene.link->disconnect();
  scene.link = std::make_unique<RemoteArbiter>(
      env, RemoteArbiterOptions{.servers = scene.addresses, .timeout = 5_s});
  EXPECT_TRUE(co_await scene.create("vol0", 4));
  const Session session = co_await scene.must_open("client");
  const Result<std::vector<Mapping>> before = co_await scene.link->allocate(session, {1}, {});
  CO_ASSERT_TRUE(before.has_value());
  co_await scene.stop(0);
  // Whoever leads now knows what was given out, and the session goes on.
  const Result<volume::Renewed> renewed = co_await scene.link->renew(session, {});
  EXPECT_TRUE(renewed) << (renewed ? "" : renewed.error().text());
  const Result<std::vector<Mapping>> after = co_await scene.link->allocate(session, {1, 2}, {});
  CO_ASSERT_TRUE(after.has_value());
  EXPECT_EQ((*after)[0].entry, (*before)[0].entry);
  EXPECT_TRUE((*after)[1].entry.is_mapped());
  co_await scene.end();
}

SIM_TEST(RemoteArbiter, NothingWasDoneWhileNobodyLeads) {
  Scene scene(env);
  co_await scene.begin();
  EXPECT_TRUE(co_await scene.create("vol0", 4));
  co_await scene.stop(0);
  co_await scene.stop(1);
  const Result<Opened> opened =
      co_await scene.link->open({.volume = "vol0", .client = "client"}, {});
  CO_ASSERT_TRUE(!opened);
  EXPECT_EQ(opened.error(), Errc::kUnreachable);
  const auto pool = co_await scene.link->ask<PoolView>(PoolRequest{});
  CO_ASSERT_TRUE(!pool);
  EXPECT_EQ(pool.error().code, Errc::kUnreachable);
  co_await scene.end();
}

SIM_TEST(RemoteArbiter, ErrorsOfTheArbiterArriveAsTheyAre) {
  Scene scene(env);
  co_await scene.begin();
  EXPECT_TRUE(co_await scene.create("vol0", 4));
  const auto again = co_await scene.link->ask<VolumeView>(
      CreateArgs{.name = "vol0", .bytes = kTestExtent, .replicas = 1});
  CO_ASSERT_TRUE(!again);
  EXPECT_EQ(again.error().code, Errc::kExists);
  EXPECT_EQ(again.error().text,
            "there is a volume of that name: 'cairn volume list' names those there are");
  const auto too_large = co_await scene.link->ask<VolumeView>(
      CreateArgs{.name = "vol1", .bytes = 1000 * kTestExtent, .replicas = 1});
  CO_ASSERT_TRUE(!too_large);
  EXPECT_EQ(too_large.error().code, Errc::kNoSpace);

  const Result<Opened> unknown =
      co_await scene.link->open({.volume = "none", .client = "client"}, {});
  CO_ASSERT_TRUE(!unknown);
  EXPECT_EQ(unknown.error(), Errc::kNotFound);
  const Session session = co_await scene.must_open("client");
  const Result<Opened> second =
      co_await scene.link->open({.volume = "vol0", .client = "other"}, {});
  CO_ASSERT_TRUE(!second);
  EXPECT_EQ(second.error(), Errc::kExists);
  // Who cannot be fenced keeps the volume, and that is not for another arbiter to try.
  scene.fence.is_broken = true;
  const Result<Opened> unfenced =
      co_await scene.link->open({.volume = "vol0", .client = "other", .take_over = true}, {});
  CO_ASSERT_TRUE(!unfenced);
  EXPECT_EQ(unfenced.error(), Errc::kUnreachable);
  scene.fence.is_broken = false;
  co_await scene.must_open("other", true);
  const Result<volume::Renewed> over = co_await scene.link->renew(session, {});
  CO_ASSERT_TRUE(!over);
  EXPECT_EQ(over.error(), Errc::kDenied);
  co_await scene.end();
}

SIM_TEST(RemoteArbiter, ACallOfAnEarlierTurnIsRefused) {
  Scene scene(env);
  co_await scene.begin();
  EXPECT_TRUE(co_await scene.create("vol0", 4));
  Session session = co_await scene.must_open("client");
  session.turn = 5;
  const Result<std::vector<Mapping>> now = co_await scene.link->table(session, 0, {});
  EXPECT_TRUE(now.has_value());
  session.turn = 4;
  const Result<std::vector<Mapping>> late = co_await scene.link->allocate(session, {1}, {});
  CO_ASSERT_TRUE(!late);
  EXPECT_EQ(late.error(), Errc::kReset);
  co_await scene.end();
}

// Takes calls and answers some of them as nobody should.
class Liar final : public rpc::Service {
 public:
  std::string_view name() const override { return kServiceName; }
  rpc::Version version() const override { return {.major = kServiceMajor}; }
  std::optional<rpc::Method> find(uint16_t) const override { return rpc::Method{}; }
  Task<Result<std::string>> call(uint16_t method, std::string, rpc::Caller,
                                 task::CancelToken token) override {
    ++calls;
    if (opened) co_return encode(static_cast<Call>(method), Answer(*opened));
    task::Event never;
    const Result<void> waited = co_await never.wait(token);
    co_return fail(waited.error());
  }
  std::optional<Opened> opened;  // none: it never answers
  int calls = 0;
};

SIM_TEST(RemoteArbiter, ACallThatMayHaveBeenHeardIsNotMadeAgain) {
  Liar liar;
  rpc::Server server(env, liar);
  const Result<env::Address> at = server.listen(env::Address::loopback(0));
  CO_ASSERT_TRUE(at.has_value());
  RemoteArbiter link(env, {.servers = {*at, *at}, .timeout = 1_s});
  const Result<std::vector<Mapping>> lost = co_await link.allocate(Session{}, {1}, {});
  CO_ASSERT_TRUE(!lost);
  EXPECT_EQ(lost.error(), Errc::kTimedOut);
  EXPECT_EQ(liar.calls, 1);
  co_await link.disconnect();
  co_await server.close();
}

SIM_TEST(RemoteArbiter, AVolumeThatCannotBeIsNotBelieved) {
  Liar liar;
  rpc::Server server(env, liar);
  const Result<env::Address> at = server.listen(env::Address::loopback(0));
  CO_ASSERT_TRUE(at.has_value());
  RemoteArbiter link(env, {.servers = {*at}, .timeout = 1_s});
  const Opened sound{.extents = 9, .replicas = 3, .lease = 1_s, .mega_vols = {}};
  std::vector<Opened> lies(5, sound);
  lies[0].extents = 0;
  lies[1].pool.extent_bytes = 0;
  lies[2].replicas = 4;
  lies[3].lease = Duration();
  lies[4].extents = volume::kVolumeExtentsMax + 1;
  for (const Opened& lie : lies) {
    liar.opened = lie;
    const Result<Opened> opened = co_await link.open({.volume = "vol0", .client = "me"}, {});
    EXPECT_FALSE(opened.has_value());
  }
  liar.opened = sound;
  const Result<Opened> opened = co_await link.open({.volume = "vol0", .client = "me"}, {});
  EXPECT_TRUE(opened.has_value());
  co_await link.disconnect();
  co_await server.close();
}

SIM_TEST(RemoteArbiter, OperatorsSeeDrivesVolumesAndWhyExtentsLieWhereTheyDo) {
  Scene scene(env);
  co_await scene.begin();
  EXPECT_TRUE(co_await scene.create("vol1", 2));
  EXPECT_TRUE(co_await scene.create("vol0", 4));
  const Session session = co_await scene.must_open("client");
  const Result<std::vector<Mapping>> given = co_await scene.link->allocate(session, {1, 2}, {});
  EXPECT_TRUE(given.has_value());
  const auto pool = co_await scene.link->ask<PoolView>(PoolRequest{});
  CO_ASSERT_TRUE(pool.has_value());
  EXPECT_EQ(pool->drives.size(), 4U);
  EXPECT_EQ(pool->volumes, 2U);
  uint64_t legs = 0;
  for (const DriveView& each : pool->drives) legs += each.legs;
  EXPECT_EQ(legs, 4U);
  const auto page = co_await scene.link->ask<VolumePage>(VolumesRequest{});
  CO_ASSERT_TRUE(page.has_value() && page->volumes.size() == 2);
  EXPECT_EQ(page->volumes[0].record.name, "vol0");
  EXPECT_EQ(page->volumes[0].record.holder, "client");
  EXPECT_EQ(page->volumes[0].mapped, 2U);
  const auto detail = co_await scene.link->ask<VolumeDetail>(VolumeRequest{.name = "vol0"});
  CO_ASSERT_TRUE(detail.has_value() && detail->matrices.size() == 2);
  EXPECT_EQ(detail->matrices[0].rows.size(), 4U);
  const auto status = co_await scene.link->ask<ArbiterView>(StatusRequest{});
  CO_ASSERT_TRUE(status.has_value());
  EXPECT_EQ(status->host, "arbiter0");
  EXPECT_TRUE(status->is_leading);
  co_await scene.end();
}

}  // namespace
}  // namespace cairn::arbiter
