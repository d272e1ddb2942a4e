// SPDX-License-Identifier: Apache-2.0
// A box with one subsystem and a host that uses its drive, in the simulator: what the tests of keys
// share. Each says what keys they have, and what becomes of it.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fabric/host/remote_drive.h"
#include "fabric/host/uri.h"
#include "fabric/target/target.h"
#include "nvme/controller/registry.h"
#include "task/deadline.h"
#include "task/sync.h"
#include "world/sim/cluster.h"

namespace cairn::fabric_tests {

inline const std::string kBoxNqn = "nqn.2026-11.io.cairn:one";
inline const std::string kHostNqn = "nqn.2026-11.io.cairn:host";

class OneBox : public testing::Test {
 public:
  // Before the box listens, and after it was asked to stop.
  virtual void prepare_box(nvme::Registry& registry) = 0;
  virtual void note_totals(const nvme::Registry& registry) = 0;
  // Before the host connects.
  virtual void prepare_host() = 0;

  task::Task<void> serve(env::Env& env, env::Address at) {
    nvme::Registry registry(env);
    fabric::Target target(env, registry);
    nvme::SubsystemOptions subsystem;
    subsystem.nqn = kBoxNqn;
    EXPECT_TRUE(registry.add_subsystem(subsystem).has_value());
    nvme::NamespaceOptions space;
    space.drive = drive::Spec::parse("mem:size=1M,block=512").value();
    const Result<uint32_t> added = co_await registry.add_namespace(kBoxNqn, space);
    EXPECT_TRUE(added.has_value());
    registry.on_authentication(
        [this](const nvme::AuthenticationFailure& failure) { failures.push_back(failure); });
    prepare_box(registry);
    EXPECT_TRUE(target.listen(at, channel).has_value());
    registry.add_port({.listen = at, .tls = channel == fabric::Channel::kTls});
    task::Event never;
    const Result<void> stopped = co_await never.wait(env.stop_token());
    EXPECT_FALSE(stopped.has_value());
    note_totals(registry);
    co_await target.close();
    co_await registry.close();
  }

  // Opens the drive, writes and reads it for as long as the test says.
  virtual task::Task<void> use(env::Env& env, env::Address box) {
    const fabric::Uri uri{.paths = {box}, .nqn = kBoxNqn, .nsid = 1, .options = options};
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
  task::Task<void> work(env::Env& env, fabric::RemoteDrive& drive) {
    const Time until = env.now() + lasts;
    uint64_t round = 0;
    do {
      ++round;
      std::vector<std::byte> data(size);
      for (size_t i = 0; i < size; ++i) data[i] = static_cast<std::byte>(i * 31 + round);
      const Lba lba(round * 8 % 1000);
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
    if (options.host_nqn.empty()) options.host_nqn = kHostNqn;
    prepare_host();
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
    trace_hash = cluster.trace_hash();
    return outcome ? std::nullopt : std::optional(outcome.error());
  }

  fabric::Channel channel = fabric::Channel::kPlain;
  fabric::HostOptions options;
  sim::ClusterOptions world;
  Duration lasts = 1_ms;
  size_t size = 4096;          // of each write and read
  bool hangs_up = false;       // the box dies when it has found the host's proof wrong
  bool is_persistent = false;  // the host tries to open until it is denied

  std::vector<nvme::AuthenticationFailure> failures;
  Result<void> outcome;
  uint64_t sessions = 0;
  uint64_t trace_hash = 0;
  bool done = false;
};

}  // namespace cairn::fabric_tests
