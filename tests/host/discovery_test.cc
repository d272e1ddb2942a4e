// SPDX-License-Identifier: Apache-2.0
// Reading a discovery log from a target, also while it changes.
#include "fabric/host/discovery.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "host/fixture.h"
#include "testing/sim_test.h"

namespace cairn::host_tests {
namespace {

using fabric::DiscoveryLog;
using task::Task;

class Discovery : public HostTest {
 public:
  using Scene = HostScene<Discovery>;
  void run(Body<Discovery> body) { on_host(*this, body); }
  void fill(size_t count) {
    target.options.discovery.clear();
    for (size_t i = 0; i < count; ++i) {
      nvme::DiscoveryEntry entry;
      entry.subsystem_nqn.set("nqn.2026-11.io.cairn:" + std::to_string(i));
      entry.address.set_padded("10.0.0.1");
      entry.service.set_padded("4420");
      target.options.discovery.push_back(entry);
    }
  }
};

TEST_F(Discovery, ReadsTheLogInPieces) {
  fill(100);
  target.options.mdts = 1;
  run([](env::Env& env, Discovery& test) -> Task<void> {
    const Result<DiscoveryLog> log = co_await discover(env, test.address(), test.options, {});
    EXPECT_OK(log);
    EXPECT_EQ(log->records.size(), 100u);
    EXPECT_EQ(log->records[99].nqn, "nqn.2026-11.io.cairn:99");
  });
  EXPECT_EQ(target.last_connect.subsystem_nqn.get(), nvme::kDiscoveryNqn);
  EXPECT_EQ(target.last_command.keep_alive_ms.value(), 0u);
  EXPECT_EQ(target.io_connects, 0u);
  EXPECT_EQ(target.shutdowns, 1u);
}

TEST_F(Discovery, ReadsAgainWhatChangedMeanwhile) {
  fill(50);
  target.options.mdts = 1;
  int reads = 0;
  target.options.on_command = [&](FakeConnection& connection, const nvme::Sqe& sqe) {
    if (!connection.is_admin() || sqe.is_fabrics()) return Verdict::kServe;
    if (sqe.admin_opcode() == nvme::AdminOpcode::kGetLogPage && ++reads == 5) {
      fill(60);
      ++target.options.generation;
    }
    return Verdict::kServe;
  };
  run([](env::Env& env, Discovery& test) -> Task<void> {
    const Result<DiscoveryLog> log = co_await discover(env, test.address(), test.options, {});
    EXPECT_OK(log);
    EXPECT_EQ(log->generation, 2u);
    EXPECT_EQ(log->records.size(), 60u);
  });
}

TEST_F(Discovery, GivesUpOnALogThatNeverRests) {
  fill(3);
  target.options.on_command = [&](FakeConnection&, const nvme::Sqe&) {
    ++target.options.generation;
    return Verdict::kServe;
  };
  run([](env::Env& env, Discovery& test) -> Task<void> {
    const Result<DiscoveryLog> log = co_await discover(env, test.address(), test.options, {});
    EXPECT_TRUE(!log && log.error() == Errc::kLimit);
  });
}

SIM_TEST_F(Discovery, EmptyLogIsNoError) {
  const Result<DiscoveryLog> log = co_await discover(env, test.address(), test.options, {});
  EXPECT_OK(log);
  EXPECT_TRUE(log->records.empty());
}

}  // namespace
}  // namespace cairn::host_tests
