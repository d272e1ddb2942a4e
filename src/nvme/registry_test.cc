// SPDX-License-Identifier: Apache-2.0
#include "nvme/registry.h"

#include <gtest/gtest.h>

#include "nvme/identify_controller_format.h"
#include "nvme/identify_namespace_format.h"
#include "nvme/registry_testing.h"
#include "task/deadline.h"

namespace cairn::nvme {
namespace {

using env::Env;
using task::Task;

class Connecting : public RegistryTest {
 public:
  static Task<void> all_queues(Env& env, Registry& registry) {
    co_await serve(registry);
    TestHost host(registry);
    host.connect.attributes = ConnectAttributes::kNoFlowControl;
    ConnectReply reply = co_await host.connect_queue(0);
    EXPECT_TRUE(reply.status.ok());
    EXPECT_EQ(reply.queue_entries, 32);
    EXPECT_FALSE(reply.flow_control);
    co_await host.enable();
    for (uint16_t id = 1; id <= 4; ++id) {
      const CoreId core(id % env.core_count());
      reply = co_await host.connect_queue(id, core);
      EXPECT_TRUE(reply.status.ok()) << text(reply.status, StatusContext::kFabrics);
      EXPECT_EQ(reply.queue_id, id);
      EXPECT_EQ(reply.host, host.data.host_id);
      EXPECT_NE(reply.namespaces, nullptr);
    }
    co_await host.leave_all();
  }
};
INSTANTIATE_TEST_SUITE_P(Cores, Connecting, ::testing::Values(1, 3));

TEST_P(Connecting, AdminQueueThenIoQueuesOnAnyCore) { run(&Connecting::all_queues); }

}  // namespace
}  // namespace cairn::nvme
