// SPDX-License-Identifier: Apache-2.0
// Hosts and a box that authenticate each other, on a good network and on a bad one.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fabric/host/remote_drive.h"
#include "fabric/host/uri.h"
#include "fabric/target/target.h"
#include "nvme/registry.h"
#include "sim/cluster.h"
#include "task/deadline.h"
#include "task/sync.h"

namespace cairn::fabric_tests {
namespace {

using task::Task;

const std::string kAuthNqn = "nqn.2026-11.io.cairn:auth";
const std::string kAuthHost = "nqn.2026-11.io.cairn:host";

nvme::AuthSecret secret_of(uint8_t fill) {
  std::array<std::byte, 32> key{};
  key.fill(std::byte{fill});
  return nvme::AuthSecret::make(nvme::AuthHash::kSha256, key);
}

struct Keys {
  uint8_t host = 1;
  uint8_t controller = 0;  // 0: none

  nvme::AuthKeys made() const {
    nvme::AuthKeys keys{.host = secret_of(host), .controller = {}};
    if (controller != 0) keys.controller = secret_of(controller);
    return keys;
  }
};

class FabricAuth : public testing::Test {
 public:
  Task<void> serve(env::Env& env, env::Address at) {
    nvme::Registry registry(env);
    fabric::Target target(env, registry);
    nvme::SubsystemOptions subsystem;
    subsystem.nqn = kAuthNqn;
    EXPECT_TRUE(registry.add_subsystem(subsystem).has_value());
    nvme::NamespaceOptions space;
    space.drive = drive::Spec::parse("mem:size=1M,block=512").value();
    const Result<uint32_t> added = co_await registry.add_namespace(kAuthNqn, space);
    EXPECT_TRUE(added.has_value());
    registry.on_authentication(
        [this](const nvme::AuthenticationFailure& failure) { failures.push_back(failure); });
    if (box_keys) {
      nvme::AuthPolicy policy;
      policy.hosts.emplace(kAuthHost, box_keys->made());
      policy.means = box_means;
      EXPECT_TRUE(registry.set_authentication(kAuthNqn, std::move(policy)).has_value());
    }
    EXPECT_TRUE(target.listen(at).has_value());
    task::Event never;
    const Result<void> stopped = co_await never.wait(env.stop_token());
    EXPECT_FALSE(stopped.has_value());
    totals = registry.authentication_totals(kAuthNqn);
    co_await target.close();
    co_await registry.close();
  }

  // Opens the drive, writes and reads it for as long as the test says.
  Task<void> use(env::Env& env, env::Address box) {
    options.host_nqn = kAuthHost;
    if (host_keys) {
      options.credentials =
          std::make_shared<fabric::HostCredentials>(host_keys->made(), host_means);
    }
    const fabric::Uri uri{.paths = {box}, .nqn = kAuthNqn, .nsid = 1, .options = options};
    auto opened = co_await fabric::RemoteDrive::open(env, uri);
    while (is_persistent && !opened && !(opened.error() == Errc::kDenied)) {
      opened = co_await fabric::RemoteDrive::open(env, uri);
    }
    outcome = Result<void>();
    if (!opened) outcome = fail(opened.error());
    if (opened) {
      co_await work(env, **opened);
      co_await (*opened)->close();
    }
    done = true;
  }
  Task<void> work(env::Env& env, fabric::RemoteDrive& drive) {
    const Time until = env.now() + lasts;
    uint64_t round = 0;
    do {
      const std::vector<std::byte> data(4096, static_cast<std::byte>(++round));
      const Lba lba(round * 8 % 2000);
      const Result<void> written = co_await drive.write(lba, data);
      EXPECT_TRUE(written.has_value()) << written.error().text();
      std::vector<std::byte> back(data.size());
      const Result<void> read = co_await drive.read(lba, back);
      EXPECT_TRUE(read.has_value() && back == data);
      if (!written || !read) co_return;
      const Result<void> slept = co_await task::sleep_for(env, lasts / 200);
      EXPECT_TRUE(slept.has_value());
    } while (env.now() < until);
    sessions = drive.paths()[0]->controller().sessions();
  }

  // The error that opening ended with; none: it was used.
  std::optional<Error> run() {
    sim::Cluster cluster(world);
    const env::Address at = cluster.node("box", {.cores = 2}).address(4420);
    cluster.node("box").start([this, at](env::Env& env) { return serve(env, at); });
    cluster.run_for(1_ms);
    cluster.node("host").start([this, at](env::Env& env) { return use(env, at); });
    if (hangs_up) {
      EXPECT_TRUE(cluster.run_until([this] { return !failures.empty(); }, 10_s));
      cluster.node("box").kill();
    }
    EXPECT_TRUE(cluster.run_until([this] { return done; }, 2000_s)) << cluster.report();
    for (sim::Node* node : cluster.nodes()) node->stop();
    EXPECT_TRUE(cluster.run_until_idle(100_s));
    return outcome ? std::nullopt : std::optional(outcome.error());
  }

  std::optional<Keys> box_keys = Keys{};
  std::optional<Keys> host_keys = Keys{};
  nvme::AuthMeans box_means;
  nvme::AuthMeans host_means;
  fabric::HostOptions options;
  sim::ClusterOptions world;
  Duration lasts = 1_ms;
  bool hangs_up = false;       // the box dies when it has found the host's proof wrong
  bool is_persistent = false;  // the host tries to open until it is denied

  std::vector<nvme::AuthenticationFailure> failures;
  nvme::AuthTotals totals;
  Result<void> outcome;
  uint64_t sessions = 0;
  bool done = false;
};

TEST_F(FabricAuth, OneWay) {
  options.queues = 2;
  EXPECT_FALSE(run());
  EXPECT_EQ(totals.succeeded, 3u) << "each queue";
}

TEST_F(FabricAuth, Mutual) {
  box_keys = host_keys = Keys{.host = 1, .controller = 2};
  EXPECT_FALSE(run());
  EXPECT_EQ(totals.succeeded, 2u);
}

TEST_F(FabricAuth, WrongKeyIsDeniedAndNoted) {
  host_keys->host = 9;
  const auto error = run();
  ASSERT_TRUE(error);
  EXPECT_EQ(*error, Errc::kDenied) << error->text();
  ASSERT_FALSE(failures.empty());
  EXPECT_EQ(failures[0].host_nqn, kAuthHost);
  EXPECT_NE(failures[0].peer.port, 0);
}

TEST_F(FabricAuth, ABoxThatHangsUpOnAWrongKeyIsExplained) {
  host_keys->host = 9;
  hangs_up = true;
  const auto error = run();
  ASSERT_TRUE(error);
  EXPECT_EQ(*error, Errc::kClosed) << "it may have crashed: another attempt is worth it";
  EXPECT_NE(std::string(error->what()).find("is its key the right one"), std::string::npos)
      << error->text();
}

TEST_F(FabricAuth, NoKeyIsDenied) {
  host_keys.reset();
  const auto error = run();
  ASSERT_TRUE(error);
  EXPECT_EQ(*error, Errc::kDenied);
  EXPECT_NE(std::string(error->what()).find("no key"), std::string::npos);
}

TEST_F(FabricAuth, ABoxWithAnotherControllerKeyIsRefused) {
  box_keys = Keys{.host = 1, .controller = 3};
  host_keys = Keys{.host = 1, .controller = 2};
  const auto error = run();
  ASSERT_TRUE(error);
  EXPECT_EQ(*error, Errc::kDenied);
  EXPECT_EQ(totals.succeeded, 0u);
}

TEST_F(FabricAuth, ABoxThatDoesNotAskHasToProveItselfAllTheSame) {
  box_keys.reset();
  host_keys = Keys{.host = 1, .controller = 2};
  const auto error = run();
  ASSERT_TRUE(error);
  EXPECT_EQ(*error, Errc::kUnsupported);
}

TEST_F(FabricAuth, AKeyThatNobodyAsksForIsNotUsed) {
  box_keys.reset();
  EXPECT_FALSE(run());
  EXPECT_EQ(totals.succeeded + totals.failed, 0u);
}

TEST_F(FabricAuth, NoHashInCommonIsSaid) {
  box_means.hashes = {nvme::AuthHash::kSha512};
  host_means.hashes = {nvme::AuthHash::kSha256};
  const auto error = run();
  ASSERT_TRUE(error);
  EXPECT_EQ(*error, Errc::kUnsupported);
}

TEST_F(FabricAuth, KeyFilesThatNobodyReadAreAnError) {
  host_keys.reset();
  options.key_file = "/nowhere";
  const auto error = run();
  ASSERT_TRUE(error);
  EXPECT_EQ(*error, Errc::kInvalid);
}

TEST_F(FabricAuth, AgainAndAgainWhileInUse) {
  box_means.groups = {nvme::AuthGroup::kNull};
  options.reauthenticate = 1_s;
  lasts = 20_s;
  EXPECT_FALSE(run());
  EXPECT_EQ(sessions, 1u) << "nothing was lost";
  EXPECT_GE(totals.succeeded, 20u);
  EXPECT_EQ(totals.failed, 0u);
}

class FabricAuthSeed : public FabricAuth, public testing::WithParamInterface<uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Seeds, FabricAuthSeed, testing::Range<uint64_t>(1, 21));

// Connections break in the middle of transactions; each is made again and ends in success.
TEST_P(FabricAuthSeed, SurvivesABadNetwork) {
  box_keys = host_keys = Keys{.host = 1, .controller = 2};
  box_means.groups = {nvme::AuthGroup::kNull};
  options.queues = 2;
  options.reauthenticate = 500_ms;
  options.header_digest = options.data_digest = true;
  world.seed = GetParam();
  world.network.faults = sim::NetworkFaults::rough();
  world.network.faults.reset = 0.01;
  lasts = 10_s;
  is_persistent = true;
  EXPECT_FALSE(run());
  EXPECT_GT(sessions, 1u);
  for (const nvme::AuthenticationFailure& each : failures) {
    EXPECT_EQ(std::string(each.why).find("proof"), std::string::npos) << each.why;
  }
}

}  // namespace
}  // namespace cairn::fabric_tests
