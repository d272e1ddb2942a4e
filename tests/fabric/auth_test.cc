// SPDX-License-Identifier: Apache-2.0
// Hosts and a box that authenticate each other, on a good network and on a bad one.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "fabric/one_box.h"

namespace cairn::fabric_tests {
namespace {

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

class FabricAuth : public OneBox {
 public:
  void prepare_box(nvme::Registry& registry) override {
    if (!box_keys) return;
    nvme::AuthPolicy policy;
    policy.hosts.emplace(kHostNqn, box_keys->made());
    policy.means = box_means;
    EXPECT_TRUE(registry.set_authentication(kBoxNqn, std::move(policy)).has_value());
  }
  void note_totals(const nvme::Registry& registry) override {
    totals = registry.authentication_totals(kBoxNqn);
  }
  void prepare_host() override {
    if (!host_keys) return;
    options.credentials = std::make_shared<fabric::HostCredentials>(host_keys->made(), host_means);
  }

  std::optional<Keys> box_keys = Keys{};
  std::optional<Keys> host_keys = Keys{};
  nvme::AuthMeans box_means;
  nvme::AuthMeans host_means;
  nvme::AuthTotals totals;
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
  EXPECT_EQ(failures[0].host_nqn, kHostNqn);
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
