// SPDX-License-Identifier: Apache-2.0
// Hosts and a box through TLS, with the right keys and others, on a good network and on a bad one.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fabric/host/discovery.h"
#include "fabric/host/tls.h"
#include "fabric/one_box.h"

namespace cairn::fabric_tests {
namespace {

using fabric::Channel;
using task::Task;

nvme::TlsKey key_of(uint8_t fill, crypto::Hash hash = crypto::Hash::kSha256) {
  const std::vector<std::byte> key(crypto::digest_size(hash), std::byte{fill});
  return nvme::TlsKey::make(hash, key);
}

nvme::AuthSecret secret_of(uint8_t fill) {
  const std::vector<std::byte> key(32, std::byte{fill});
  return nvme::AuthSecret::make(nvme::AuthHash::kSha256, key);
}

class FabricTls : public OneBox {
 public:
  FabricTls() {
    channel = Channel::kTls;
    options.tls = true;
  }
  void prepare_box(nvme::Registry& registry) override {
    nvme::TlsKeys keys;
    keys.emplace(kHostNqn, key_of(box_key, hash));
    EXPECT_TRUE(registry.set_tls(kBoxNqn, std::move(keys)).has_value());
    if (box_secret == 0) return;
    nvme::AuthPolicy policy;
    policy.hosts.emplace(kHostNqn, nvme::AuthKeys{.host = secret_of(box_secret)});
    policy.means.groups = {nvme::AuthGroup::kNull};
    EXPECT_TRUE(registry.set_authentication(kBoxNqn, std::move(policy)).has_value());
  }
  void note_totals(const nvme::Registry& registry) override {
    totals = registry.tls_totals();
    authenticated = registry.authentication_totals(kBoxNqn);
  }
  void prepare_host() override {
    if (options.tls) options.tls_key = std::make_shared<nvme::TlsKey>(key_of(host_key, hash));
    if (host_secret == 0) return;
    nvme::AuthKeys keys{.host = secret_of(host_secret), .controller = {}};
    options.credentials = std::make_shared<fabric::HostCredentials>(std::move(keys));
  }
  Task<void> use(env::Env& env, env::Address box) override {
    return discovers ? discover(env, box) : OneBox::use(env, box);
  }
  Task<void> discover(env::Env& env, env::Address box) {
    log = co_await fabric::discover(env, box, options, env.stop_token());
    done = true;
  }
  void expect_denied(const std::string& at_host, const std::string& at_box) {
    const auto error = run();
    ASSERT_TRUE(error);
    EXPECT_EQ(*error, Errc::kDenied) << error->text();
    EXPECT_EQ(std::string(error->what()), at_host);
    ASSERT_FALSE(failures.empty());
    EXPECT_EQ(std::string(failures[0].why), at_box);
    EXPECT_NE(failures[0].peer.port, 0);
  }

  crypto::Hash hash = crypto::Hash::kSha256;
  uint8_t box_key = 1;
  uint8_t host_key = 1;
  uint8_t box_secret = 0;  // of DH-HMAC-CHAP; 0: none
  uint8_t host_secret = 0;
  bool discovers = false;

  nvme::AuthTotals totals;
  nvme::AuthTotals authenticated;
  Result<fabric::DiscoveryLog> log = fail(Errc::kInvalid, "never");
};

TEST_F(FabricTls, EachQueueShakesHands) {
  options.queues = 2;
  EXPECT_FALSE(run());
  EXPECT_EQ(totals.succeeded, 3u);
  EXPECT_EQ(totals.failed, 0u);
  EXPECT_TRUE(failures.empty());
}

TEST_F(FabricTls, WithEitherHashAndVersion) {
  hash = crypto::Hash::kSha384;
  options.tls_identity = nvme::TlsIdentityVersion::k0;
  size = 256 * 1024;
  EXPECT_FALSE(run());
  EXPECT_EQ(totals.succeeded, 2u);
}

TEST_F(FabricTls, AuthenticationGoesOnInside) {
  box_secret = host_secret = 5;
  EXPECT_FALSE(run());
  EXPECT_EQ(totals.succeeded, 2u);
  EXPECT_EQ(authenticated.succeeded, 2u);
}

TEST_F(FabricTls, AnotherKeyIsUnknownByItsDigest) {
  host_key = 2;
  expect_denied("the peer sent the TLS alert unknown_psk_identity",
                "the host has another TLS key: the digest in its identity differs");
  EXPECT_EQ(failures[0].host_nqn, kHostNqn);
  EXPECT_EQ(failures[0].nqn, kBoxNqn);
}

TEST_F(FabricTls, AnotherKeyOfVersion0ProvesWrong) {
  host_key = 2;
  options.tls_identity = nvme::TlsIdentityVersion::k0;
  expect_denied("the peer sent the TLS alert illegal_parameter", "the peer has another TLS key");
  EXPECT_EQ(failures[0].host_nqn, kHostNqn);
}

TEST_F(FabricTls, AnotherHostIsUnknown) {
  options.host_nqn = "nqn.2026-11.io.cairn:stranger";
  expect_denied("the peer sent the TLS alert unknown_psk_identity",
                "there is no TLS key for this host");
}

TEST_F(FabricTls, APlainHostIsToldToUseTls) {
  options.tls = false;
  const auto error = run();
  ASSERT_TRUE(error);
  EXPECT_EQ(*error, Errc::kUnsupported);
  EXPECT_EQ(std::string(error->what()), fabric::kTargetDemandsTls);
  ASSERT_FALSE(failures.empty());
  EXPECT_EQ(std::string(failures[0].why),
            "it speaks plain NVMe/TCP, and this listener demands TLS");
}

TEST_F(FabricTls, ATlsHostAtAPlainPortIsToldSo) {
  channel = Channel::kPlain;
  const auto error = run();
  ASSERT_TRUE(error);
  EXPECT_EQ(*error, Errc::kUnsupported);
  EXPECT_EQ(std::string(error->what()), fabric::kTargetIsPlain);
  ASSERT_FALSE(failures.empty());
  EXPECT_EQ(std::string(failures[0].why), "it speaks TLS, and this listener does not");
}

TEST_F(FabricTls, AKeyFileThatNobodyReadIsAnError) {
  channel = Channel::kPlain;
  options.tls = false;
  options.tls_key_file = "/nowhere";
  EXPECT_FALSE(run()) << "without tls it does not matter";
}

TEST_F(FabricTls, DiscoveryIsEncryptedAndSaysSo) {
  discovers = true;
  run();
  ASSERT_TRUE(log.has_value()) << log.error().text();
  ASSERT_EQ(log->records.size(), 2u);
  for (const fabric::DiscoveryRecord& record : log->records) {
    EXPECT_EQ(record.security, nvme::TcpSecurity::kTls13);
    EXPECT_EQ(record.requirements & 3, nvme::TransportRequirements::kSecureRequired);
  }
}

class FabricTlsSeed : public FabricTls, public testing::WithParamInterface<uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Seeds, FabricTlsSeed, testing::Range<uint64_t>(1, 21));

// Connections break in the middle of handshakes and records; each is made again, no byte is wrong,
// and nobody is taken for an impostor.
TEST_P(FabricTlsSeed, SurvivesABadNetwork) {
  options.queues = 2;
  world.seed = GetParam();
  world.network.faults = sim::NetworkFaults::rough();
  world.network.faults.reset = 0.01;
  size = 20 * 1024;
  lasts = 10_s;
  is_persistent = true;
  EXPECT_FALSE(run());
  EXPECT_GT(sessions, 1u);
  for (const nvme::AuthenticationFailure& each : failures) {
    EXPECT_EQ(std::string(each.why).find("key"), std::string::npos) << each.why;
  }
}

TEST(FabricTlsAgain, TheSameSeedIsTheSameRun) {
  uint64_t hashes[2] = {};
  for (uint64_t& each : hashes) {
    class Run final : public FabricTls {
     public:
      void TestBody() override {}
    } run;
    run.world.seed = 7;
    run.world.network.faults = sim::NetworkFaults::rough();
    run.is_persistent = true;
    run.lasts = 1_s;
    run.run();
    each = run.trace_hash;
  }
  EXPECT_EQ(hashes[0], hashes[1]);
}

}  // namespace
}  // namespace cairn::fabric_tests
