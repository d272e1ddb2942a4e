// SPDX-License-Identifier: Apache-2.0
// A box between a host and the box that has the medium: what the latter loses is told to those who
// wrote it, once, and to nobody who came later.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "drive/shared_drive.h"
#include "fabric/host/remote_drive.h"
#include "fabric/host/uri.h"
#include "fabric/serve_drive.h"
#include "task/deadline.h"
#include "world/sim/cluster.h"

namespace cairn::fabric_tests {
namespace {

using task::Task;

const std::string kRelayNqn = "nqn.2026-11.io.cairn:relay";
constexpr uint16_t kPort = 4420;

Task<std::unique_ptr<fabric::RemoteDrive>> open_at(env::Env& env, env::Address at) {
  const fabric::Uri uri =
      fabric::Uri::parse(fmt::format("nvme-tcp://{}/{}?reconnect_delay_max=50ms&quiesce=10ms",
                                     at.text(), kRelayNqn))
          .value();
  Result<std::unique_ptr<fabric::RemoteDrive>> opened =
      co_await fabric::RemoteDrive::open(env, uri);
  EXPECT_TRUE(opened.has_value());
  co_return std::move(*opened);
}

// Has the drive of another box open, once, for all of its cores.
Task<void> relay(env::Env& env, env::Address behind, env::Address at) {
  std::unique_ptr<fabric::RemoteDrive> drive = co_await open_at(env, behind);
  drive::SharedDrive shared(env, std::move(drive));
  nvme::Registry registry(env);
  fabric::Target target(env, registry);
  nvme::SubsystemOptions subsystem;
  subsystem.nqn = kRelayNqn;
  EXPECT_TRUE(registry.add_subsystem(subsystem).has_value());
  nvme::NamespaceOptions space;
  space.source = &shared;
  const Result<uint32_t> added = co_await registry.add_namespace(kRelayNqn, space);
  EXPECT_TRUE(added.has_value());
  EXPECT_TRUE(target.listen(at).has_value());
  task::Event never;
  const Result<void> stopped = co_await never.wait(env.stop_token());
  EXPECT_FALSE(stopped.has_value());
  co_await target.close();
  co_await registry.close();
  co_await shared.close(env);
}

class RelayedLoss : public testing::Test {
 public:
  env::Address at() { return cluster.node("relay").address(kPort); }
  std::vector<std::byte> block = std::vector<std::byte>(4096, std::byte{7});
  bool has_written = false;
  bool may_go_on = false;

 protected:
  RelayedLoss() {
    cluster.node("relay", {.cores = 2});
    const env::Address behind = cluster.node("box").address(kPort);
    cluster.node("box").start([behind](env::Env& env) {
      return serve_drive(env, behind, kRelayNqn, "file:disk,size=1M");
    });
    cluster.run_for(1_ms);
    cluster.node("relay").start([this, behind](env::Env& env) { return relay(env, behind, at()); });
    cluster.run_for(10_ms);
  }
  ~RelayedLoss() override {
    for (sim::Node* node : cluster.nodes()) node->stop();
    EXPECT_TRUE(cluster.run_until_idle(100_s));
  }

  void start(const std::string& host, Task<void> (*program)(env::Env&, RelayedLoss&)) {
    cluster.node(host).start([this, program](env::Env& env) { return program(env, *this); });
  }
  void run(const std::string& host, Task<void> (*program)(env::Env&, RelayedLoss&)) {
    start(host, program);
    end_of(host);
  }
  void end_of(const std::string& host) {
    EXPECT_TRUE(cluster.run_until([&] { return !cluster.node(host).is_running(); }, 100_s))
        << cluster.report();
  }
  // Those lose power together, and come back in that order.
  void lose(const std::vector<std::string>& nodes = {"box"}) {
    for (const std::string& node : nodes) cluster.node(node).crash();
    cluster.run_for(1_ms);
    for (const std::string& node : nodes) {
      cluster.node(node).restart();
      cluster.run_for(10_ms);
    }
  }

  sim::Cluster cluster;  // ends before what its programs use
};

Task<void> write_and_leave(env::Env& env, RelayedLoss& test) {
  std::unique_ptr<fabric::RemoteDrive> drive = co_await open_at(env, test.at());
  const Result<void> written = co_await drive->write(Lba(0), test.block);
  EXPECT_TRUE(written.has_value());
  co_await drive->close();
}

Task<void> come_later(env::Env& env, RelayedLoss& test) {
  std::unique_ptr<fabric::RemoteDrive> drive = co_await open_at(env, test.at());
  const Result<void> read = co_await drive->read(Lba(0), test.block);
  EXPECT_TRUE(read.has_value());
  const Result<void> written = co_await drive->write(Lba(1), test.block);
  EXPECT_TRUE(written.has_value());
  const Result<void> flushed = co_await drive->flush();
  EXPECT_TRUE(flushed.has_value()) << flushed.error().text();
  co_await drive->close();
}

TEST_F(RelayedLoss, IsNotToldToWhoComesLater) {
  run("first", write_and_leave);
  lose();
  run("second", come_later);
}

Task<void> write_and_stay(env::Env& env, RelayedLoss& test) {
  std::unique_ptr<fabric::RemoteDrive> drive = co_await open_at(env, test.at());
  const Result<void> written = co_await drive->write(Lba(0), test.block);
  EXPECT_TRUE(written.has_value());
  test.has_written = true;
  while (!test.may_go_on) {
    const Result<void> slept = co_await task::sleep_for(env, 1_ms);
    EXPECT_TRUE(slept.has_value());
  }
  const Result<void> read = co_await drive->read(Lba(0), test.block);
  EXPECT_TRUE(read.has_value());
  const Result<void> told = co_await drive->flush();
  EXPECT_TRUE(!told && told.error() == Errc::kIo);
  const Result<void> flushed = co_await drive->flush();
  EXPECT_TRUE(flushed.has_value()) << flushed.error().text();
  co_await drive->close();
}

TEST_F(RelayedLoss, IsToldOnceToWhoWroteIt) {
  start("host", write_and_stay);
  EXPECT_TRUE(cluster.run_until([&] { return has_written; }, 100_s)) << cluster.report();
  lose();
  may_go_on = true;
  end_of("host");
}

// Nobody is left who saw the box before and after.
TEST_F(RelayedLoss, IsToldOnceToWhoWroteItWhenBothAreNew) {
  start("host", write_and_stay);
  EXPECT_TRUE(cluster.run_until([&] { return has_written; }, 100_s)) << cluster.report();
  lose({"box", "relay"});
  may_go_on = true;
  end_of("host");
}

Task<void> write_and_flush_later(env::Env& env, RelayedLoss& test) {
  std::unique_ptr<fabric::RemoteDrive> drive = co_await open_at(env, test.at());
  const Result<void> written = co_await drive->write(Lba(0), test.block);
  EXPECT_TRUE(written.has_value());
  test.has_written = true;
  while (!test.may_go_on) {
    const Result<void> slept = co_await task::sleep_for(env, 1_ms);
    EXPECT_TRUE(slept.has_value());
  }
  Result<void> flushed = co_await drive->flush();
  if (!flushed) {  // it may be told of a loss that was none, and writes again
    const Result<void> again = co_await drive->write(Lba(0), test.block);
    EXPECT_TRUE(again.has_value());
    flushed = co_await drive->flush();
  }
  EXPECT_TRUE(flushed.has_value()) << flushed.error().text();
  co_await drive->close();
}

Task<void> expect_the_block(env::Env& env, RelayedLoss& test) {
  std::unique_ptr<fabric::RemoteDrive> drive = co_await open_at(env, test.at());
  std::vector<std::byte> found(test.block.size());
  const Result<void> read = co_await drive->read(Lba(0), found);
  EXPECT_TRUE(read.has_value());
  EXPECT_EQ(found, test.block);
  co_await drive->close();
}

TEST_F(RelayedLoss, OfTheRelayAloneKeepsThePromiseOfAFlush) {
  start("host", write_and_flush_later);
  EXPECT_TRUE(cluster.run_until([&] { return has_written; }, 100_s)) << cluster.report();
  lose({"relay"});
  may_go_on = true;
  end_of("host");
  lose({"box", "relay"});
  run("reader", expect_the_block);
}

}  // namespace
}  // namespace cairn::fabric_tests
