// SPDX-License-Identifier: Apache-2.0
#include "nvme/format/discovery_format.h"

#include <gtest/gtest.h>

#include "nvme/controller/log_pages.h"
#include "nvme/controller/registry_testing.h"
#include "nvme/format/identify_controller_format.h"
#include "testing/sim_test.h"

namespace cairn::nvme {
namespace {

using env::Address;
using env::Env;
using task::Task;

std::vector<DiscoveryEntry> entries_of(Bytes page) {
  std::vector<DiscoveryEntry> entries;
  const auto header = load<DiscoveryHeader>(page);
  for (uint64_t i = 0; i < header.records; ++i) {
    entries.push_back(load<DiscoveryEntry>(page.subspan(1024 * (i + 1))));
  }
  return entries;
}

std::string where(const DiscoveryEntry& entry) {
  return std::string(entry.address.trimmed()) + " " + std::string(entry.service.trimmed());
}

DiscoveryFacts facts_at(const char* local, std::span<const PortOptions> ports) {
  return {.generation = 9, .local = *Address::parse(local), .ports = ports, .nqns = {"nqn.a"}};
}

TEST(DiscoveryPage, EntriesAreGolden) {
  const PortOptions port{
      .port_id = 3, .listen = *Address::parse("192.0.2.1:4420"), .advertise = {}};
  const LogBytes page = discovery_page(facts_at("192.0.2.9:8009", std::span(&port, 1)));
  ASSERT_EQ(page.size(), 3 * 1024u);
  EXPECT_EQ(load<uint64_t>(page), 9u);                     // GENCTR
  EXPECT_EQ(load<uint64_t>(Bytes(page).subspan(8)), 2u);   // NUMREC
  EXPECT_EQ(load<uint16_t>(Bytes(page).subspan(16)), 0u);  // RECFMT
  const std::vector<DiscoveryEntry> entries = entries_of(page);
  const DiscoveryEntry& self = entries[0];
  EXPECT_EQ(self.subsystem, SubsystemType::kCurrentDiscovery);
  EXPECT_EQ(self.flags, 3u);
  EXPECT_EQ(where(self), "192.0.2.9 8009");
  EXPECT_EQ(self.subsystem_nqn.get().value_or(""), kDiscoveryNqn);
  const Bytes entry = Bytes(page).subspan(2048, 1024);
  EXPECT_EQ(entry[0], std::byte{3});                     // TRTYPE TCP
  EXPECT_EQ(entry[1], std::byte{1});                     // ADRFAM IPv4
  EXPECT_EQ(entry[2], std::byte{2});                     // SUBTYPE NVM
  EXPECT_EQ(entry[3], std::byte{4});                     // TREQ: flow control can be switched off
  EXPECT_EQ(load<uint16_t>(entry.subspan(4)), 3u);       // PORTID
  EXPECT_EQ(load<uint16_t>(entry.subspan(6)), 0xffffu);  // CNTLID
  EXPECT_EQ(load<uint16_t>(entry.subspan(8)), 32u);      // ASQSZ
  EXPECT_EQ(load<uint16_t>(entry.subspan(10)), 0u);      // EFLAGS
  EXPECT_EQ(as_text(entry.subspan(32, 32)), "4420" + std::string(28, ' '));
  EXPECT_EQ(as_text(entry.subspan(256, 6)), std::string_view("nqn.a\0", 6));
  EXPECT_EQ(as_text(entry.subspan(512, 256)), "192.0.2.1" + std::string(247, ' '));
  EXPECT_EQ(entry[768], std::byte{0});  // TSAS: no security
}

TEST(DiscoveryPage, APortWithTlsSaysSo) {
  const PortOptions port{.listen = *Address::parse("192.0.2.1:4420"), .tls = true};
  const LogBytes page = discovery_page(facts_at("192.0.2.1:4420", std::span(&port, 1)));
  ASSERT_EQ(page.size(), 3 * 1024u);
  for (const size_t at : {1024u, 2048u}) {
    const Bytes entry = Bytes(page).subspan(at, 1024);
    EXPECT_EQ(entry[3], std::byte{5});    // TREQ: a secure channel is required
    EXPECT_EQ(entry[768], std::byte{2});  // TSAS, SECTYPE: TLS 1.3
  }
}

TEST(DiscoveryPage, WildcardsBecomeWhereTheHostReachedUs) {
  const PortOptions any4{.listen = *Address::parse("0.0.0.0:4420"), .advertise = {}};
  const PortOptions any6{.listen = *Address::parse("[::]:4421"), .advertise = {}};
  const auto found = [](const char* local, const PortOptions& port) {
    std::string all;
    const LogBytes page = discovery_page(facts_at(local, std::span(&port, 1)));
    for (const DiscoveryEntry& entry : entries_of(page)) {
      if (entry.subsystem == SubsystemType::kNvm) all += where(entry);
    }
    return all;
  };
  EXPECT_EQ(found("10.1.2.3:8009", any4), "10.1.2.3 4420");
  EXPECT_EQ(found("10.1.2.3:8009", any6), "") << "[::] is for IPv6 alone";
  EXPECT_EQ(found("[2001:db8::1]:8009", any6), "2001:db8::1 4421");
  EXPECT_EQ(found("[::ffff:a01:203]:8009", any6), "10.1.2.3 4421") << "a mapped address";
  EXPECT_EQ(found("[2001:db8::1]:8009", any4), "") << "our IPv4 address is not known";
  PortOptions told = any4;
  told.advertise = *Address::parse("203.0.113.5:9");
  EXPECT_EQ(found("10.1.2.3:8009", told), "203.0.113.5 9");
  const PortOptions local{.listen = *Address::parse("unix:/run/x"), .advertise = {}};
  EXPECT_EQ(found("10.1.2.3:8009", local), "");
}

TEST(DiscoveryPage, BothWildcardsOnOnePortAreOneWayEach) {
  const PortOptions both[] = {{.port_id = 1, .listen = *Address::parse("0.0.0.0:4420")},
                              {.port_id = 2, .listen = *Address::parse("[::]:4420")}};
  for (const auto& [local, id, expected] :
       {std::tuple("10.1.2.3:4420", 1, "10.1.2.3 4420"), {"[::1]:4420", 2, "::1 4420"}}) {
    const std::vector<DiscoveryEntry> entries = entries_of(discovery_page(facts_at(local, both)));
    ASSERT_EQ(entries.size(), 2u) << local;
    EXPECT_EQ(entries[0].port_id, id);
    EXPECT_EQ(entries[1].port_id, id);
    EXPECT_EQ(where(entries[1]), expected);
  }
}

TEST(DiscoveryPage, APortTellsOnlyOfWhatItServes) {
  const PortOptions ports[] = {
      {.port_id = 1, .listen = *Address::parse("192.0.2.1:1"), .subsystems = {"nqn.b"}},
      {.port_id = 2, .listen = *Address::parse("192.0.2.1:2"), .subsystems = {"nqn.a"}}};
  const std::vector<DiscoveryEntry> entries =
      entries_of(discovery_page(facts_at("192.0.2.1:1", ports)));
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(where(entries[1]), "192.0.2.1 2");
}

class Discovery : public RegistryTest {};
INSTANTIATE_TEST_SUITE_P(Cores, Discovery, ::testing::Values(1, 3));

SubsystemOptions named(const char* nqn) {
  SubsystemOptions options;
  options.nqn = nqn;
  return options;
}

// The names a host is told of, its own entry left out, in order.
Task<std::string> names(TestHost& host) {
  const std::vector<std::byte> page = co_await host.log({.page = LogPage::kDiscovery}, 8192);
  EXPECT_TRUE(host.last.ok());
  std::string all;
  for (const DiscoveryEntry& entry : entries_of(page)) {
    if (entry.subsystem != SubsystemType::kNvm) continue;
    const std::string nqn(entry.subsystem_nqn.get().value_or("?"));
    all += nqn.substr(nqn.rfind(':') + 1);
  }
  co_return all;
}

SIM_TEST_P(Discovery, AHostSeesWhatItMayConnectTo) {
  registry.add_port({.port_id = 1, .listen = Address::loopback(4420), .advertise = {}});
  EXPECT_TRUE(registry.add_subsystem(named("nqn.2026-11.io.cairn:a")));
  SubsystemOptions closed = named("nqn.2026-11.io.cairn:b");
  closed.allow_any_host = false;
  closed.hosts = {"nqn.2014-08.org.nvmexpress:uuid:2"};
  EXPECT_TRUE(registry.add_subsystem(closed));
  TestHost one(registry, 1);
  TestHost two(registry, 2);
  for (TestHost* host : {&one, &two}) {
    host->data.subsystem_nqn.set(kDiscoveryNqn);
    co_await host->arrive();
  }
  std::string seen = co_await names(one);
  EXPECT_EQ(seen, "a");
  seen = co_await names(two);
  EXPECT_EQ(seen, "ab");
  co_await one.leave_all();
  co_await two.leave_all();
}

SIM_TEST_P(Discovery, ChangesAreToldToPersistentControllers) {
  registry.add_port({.port_id = 1, .listen = Address::loopback(4420), .advertise = {}});
  TestHost host(registry);
  host.data.subsystem_nqn.set(kDiscoveryNqn);
  host.connect.keep_alive_ms = 30'000;
  co_await host.arrive();
  const Sqe ask = Sqe::make(AdminOpcode::kAsynchronousEventRequest);
  Task<Cqe> event = host.admin(ask);
  const std::vector<std::byte> before = co_await host.log({.page = LogPage::kDiscovery}, 1024);
  EXPECT_TRUE(registry.add_subsystem(named("nqn.2026-11.io.cairn:a")));
  Cqe cqe = co_await event;
  EXPECT_EQ(cqe.dw0, 0x0070'f002u);
  const std::vector<std::byte> after = co_await host.log({.page = LogPage::kDiscovery}, 1024);
  EXPECT_GT(load<DiscoveryHeader>(after).generation, load<DiscoveryHeader>(before).generation);
  // One that this host may not see does not concern it.
  event = host.admin(ask);
  SubsystemOptions closed = named("nqn.2026-11.io.cairn:b");
  closed.allow_any_host = false;
  EXPECT_TRUE(registry.add_subsystem(closed));
  co_await let_pass(env, 1_ms);
  EXPECT_FALSE(event.is_done());
  EXPECT_TRUE(registry.set_hosts(closed.nqn, true, {}));
  cqe = co_await event;
  std::string seen = co_await names(host);
  EXPECT_EQ(seen, "ab");
  event = host.admin(ask);
  EXPECT_TRUE(registry.set_hosts(closed.nqn, false, {}));
  cqe = co_await event;
  seen = co_await names(host);
  EXPECT_EQ(seen, "a");
  event = host.admin(ask);
  const Result<void> removed = co_await registry.remove_subsystem("nqn.2026-11.io.cairn:a");
  EXPECT_TRUE(removed);
  cqe = co_await event;
  seen = co_await names(host);
  EXPECT_EQ(seen, "");
  co_await host.leave_all();
}

SIM_TEST_P(Discovery, ADiscoveryControllerServesOnlyThat) {
  TestHost host(registry);
  host.data.subsystem_nqn.set(kDiscoveryNqn);
  co_await host.arrive();
  const auto page = co_await host.identify<IdentifyController>(Cns::kController);
  EXPECT_EQ(page.controller_type, ControllerType::kDiscovery);
  co_await host.identify<IdentifyController>(Cns::kActiveNamespaces);
  EXPECT_EQ(host.last.code(), StatusCode::kInvalidField);
  co_await host.log({.page = LogPage::kHealth}, 512);
  EXPECT_EQ(host.last.code(), StatusCode::kInvalidLogPage);
  Cqe cqe = co_await host.set_feature(Feature::kNumberOfQueues, 0);
  EXPECT_EQ(cqe.get_status(), StatusCode::kInvalidField);
  cqe = co_await host.get_feature(Feature::kReservationNoticeMask);
  EXPECT_EQ(cqe.get_status(), StatusCode::kInvalidField);
  const ConnectReply reply = co_await host.connect_queue(1);
  EXPECT_EQ(reply.status, final_status(StatusCode::kConnectInvalidParameters));
  co_await host.leave_all();
}

}  // namespace
}  // namespace cairn::nvme
