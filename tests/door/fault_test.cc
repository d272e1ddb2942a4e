// SPDX-License-Identifier: Apache-2.0
// NBD clients and a server where everything goes wrong, seed by seed. What was acknowledged and
// flushed, on whichever connection, is there after a power loss; nothing is read that was not
// written to its place or that was replaced; after healing everybody gets on.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "door/nbd/server.h"
#include "drive/source.h"
#include "task/deadline.h"
#include "task/sync.h"
#include "testing/door/nbd_client.h"
#include "testing/fabric/oracle.h"
#include "world/sim/cluster.h"
#include "world/sim/scenario/fault_plan.h"
#include "world/sim/scenario/scenario.h"

namespace cairn::door_tests {
namespace {

using door::nbd::Command;
using fabric_tests::kBlock;
using fabric_tests::Oracle;
using task::Task;

constexpr const char* kServer = "server";
constexpr const char* kDisk = "disk";
constexpr uint16_t kPort = 10809;
constexpr uint64_t kOwnBlocks = 100;  // of a client
constexpr size_t kClients = 3;
// Longer than faults hold back what a client has sent before its connection ended, and than the
// server may take with it.
constexpr Duration kAfterlife = 30_s;

Task<bool> pause_for(env::Env& env, Duration duration) {
  const Result<void> slept = co_await task::sleep_for(env, duration, env.stop_token());
  co_return slept.has_value();
}

class NbdWorkload final : public sim::Workload {
 public:
  NbdWorkload() : oracle_(kClients * kOwnBlocks), done_(kClients) {}

  void start(sim::Cluster& cluster) override {
    sim::Node& server = cluster.node(kServer, {.cores = 2});
    const env::Address at = server.address(kPort);
    server.start([this, at](env::Env& env) { return serve(env, at); });
    for (size_t i = 0; i < kClients; ++i) {
      cluster.node("client" + std::to_string(i)).start([this, at, i](env::Env& env) {
        return use(env, at, i);
      });
    }
  }
  uint64_t progress() const override { return std::ranges::min(done_); }
  std::string check(sim::Cluster&) override { return oracle_.wrong(); }

 private:
  Task<void> serve(env::Env& env, env::Address at) {
    oracle_.box_started();
    const drive::Spec spec{
        .kind = drive::Spec::Kind::kFile, .path = kDisk, .size = kClients * kOwnBlocks * kBlock};
    Result<std::unique_ptr<drive::Source>> source = drive::Source::make(env, spec);
    while (!source) {
      const bool goes_on = co_await pause_for(env, 10_ms);
      if (!goes_on) co_return;
      source = drive::Source::make(env, spec);
    }
    door::nbd::NbdOptions options;
    options.negotiation_timeout = options.stall_timeout = 5_s;
    door::nbd::NbdServer server(env, options);
    const Result<void> added =
        co_await server.add({.name = "a", .description = "", .source = source->get()});
    if (added && server.listen(at)) {
      task::Event never;
      const Result<void> stopped = co_await never.wait(env.stop_token());
      (void)stopped;
    }
    co_await server.close();
  }

  // One connection after the other, each until it fails.
  Task<void> use(env::Env& env, env::Address at, size_t index) {
    while (!env.stop_token().requested()) {
      NbdClient client(env, 4_s);
      const Result<Told> told = co_await client.arrive(at, "a", index % 2 == 0);
      bool going = told.has_value();
      while (going && !env.stop_token().requested()) {
        going = co_await step(env, client, index);
        if (going) ++done_[index];
      }
      const bool goes_on = co_await pause_for(env, 20_ms);
      if (!goes_on) co_return;
    }
  }
  // False: the connection is of no more use.
  Task<bool> step(env::Env& env, NbdClient& client, size_t index) {
    const uint64_t own = index * kOwnBlocks;
    const uint64_t count = 1 + env.rng().below(env.rng().bernoulli(0.1) ? kOwnBlocks : 4);
    const uint64_t lba = own + env.rng().below(kOwnBlocks - count + 1);
    const uint64_t choice = env.rng().below(10);
    if (choice == 0) {
      const Result<Answer> flushed = co_await client.call({.command = Command::kFlush});
      if (flushed && flushed->error == 0) oracle_.end_flush(own, kOwnBlocks);
      co_return flushed.has_value();
    }
    if (choice < 5) {
      const Oracle::Asked asked = oracle_.begin_read(lba, count);
      const Ask ask{Command::kRead, lba * kBlock, static_cast<uint32_t>(count * kBlock), 0};
      const Result<Answer> read = co_await client.call(ask);
      if (read && read->error == 0) oracle_.end_read(asked, read->data);
      co_return read.has_value();
    }
    const bool wrote = co_await write(env, client, lba, count);
    co_return wrote;
  }
  Task<bool> write(env::Env& env, NbdClient& client, uint64_t lba, uint64_t count) {
    const bool zeroes = env.rng().bernoulli(0.2);
    const bool durable = env.rng().bernoulli(0.3);
    const uint64_t value = zeroes ? 0 : oracle_.new_value();
    std::vector<std::byte> data(zeroes ? 0 : count * kBlock);
    for (uint64_t i = 0; i < count && !zeroes; ++i) {
      fabric_tests::fill_block(MutableBytes(data).subspan(i * kBlock, kBlock), value, lba + i);
    }
    const Ask ask{.command = zeroes ? Command::kWriteZeroes : Command::kWrite,
                  .offset = lba * kBlock,
                  .length = static_cast<uint32_t>(count * kBlock),
                  .flags = durable ? door::nbd::kFlagFua : uint16_t{0}};
    const Oracle::Asked asked = oracle_.begin_write(lba, count, value);
    const Result<Answer> wrote = co_await client.call(ask, data);
    if (!wrote) {
      client.hang_up();
      const bool slept = co_await pause_for(env, kAfterlife);
      if (!slept) co_return false;
    }
    oracle_.end_write(asked, wrote && wrote->error == 0, durable);
    co_return wrote.has_value();
  }

  Oracle oracle_;
  std::vector<uint64_t> done_;  // steps of each client
};

class NbdFaults : public testing::TestWithParam<uint64_t> {};

TEST_P(NbdFaults, LoseNothingThatWasPromised) {
  using Kind = sim::Fault::Kind;
  sim::Scenario scenario{.name = "nbd"};
  scenario.make = [] { return std::make_unique<NbdWorkload>(); };
  scenario.faults.nodes = {kServer};
  scenario.faults.peers = {kServer, "client0", "client1", "client2"};
  scenario.faults.disks = {{.node = kServer, .path = kDisk}};
  scenario.faults.kinds = {Kind::kCrash,          Kind::kCrash,          Kind::kKill,
                           Kind::kPause,          Kind::kClog,           Kind::kReset,
                           Kind::kReset,          Kind::kPartition,      Kind::kDiskStall,
                           Kind::kDiskReadErrors, Kind::kDiskWriteErrors};
  scenario.faults.count_max = 8;
  scenario.fault_phase = 6_s;
  scenario.healed_phase = 200_s;
  scenario.progress_healed = 50;
  scenario.seeds = 20;
  scenario.first_seed = GetParam();
  EXPECT_EQ(run_scenario(scenario), "");
}

INSTANTIATE_TEST_SUITE_P(Seeds, NbdFaults, testing::Values(1, 21),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace cairn::door_tests
