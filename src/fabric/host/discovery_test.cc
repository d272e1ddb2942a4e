// SPDX-License-Identifier: Apache-2.0
#include "fabric/host/discovery.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "base/rng.h"

namespace cairn::fabric {
namespace {

nvme::DiscoveryEntry make_entry(const char* address, const char* service) {
  nvme::DiscoveryEntry entry;
  entry.subsystem_nqn.set("nqn.2026-11.io.cairn:a");
  entry.address.set_padded(address);
  entry.service.set_padded(service);
  return entry;
}

std::vector<std::byte> make_page(const std::vector<nvme::DiscoveryEntry>& entries) {
  std::vector<std::byte> page((entries.size() + 1) * sizeof(nvme::DiscoveryEntry));
  store(page, nvme::DiscoveryHeader{.generation = 3, .records = entries.size()});
  for (size_t i = 0; i < entries.size(); ++i) {
    store(MutableBytes(page).subspan((i + 1) * sizeof(nvme::DiscoveryEntry)), entries[i]);
  }
  return page;
}

TEST(DiscoveryLog, ReadsRecords) {
  nvme::DiscoveryEntry ip6 = make_entry("fd00::7", "4421");
  ip6.family = nvme::AddressFamily::kIp6;
  nvme::DiscoveryEntry rdma = make_entry("10.0.0.3", "4420");
  rdma.transport = nvme::TransportType::kRdma;
  const auto log = parse_discovery_log(make_page({make_entry("10.0.0.1", "4420"), ip6, rdma}));
  ASSERT_TRUE(log.has_value());
  EXPECT_EQ(log->generation, 3u);
  ASSERT_EQ(log->records.size(), 3u);
  EXPECT_EQ(log->records[0].nqn, "nqn.2026-11.io.cairn:a");
  EXPECT_EQ(log->records[0].tcp_address()->text(), "10.0.0.1:4420");
  EXPECT_EQ(log->records[1].tcp_address()->text(), "[fd00::7]:4421");
  EXPECT_FALSE(log->records[2].tcp_address().has_value());
}

TEST(DiscoveryLog, AddressesThatAreNoneAreNotUsed) {
  for (const char* address : {"", "box1", "10.0.0.1:5", "unix:/x", "fd00::7", "10.0.0.1]"}) {
    const auto log = parse_discovery_log(make_page({make_entry(address, "4420")}));
    EXPECT_FALSE(log->records[0].tcp_address().has_value()) << address;
  }
  for (const char* service : {"", "0", "65536", "http", "4420x"}) {
    const auto log = parse_discovery_log(make_page({make_entry("10.0.0.1", service)}));
    EXPECT_FALSE(log->records[0].tcp_address().has_value()) << service;
  }
}

TEST(DiscoveryLog, HostileLogsAreRefused) {
  const std::vector<std::byte> page = make_page({make_entry("10.0.0.1", "4420")});
  for (size_t size = 0; size < page.size(); size += 7) {
    EXPECT_FALSE(parse_discovery_log(Bytes(page).first(size)).has_value());
  }
  std::vector<std::byte> many = page;
  store(many, nvme::DiscoveryHeader{.generation = 3, .records = UINT64_MAX});
  EXPECT_TRUE(parse_discovery_log(many).error() == Errc::kLimit);
  store(many, nvme::DiscoveryHeader{.generation = 3, .records = 1, .record_format = 1});
  EXPECT_TRUE(parse_discovery_log(many).error() == Errc::kInvalid);
  Rng rng(4);
  for (int i = 0; i < 1000; ++i) {
    std::vector<std::byte> noise = page;
    rng.fill(MutableBytes(noise).subspan(1024));
    const auto log = parse_discovery_log(noise);
    ASSERT_TRUE(log.has_value());
    log->records[0].tcp_address();
  }
}

}  // namespace
}  // namespace cairn::fabric
