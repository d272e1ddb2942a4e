// SPDX-License-Identifier: Apache-2.0
// A flush that fails is told to whoever asked for it, and not tried again behind its back.
#include <gtest/gtest.h>

#include <memory>

#include "fabric/host/remote_drive.h"
#include "fabric/host/uri.h"
#include "fabric/serve_drive.h"
#include "task/deadline.h"
#include "world/sim/cluster.h"

namespace cairn::fabric_tests {
namespace {

using task::Task;

const std::string kFlushNqn = "nqn.2026-11.io.cairn:flush";

Task<void> flush_twice(env::Env& env, env::Address box, sim::Cluster& cluster, bool& done) {
  const Result<void> slept = co_await task::sleep_for(env, 1_ms);
  EXPECT_TRUE(slept.has_value());
  fabric::HostOptions options;
  options.host_nqn = "nqn.2026-11.io.cairn:host";
  const fabric::Uri uri{.paths = {box}, .nqn = kFlushNqn, .nsid = 1, .options = options};
  Result<std::unique_ptr<fabric::RemoteDrive>> opened =
      co_await fabric::RemoteDrive::open(env, uri);
  EXPECT_TRUE(opened.has_value());
  if (opened) {
    fabric::RemoteDrive& drive = **opened;
    cluster.node("box").disk("disk").fail_flushes();
    const uint64_t before = drive.counters().commands;
    const Result<void> failed = co_await drive.flush();
    EXPECT_TRUE(!failed && failed.error() == Errc::kIo);
    EXPECT_EQ(drive.counters().commands, before + 1);
    cluster.node("box").disk("disk").heal();
    const Result<void> flushed = co_await drive.flush();
    EXPECT_TRUE(flushed.has_value());
    co_await drive.close();
  }
  done = true;
}

TEST(FabricFlush, FailureIsFinal) {
  bool done = false;
  sim::Cluster cluster;
  const env::Address at = cluster.node("box").address(4420);
  cluster.node("box").start(
      [at](env::Env& env) { return serve_drive(env, at, kFlushNqn, "file:disk,size=1M"); });
  cluster.node("host").start(
      [&, at](env::Env& env) { return flush_twice(env, at, cluster, done); });
  EXPECT_TRUE(cluster.run_until([&] { return done; }, 100_s)) << cluster.report();
  for (sim::Node* node : cluster.nodes()) node->stop();
  EXPECT_TRUE(cluster.run_until_idle(100_s));
}

}  // namespace
}  // namespace cairn::fabric_tests
