// SPDX-License-Identifier: Apache-2.0
// Which keys a box takes from whom.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "nvme/controller/registry.h"
#include "nvme/controller/registry_testing.h"
#include "nvme/format/discovery_format.h"
#include "task/when_all.h"
#include "testing/sim_test.h"

namespace cairn::nvme {
namespace {

using task::Task;

const std::string kOtherNqn = "nqn.2026-11.io.cairn:other";
const std::string kHost = "nqn.2014-08.org.nvmexpress:uuid:1";  // TestHost's own
const env::Address kPeer = env::Address::ip4(192, 0, 2, 1, 1000);

TlsKey key_of(uint8_t fill) {
  std::array<std::byte, 32> key{};
  key.fill(std::byte{fill});
  return TlsKey::make(crypto::Hash::kSha256, key);
}

TlsPsk psk_of(uint8_t fill, const std::string& host, const std::string& nqn,
              TlsIdentityVersion version = TlsIdentityVersion::k1) {
  return key_of(fill).psk_of({.host = host, .subsystem = nqn}, version).value();
}

class TlsAdmission : public testing::Test {
 public:
  struct Scene {
    env::Env& env;
    Registry& registry;
    std::vector<AuthenticationFailure>& failures;

    Task<Result<TlsPsk>> offer(std::vector<std::string> identities,
                               env::Address local = env::Address::loopback(4420)) {
      const TlsOffer made{
          .identities = std::move(identities), .local = local, .peer = kPeer, .wait_max = 5_s};
      Result<TlsPsk> psk = co_await registry.choose_tls_key(made, {});
      co_return psk;
    }
    Task<void> expect_refusal(std::vector<std::string> identities, std::string why) {
      const size_t before = failures.size();
      const Result<TlsPsk> psk = co_await offer(std::move(identities));
      EXPECT_FALSE(psk.has_value());
      if (!psk) EXPECT_EQ(std::string(psk.error().what()), why);
      EXPECT_EQ(failures.size(), before + 1);
      EXPECT_EQ(failures.back().peer, kPeer);
    }
  };
  using Body = Task<void> (*)(env::Env&, Registry&, std::vector<AuthenticationFailure>&);

  void run(Body body) {
    sim::run_in_sim([body](env::Env& env) { return serve(env, body); });
  }

 private:
  static Task<void> serve(env::Env& env, Body body) {
    std::vector<AuthenticationFailure> failures;
    Registry registry(env);
    registry.on_authentication(
        [&failures](const AuthenticationFailure& failure) { failures.push_back(failure); });
    for (const std::string& nqn : {kTestNqn, kOtherNqn}) {
      SubsystemOptions options;
      options.nqn = nqn;
      EXPECT_TRUE(registry.add_subsystem(options).has_value());
    }
    TlsKeys keys;
    keys.emplace(kHost, key_of(1));
    EXPECT_TRUE(registry.set_tls(kTestNqn, std::move(keys)).has_value());
    co_await body(env, registry, failures);
    co_await registry.close();
  }
};

SIM_TEST_F(TlsAdmission, KnownKeysAreFound) {
  for (const auto version : {TlsIdentityVersion::k0, TlsIdentityVersion::k1}) {
    for (const std::string& nqn : {kTestNqn, std::string(kDiscoveryNqn)}) {
      const TlsPsk wanted = psk_of(1, kHost, nqn, version);
      const Result<TlsPsk> psk = co_await offer(
          {"garbage", psk_of(1, "nqn.stranger", nqn).identity.text(), wanted.identity.text()});
      EXPECT_TRUE(psk.has_value());
      if (!psk) continue;
      EXPECT_EQ(psk->identity.text(), wanted.identity.text());
      EXPECT_TRUE(crypto::is_equal(psk->key.bytes(), wanted.key.bytes()));
    }
  }
  EXPECT_TRUE(failures.empty());
}

SIM_TEST_F(TlsAdmission, OthersAreNot) {
  co_await expect_refusal({}, "it offers no TLS key");
  EXPECT_EQ(failures.back().host_nqn, "");
  co_await expect_refusal({"garbage"}, "its TLS identity is not one of NVMe");
  co_await expect_refusal({psk_of(1, "nqn.stranger", kTestNqn).identity.text()},
                          "there is no TLS key for this host");
  EXPECT_EQ(failures.back().host_nqn, "nqn.stranger");
  EXPECT_EQ(failures.back().nqn, kTestNqn);
  co_await expect_refusal({psk_of(1, kHost, "nqn.nowhere").identity.text()},
                          "its TLS identity names a subsystem that is not served here");
  co_await expect_refusal({psk_of(1, kHost, kOtherNqn).identity.text()},
                          "there is no TLS key for this host");
  co_await expect_refusal({psk_of(2, kHost, kTestNqn).identity.text()},
                          "the host has another TLS key: the digest in its identity differs");
  TlsIdentity long_hash = psk_of(1, kHost, kTestNqn, TlsIdentityVersion::k0).identity;
  long_hash.hash = crypto::Hash::kSha384;
  co_await expect_refusal({long_hash.text()}, "the host has a TLS key of another hash");
  EXPECT_TRUE(registry.set_hosts(kTestNqn, false, {"nqn.somebody"}).has_value());
  co_await expect_refusal({psk_of(1, kHost, kTestNqn).identity.text()},
                          "this host may not use the subsystem");
  EXPECT_EQ(registry.tls_totals().failed, 8u);
}

SIM_TEST_F(TlsAdmission, FailuresSlowTheirHostDown) {
  const std::string known = psk_of(1, kHost, kTestNqn).identity.text();
  const std::string wrong = psk_of(2, kHost, kTestNqn).identity.text();
  constexpr auto kOther = "the host has another TLS key: the digest in its identity differs";
  for (int i = 0; i < 5; ++i) co_await expect_refusal({wrong}, kOther);
  Time before = env.now();
  const Result<TlsPsk> late = co_await offer({known});
  EXPECT_TRUE(late.has_value());
  EXPECT_GE(env.now() - before, 1_s);
  registry.tls_succeeded(kPeer, kHost);
  before = env.now();
  const Result<TlsPsk> soon = co_await offer({known});
  EXPECT_TRUE(soon.has_value());
  EXPECT_EQ(env.now(), before);
  EXPECT_EQ(registry.tls_totals().succeeded, 1u);
}

// Whoever shares an address with those who guess gets in at once.
SIM_TEST_F(TlsAdmission, OthersOfTheAddressDoNotWait) {
  const std::string known = psk_of(1, kHost, kTestNqn).identity.text();
  const std::string stranger = psk_of(1, "nqn.stranger", kTestNqn).identity.text();
  for (int i = 0; i < 20; ++i) {
    co_await offer({stranger});
    co_await offer({});
    const Time before = env.now();
    const Result<TlsPsk> psk = co_await offer({known});
    EXPECT_TRUE(psk.has_value());
    EXPECT_EQ(env.now(), before);
  }
}

SIM_TEST_F(TlsAdmission, WaitsEndInTime) {
  const std::string wrong = psk_of(2, kHost, kTestNqn).identity.text();
  for (int i = 0; i < 20; ++i) {
    const Time before = env.now();
    const Result<TlsPsk> psk = co_await offer({wrong});
    EXPECT_FALSE(psk.has_value());
    EXPECT_LE(env.now() - before, 5_s);
  }
  // Side by side: those whose turn would come too late are refused, and that is no failure.
  const uint64_t failed = registry.tls_totals().failed;
  const size_t told = failures.size();
  const Time before = env.now();
  std::vector<Task<Result<TlsPsk>>> many;
  many.reserve(10);
  for (int i = 0; i < 10; ++i) many.push_back(offer({wrong}));
  const std::vector<Result<TlsPsk>> outcomes = co_await task::when_all(std::move(many));
  EXPECT_LE(env.now() - before, 5_s);
  const auto limited = std::ranges::count_if(
      outcomes, [](const Result<TlsPsk>& psk) { return psk.error() == Errc::kLimit; });
  EXPECT_EQ(limited, 9);
  EXPECT_EQ(registry.tls_totals().failed, failed + 1);
  EXPECT_EQ(failures.size(), told + 10) << "but it is told";
}

SIM_TEST_F(TlsAdmission, PortsKeepTheirSubsystems) {
  registry.add_port({.listen = env::Address::loopback(4421), .subsystems = {kOtherNqn}});
  const Result<TlsPsk> psk =
      co_await offer({psk_of(1, kHost, kTestNqn).identity.text()}, env::Address::loopback(4421));
  EXPECT_FALSE(psk.has_value());
}

SIM_TEST_F(TlsAdmission, ConnectSaysTheSame) {
  TestHost host(registry);
  host.tls = psk_of(1, kHost, kTestNqn).identity;
  const ConnectReply same = co_await host.connect_queue(0);
  EXPECT_TRUE(same.status.ok());
  EXPECT_TRUE(failures.empty());
  TestHost elsewhere(registry);
  elsewhere.tls = host.tls;
  elsewhere.data.subsystem_nqn.set(kOtherNqn);
  const ConnectReply other = co_await elsewhere.connect_queue(0);
  EXPECT_EQ(other.status.code(), StatusCode::kConnectInvalidHost);
  TestHost impostor(registry, 2);
  impostor.tls = host.tls;
  const ConnectReply refused = co_await impostor.connect_queue(0);
  EXPECT_EQ(refused.status.code(), StatusCode::kConnectInvalidHost);
  EXPECT_TRUE(refused.status.do_not_retry());
  EXPECT_EQ(failures.size(), 2u);
  EXPECT_EQ(std::string(failures.back().why),
            "its Connect names another host or subsystem than its TLS key");
  co_await host.leave();
}

}  // namespace
}  // namespace cairn::nvme
