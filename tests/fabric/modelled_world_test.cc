// SPDX-License-Identifier: Apache-2.0
// Box and hosts, as they are in production, over a modelled Clos network and on a modelled SSD.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "fabric/host/remote_drive.h"
#include "fabric/host/uri.h"
#include "fabric/serve_drive.h"
#include "model/net/topology.h"
#include "world/sim/cluster.h"
#include "world/sim/model/flash_disk.h"
#include "world/sim/model/packet_network.h"

namespace cairn::fabric_tests {
namespace {

using task::Task;

const std::string kNqn = "nqn.2026-11.io.cairn:modelled";
constexpr size_t kSize = 65536;
constexpr uint64_t kRounds = 40;

struct User {
  uint64_t number = 0;
  Duration writing;
  Duration reading;
  bool done = false;
};

// Writes a part of the drive that is its own, and reads it back.
Task<void> use(env::Env& env, env::Address box, User& user) {
  fabric::HostOptions options;
  options.host_nqn = "nqn.2026-11.io.cairn:host" + std::to_string(user.number);
  const fabric::Uri uri{.paths = {box}, .nqn = kNqn, .nsid = 1, .options = options};
  auto opened = co_await fabric::RemoteDrive::open(env, uri);
  EXPECT_TRUE(opened.has_value());
  if (!opened) co_return;
  fabric::RemoteDrive& drive = **opened;
  for (uint64_t round = 0; round < kRounds; ++round) {
    const uint64_t blocks = kSize / drive.geometry().block_size;
    const Lba lba((user.number * 16 + round % 16) * blocks);
    const std::vector<std::byte> data(kSize, static_cast<std::byte>(user.number * 50 + round));
    std::vector<std::byte> back(kSize);
    const Time start = env.now();
    const Result<void> written = co_await drive.write(lba, data);
    const Time middle = env.now();
    const Result<void> read = co_await drive.read(lba, back);
    EXPECT_TRUE(written.has_value() && read.has_value() && back == data);
    user.writing = user.writing + (middle - start);
    user.reading = user.reading + (env.now() - middle);
  }
  co_await drive.close();
  user.done = true;
}

struct Outcome {
  Duration writing;  // all rounds, of the slowest
  Duration reading;
  uint64_t hash = 0;
};

Outcome run(uint64_t hosts) {
  flash::Parameters ssd;
  ssd.blocks_per_plane = 128;
  ssd.over_provisioning = 0.2;
  sim::ClusterOptions options;
  options.network.model = sim::packet_network(net::clos({}), {});
  options.disk.model = sim::flash_disks(ssd);
  sim::Cluster cluster(options);
  const env::Address at = cluster.node("box", {.cores = 2}).address(4420);
  cluster.node("box").start(
      [at](env::Env& env) { return serve_drive(env, at, kNqn, "file:disk,size=16M"); });
  cluster.run_for(5_ms);
  std::vector<User> users(hosts);
  for (uint64_t i = 0; i < hosts; ++i) {
    users[i].number = i;
    cluster.node("host" + std::to_string(i)).start([at, &user = users[i]](env::Env& env) {
      return use(env, at, user);
    });
  }
  const auto all_done = [&] {
    return std::ranges::all_of(users, [](const User& user) { return user.done; });
  };
  EXPECT_TRUE(cluster.run_until(all_done, 100_s)) << cluster.report();
  for (sim::Node* node : cluster.nodes()) node->stop();
  EXPECT_TRUE(cluster.run_until_idle(100_s));
  Outcome outcome{.hash = cluster.trace_hash()};
  for (const User& user : users) {
    outcome.writing = std::max(outcome.writing, user.writing);
    outcome.reading = std::max(outcome.reading, user.reading);
  }
  return outcome;
}

TEST(ModelledWorld, ManyHostsAreInEachOthersWay) {
  const Outcome alone = run(1);
  const Outcome together = run(10);
  // 64 KiB alone takes 55 us on a link of 10 Gb/s; ten hosts share the one of the box.
  EXPECT_GT(alone.reading, static_cast<int64_t>(kRounds) * 55_us);
  // How much of that waiting is for reads depends on when each of them comes.
  EXPECT_GT(together.reading, alone.reading * 2);
  EXPECT_GT(together.writing, alone.writing * 3);
  EXPECT_GT(together.reading + together.writing, (alone.reading + alone.writing) * 5);
}

TEST(ModelledWorld, SameSeedSameRun) { EXPECT_EQ(run(3).hash, run(3).hash); }

}  // namespace
}  // namespace cairn::fabric_tests
