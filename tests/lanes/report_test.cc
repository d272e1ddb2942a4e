// SPDX-License-Identifier: Apache-2.0
// What host and target tell of their lanes, in every world.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "env/call.h"
#include "fabric/host/remote_drive.h"
#include "fabric/host/uri.h"
#include "task/when_all.h"
#include "testing/target/suite.h"

namespace cairn::target_tests {
namespace {

using fabric::HostLane;
using fabric::LaneKey;
using fabric::LaneTotals;
using fabric::RemoteDrive;
using fabric::TargetReport;

WORLD_TEST_SUITE(LaneReport);

constexpr size_t kDepth = 16;
constexpr uint64_t kRounds = 20;

Task<void> read_some(RemoteDrive& drive, std::vector<std::byte>& memory, size_t index) {
  const MutableBytes block = MutableBytes(memory).subspan(index * kBlock, kBlock);
  for (uint64_t i = 0; i < kRounds; ++i) {
    const Result<void> got = co_await drive.read(Lba(index), block);
    EXPECT_TRUE(got.has_value());
  }
}

Task<std::unique_ptr<RemoteDrive>> open_and_read(env::Env& env, Box& box) {
  const fabric::Uri uri{.paths = {box.address},
                        .nqn = kNqn,
                        .nsid = 1,
                        .options = {.host_nqn = "nqn.2026-11.io.cairn:host", .depth = kDepth}};
  Result<std::unique_ptr<RemoteDrive>> opened = co_await RemoteDrive::open(env, uri);
  std::unique_ptr<RemoteDrive> drive = must(std::move(opened));
  std::vector<std::byte> memory(kDepth * kBlock);
  std::vector<Task<void>> workers;
  for (size_t i = 0; i < kDepth; ++i) workers.push_back(read_some(*drive, memory, i));
  co_await task::when_all(std::move(workers));
  co_return drive;
}

LaneTotals totals_of(const TargetReport& report, bool admin, const std::string& nqn = kNqn) {
  const auto found = report.totals.find(LaneKey{.listener = 0, .nqn = nqn, .admin = admin});
  return found == report.totals.end() ? LaneTotals() : found->second;
}

// Every message and byte that one side has sent, the other has received.
WORLD_TEST(LaneReport, BothSidesTellTheSame) {
  Box box(env);
  co_await box.open(scene.any_port());
  const std::unique_ptr<RemoteDrive> drive = co_await open_and_read(env, box);
  const std::vector<HostLane> mine = drive->paths()[0]->session().lanes();
  EXPECT_EQ(mine.size(), 2u);
  const HostLane& io = mine.back();
  EXPECT_EQ(io.queue_id, 1u);
  EXPECT_EQ(io.depth, kDepth);
  EXPECT_EQ(io.in_flight, 0u);
  EXPECT_EQ(io.address, box.address);
  const TargetReport report = co_await box.target().report(100);
  EXPECT_EQ(report.open, 2u);
  EXPECT_EQ(report.lanes.size(), 2u);
  EXPECT_EQ(report.listeners, std::vector{box.address});
  const fabric::TargetLane& theirs = report.lanes.front();  // the busiest
  EXPECT_EQ(theirs.queue_id, 1u);
  EXPECT_EQ(theirs.key.nqn, kNqn);
  const uint64_t commands = kDepth * kRounds + 1;  // and Connect
  EXPECT_EQ(theirs.work.commands, commands);
  EXPECT_EQ(theirs.work.failures, 0u);
  EXPECT_EQ(io.traffic.out.messages, commands);
  EXPECT_EQ(io.traffic.in.pdus, theirs.work.traffic.out.messages + 1);  // and ICResp
  EXPECT_EQ(theirs.work.traffic.in.pdus, commands + 1);                 // and ICReq
  EXPECT_EQ(theirs.work.traffic.in.bytes, io.traffic.out.bytes + sizeof(nvme::IcReq));
  EXPECT_LE(theirs.work.traffic.in.reads, theirs.work.traffic.in.pdus);
  EXPECT_EQ(totals_of(report, false).work.commands, commands);
  EXPECT_EQ(totals_of(report, true).open, 1u);
  co_await drive->close();
  co_await box.close();
}

WORLD_TEST(LaneReport, ConnectionsThatEndedStayInTheTotals) {
  Box box(env);
  co_await box.open(scene.any_port());
  constexpr uint64_t kHosts = 5;
  for (uint64_t i = 0; i < kHosts; ++i) {
    const std::unique_ptr<RemoteDrive> drive = co_await open_and_read(env, box);
    co_await drive->close();
  }
  // A stranger that never gets so far as to Connect.
  Result<env::Connection> stranger = co_await env.connect(box.address);
  std::unique_ptr<env::Stream> stream = env.open(must(std::move(stranger)));
  stream->reset();
  stream.reset();
  co_await box.target().drain(env.now() + 10_s);
  const TargetReport report = co_await box.target().report(100);
  EXPECT_TRUE(report.lanes.empty());
  const LaneTotals io = totals_of(report, false);
  EXPECT_EQ(io.opened, kHosts);
  EXPECT_EQ(io.open, 0u);
  EXPECT_EQ(io.work.commands, kHosts * (kDepth * kRounds + 1));
  EXPECT_EQ(totals_of(report, true).opened, kHosts);
  EXPECT_LE(totals_of(report, false, "").opened, 1u);
  EXPECT_EQ(totals_of(report, false, "").open, 0u);
  co_await box.close();
}

// Every core has lanes of its own and uses them while the others use theirs; under ThreadSanitizer
// this shows that lanes share nothing.
WORLD_TEST(LaneReport, CoresUseTheirLanesAtOnce) {
  Box box(env);
  co_await box.open(scene.any_port());
  const auto use = [](env::Env& there, Box& its) -> Task<void> {
    const std::unique_ptr<RemoteDrive> drive = co_await open_and_read(there, its);
    EXPECT_EQ(drive->lanes()[1].core, there.core());
    EXPECT_EQ(drive->lanes()[1].traffic.out.messages, kDepth * kRounds + 1);
    co_await drive->close();
  };
  std::vector<Task<void>> cores;
  for (uint32_t i = 0; i < env.core_count(); ++i) {
    cores.push_back(env::call_on(env, CoreId(i), [&](env::Env& there) { return use(there, box); }));
  }
  co_await task::when_all(std::move(cores));
  const TargetReport report = co_await box.target().report(100);
  EXPECT_EQ(totals_of(report, false).opened, env.core_count());
  co_await box.close();
}

WORLD_TEST(LaneReport, OfManyConnectionsTheBusiestAreNamed) {
  Box box(env);
  co_await box.open(scene.any_port());
  std::vector<std::unique_ptr<RawHost>> hosts;
  for (int i = 0; i < 40; ++i) {
    hosts.push_back(std::make_unique<RawHost>(env));
    co_await hosts.back()->arrive(box.address);
  }
  const std::unique_ptr<RemoteDrive> drive = co_await open_and_read(env, box);
  const TargetReport report = co_await box.target().report(3);
  EXPECT_EQ(report.lanes.size(), 3u);
  EXPECT_EQ(report.lanes[0].queue_id, 1u);
  EXPECT_EQ(totals_of(report, true).open, 41u);
  co_await drive->close();
  for (const auto& host : hosts) host->stream.reset();
  co_await box.close();
}

}  // namespace
}  // namespace cairn::target_tests
