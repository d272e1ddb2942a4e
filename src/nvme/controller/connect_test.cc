// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "nvme/controller/registry_testing.h"

#include "testing/sim_test.h"

namespace cairn::nvme {
namespace {

using env::Env;
using task::Task;

class Connect : public RegistryTest {};
INSTANTIATE_TEST_SUITE_P(Cores, Connect, ::testing::Values(1, 3));

// Connects a queue, which must fail like this.
Task<ConnectReply> expect_refused(TestHost& host, uint16_t id, StatusCode code,
                                  bool do_not_retry = true) {
  const ConnectReply reply = co_await host.connect_queue(id);
  EXPECT_EQ(reply.status.code(), code) << text(reply.status, StatusContext::kFabrics);
  EXPECT_EQ(reply.status.do_not_retry(), do_not_retry);
  EXPECT_EQ(reply.controller, nullptr);
  co_return reply;
}
struct Wrong {
  uint16_t offset = 0;
  bool in_data = false;
  bool do_not_retry = true;
};
Task<void> expect_invalid(TestHost& host, uint16_t id, Wrong wrong) {
  const ConnectReply reply =
      co_await expect_refused(host, id, StatusCode::kConnectInvalidParameters, wrong.do_not_retry);
  const ConnectInvalid where = ConnectInvalid::decode(reply.dw0);
  EXPECT_EQ(where.offset, wrong.offset);
  EXPECT_EQ(where.in_data, wrong.in_data);
}

SIM_TEST_P(Connect, TakesAnAdminQueueAndIoQueuesOnAnyCore) {
  co_await serve(registry);
  TestHost host(registry);
  host.connect.attributes = ConnectAttributes::kNoFlowControl;
  ConnectReply reply = co_await host.connect_queue(0);
  EXPECT_TRUE(reply.status.ok());
  EXPECT_EQ(reply.queue_entries, 32);
  EXPECT_FALSE(reply.flow_control);
  EXPECT_EQ(reply.namespaces, nullptr);
  co_await host.enable();
  host.connect.attributes = 0;
  for (uint16_t id = 1; id <= 4; ++id) {
    reply = co_await host.connect_queue(id, CoreId(id % env.core_count()));
    EXPECT_TRUE(reply.status.ok()) << text(reply.status, StatusContext::kFabrics);
    EXPECT_EQ(reply.queue_id, id);
    EXPECT_TRUE(reply.flow_control);
    EXPECT_EQ(reply.host, host.data.host_id);
    EXPECT_NE(reply.namespaces, nullptr);
  }
  co_await host.leave_all();
}

SIM_TEST_P(Connect, SaysWhichFieldOfAnAdminQueueIsWrong) {
  co_await serve(registry);
  TestHost host(registry);
  host.connect.record_format = 1;
  co_await expect_refused(host, 0, StatusCode::kConnectIncompatibleFormat);
  host.connect.record_format = 0;
  host.connect.queue_size = 0;
  co_await expect_invalid(host, 0, {.offset = 44});
  host.connect.queue_size = 128;  // 129 entries
  co_await expect_invalid(host, 0, {.offset = 44});
  host.connect.queue_size = 127;
  host.data.controller_id = 1;
  co_await expect_invalid(host, 0, {.offset = 16, .in_data = true});
  host.data.controller_id = 0xfffe;
  co_await expect_invalid(host, 0, {.offset = 16, .in_data = true});
  host.data.controller_id = kAnyController;
  host.data.subsystem_nqn = {};
  co_await expect_invalid(host, 0, {.offset = 256, .in_data = true});
  host.data.subsystem_nqn.set("nqn.2026-11.io.cairn:other");
  co_await expect_invalid(host, 0, {.offset = 256, .in_data = true});
  host.data.subsystem_nqn.set(kTestNqn);
  std::ranges::fill(mutable_bytes_of(host.data.host_nqn), std::byte{'x'});
  co_await expect_invalid(host, 0, {.offset = 512, .in_data = true});
}

SIM_TEST_P(Connect, SaysWhichFieldOfAnIoQueueIsWrong) {
  co_await serve(registry);
  TestHost host(registry);
  co_await expect_invalid(host, 1, {.offset = 16, .in_data = true, .do_not_retry = false});
  ConnectReply reply = co_await host.connect_queue(0);
  EXPECT_TRUE(reply.status.ok());
  co_await expect_refused(host, 1, StatusCode::kCommandSequenceError, false);
  co_await host.enable();
  Cqe cqe = co_await host.set_feature(Feature::kNumberOfQueues, 0x0001'0001);
  EXPECT_EQ(cqe.dw0, 0x0001'0001u);
  co_await expect_invalid(host, 3, {.offset = 42});
  host.connect.queue_size = 0;
  co_await expect_invalid(host, 1, {.offset = 44});
  host.connect.queue_size = 31;
  host.data.controller_id = static_cast<uint16_t>(host.data.controller_id + 1);
  co_await expect_invalid(host, 1, {.offset = 16, .in_data = true, .do_not_retry = false});
  host.data.controller_id = static_cast<uint16_t>(reply.dw0);
  host.data.host_id[3] = 9;
  co_await expect_invalid(host, 1, {.offset = 0, .in_data = true});
  host.data.host_id[3] = 0;
  const NqnField name = host.data.host_nqn;
  host.data.host_nqn.set("nqn.2014-08.org.nvmexpress:uuid:other");
  co_await expect_invalid(host, 1, {.offset = 512, .in_data = true});
  host.data.host_nqn = name;
  reply = co_await host.connect_queue(1);
  EXPECT_TRUE(reply.status.ok());
  co_await expect_refused(host, 1, StatusCode::kCommandSequenceError);
  cqe = co_await host.set_feature(Feature::kNumberOfQueues, 0);
  EXPECT_EQ(cqe.get_status(), StatusCode::kCommandSequenceError);
  co_await host.leave_all();
}

SIM_TEST_P(Connect, OnlyHostsOnTheListMayConnectAndStay) {
  SubsystemOptions options;
  options.allow_any_host = false;
  options.hosts = {"nqn.2014-08.org.nvmexpress:uuid:1"};
  co_await serve(registry, options);
  TestHost first(registry, 1);
  TestHost second(registry, 2);
  std::vector<std::string> refused;
  registry.on_refused_host([&](const RefusedHost& host) { refused.push_back(host.host_nqn); });
  co_await expect_refused(second, 0, StatusCode::kConnectInvalidHost);
  EXPECT_EQ(refused, std::vector<std::string>{"nqn.2014-08.org.nvmexpress:uuid:2"});
  EXPECT_EQ(registry.refused_hosts(kTestNqn), 1u);
  registry.on_refused_host({});
  co_await first.arrive();
  EXPECT_TRUE(registry.set_hosts(kTestNqn, false, {"nqn.2014-08.org.nvmexpress:uuid:2"}));
  co_await second.arrive();
  co_await let_pass(env, 1_ms);
  EXPECT_EQ(first.links[0]->disconnected_why, "the host is not allowed any more");
  co_await first.leave_all();
  co_await expect_refused(first, 0, StatusCode::kConnectInvalidHost);
  EXPECT_EQ(registry.set_hosts("nqn.none", true, {}).error(), Errc::kNotFound);
  co_await second.leave_all();
}

// As spdk_nvme_perf does unless told otherwise.
SIM_TEST_P(Connect, AHostWithoutANameMayConnectWhereAnyHostMay) {
  co_await serve(registry);
  TestHost nameless(registry);
  nameless.data.host_nqn = {};
  co_await nameless.arrive();
  const ConnectReply queue = co_await nameless.connect_queue(1);
  EXPECT_TRUE(queue.status.ok()) << text(queue.status, StatusContext::kFabrics);
  TestHost named(registry);
  named.data.controller_id = nameless.data.controller_id;
  co_await expect_invalid(named, 2, {.offset = 512, .in_data = true});
  co_await nameless.leave_all();
  nameless.data.subsystem_nqn.set(kDiscoveryNqn);
  co_await nameless.arrive();
  co_await nameless.leave_all();

  nameless.data.subsystem_nqn.set(kTestNqn);
  std::vector<std::string> refused;
  registry.on_refused_host([&](const RefusedHost& host) { refused.push_back(host.host_nqn); });
  EXPECT_TRUE(registry.set_hosts(kTestNqn, false, {"nqn.2014-08.org.nvmexpress:uuid:1"}));
  co_await expect_refused(nameless, 0, StatusCode::kConnectInvalidHost);
  EXPECT_EQ(refused, std::vector<std::string>{""});
}

class Refusals {
 public:
  explicit Refusals(Registry& registry) {
    registry.on_refused_host([this](const RefusedHost& host) { told_.push_back(host); });
  }
  // The newest, once it is told; the next one counts from here.
  RefusedHost next() {
    EXPECT_EQ(told_.size(), 1u);
    RefusedHost last = told_.empty() ? RefusedHost{} : told_.back();
    told_.clear();
    return last;
  }
  void expect(std::string_view why) { EXPECT_EQ(std::string_view(next().why), why); }
  void expect_none() const { EXPECT_TRUE(told_.empty()); }

 private:
  std::vector<RefusedHost> told_;
};

Task<void> tell_of_admin_queues(Registry& registry, Refusals& refusals) {
  TestHost host(registry);
  const ConnectData sound = host.data;
  host.connect.record_format = 1;
  co_await host.connect_queue(0);
  refusals.expect("its Connect is of another format");
  host.connect.record_format = 0;
  host.data.subsystem_nqn = {};
  co_await host.connect_queue(0);
  refusals.expect("it names no subsystem");
  host.data = sound;
  std::ranges::fill(mutable_bytes_of(host.data.host_nqn), std::byte{'x'});
  co_await host.connect_queue(0);
  refusals.expect("its host NQN does not end");
  host.data = sound;
  host.data.subsystem_nqn.set("nqn.2026-11.io.cairn:other");
  registry.set_loading(true);
  co_await host.connect_queue(0);
  refusals.expect("drives are still being opened");
  registry.set_loading(false);
  co_await host.connect_queue(0);
  const RefusedHost stranger = refusals.next();
  EXPECT_EQ(stranger.nqn, "nqn.2026-11.io.cairn:other");
  EXPECT_EQ(stranger.host_nqn, "nqn.2014-08.org.nvmexpress:uuid:1");
  EXPECT_EQ(std::string_view(stranger.why), "no such subsystem is served here");
  host.data = sound;
  host.data.controller_id = 1;
  co_await host.connect_queue(0);
  refusals.expect("it asks for a certain controller");
  host.data = sound;
  host.connect.queue_size = 0;
  co_await host.connect_queue(0);
  refusals.expect("it asks for a queue of a size that there is not");
  EXPECT_EQ(registry.refused_hosts(kTestNqn), 0u) << "these are not about the list";
}

Task<void> tell_of_io_queues(Registry& registry, Refusals& refusals) {
  TestHost host(registry);
  co_await host.connect_queue(1);
  refusals.expect("its controller has ended");
  const ConnectReply reply = co_await host.connect_queue(0);
  EXPECT_TRUE(reply.status.ok());
  co_await host.connect_queue(1);
  refusals.expect("its controller is not enabled");
  co_await host.enable();
  const Cqe granted = co_await host.set_feature(Feature::kNumberOfQueues, 0x0001'0001);
  EXPECT_TRUE(granted.get_status().ok());
  co_await host.connect_queue(3);
  refusals.expect("it asks for a queue that it may not have");
  host.connect.queue_size = 0;
  co_await host.connect_queue(1);
  refusals.expect("it asks for a queue of a size that there is not");
  host.connect.queue_size = 31;
  host.data.host_id[3] = 9;
  co_await host.connect_queue(1);
  refusals.expect("it asks for a queue of another host's controller");
  host.data.host_id[3] = 0;
  const ConnectReply queue = co_await host.connect_queue(1);
  EXPECT_TRUE(queue.status.ok());
  refusals.expect_none();
  co_await expect_refused(host, 1, StatusCode::kCommandSequenceError);
  refusals.expect("it has this queue already");
  TestHost second(registry, 2);
  co_await second.connect_queue(0);
  refusals.expect("the subsystem has as many controllers as it may have");
  co_await host.leave_all();
}

SIM_TEST_P(Connect, EveryRefusalIsTold) {
  SubsystemOptions options;
  options.controllers_max = 1;
  co_await serve(registry, options);
  Refusals refusals(registry);
  co_await tell_of_admin_queues(registry, refusals);
  co_await tell_of_io_queues(registry, refusals);
  TestHost other(registry, 2);
  EXPECT_TRUE(registry.set_hosts(kTestNqn, false, {"nqn.2014-08.org.nvmexpress:uuid:1"}));
  co_await other.connect_queue(0);
  refusals.expect("it is not on the list of hosts");
  EXPECT_EQ(registry.refused_hosts(kTestNqn), 1u);
  registry.on_refused_host({});
}

SIM_TEST_P(Connect, UnknownSubsystemMayBeTriedAgainWhileLoading) {
  registry.set_loading(true);
  TestHost host(registry);
  co_await expect_refused(host, 0, StatusCode::kConnectControllerBusy, false);
  co_await serve(registry);
  registry.set_loading(false);
  co_await host.arrive();
  co_await host.leave_all();
}

SIM_TEST_P(Connect, ControllerIdsAreUniqueAndNotReusedAtOnce) {
  SubsystemOptions options;
  options.controllers_max = 3;
  options.controller_id_min = 10;
  options.controller_id_max = 13;
  co_await serve(registry, options);
  TestHost a(registry, 1);
  TestHost b(registry, 1);
  TestHost c(registry, 2);
  TestHost d(registry, 3);
  for (TestHost* host : {&a, &b, &c}) co_await host->arrive();
  EXPECT_EQ(a.data.controller_id, 10);
  EXPECT_EQ(b.data.controller_id, 11);
  EXPECT_EQ(c.data.controller_id, 12);
  co_await expect_refused(d, 0, StatusCode::kConnectControllerBusy, false);
  co_await b.leave_all();
  co_await d.arrive();
  EXPECT_EQ(d.data.controller_id, 13) << "not the one that has just ended";
  co_await d.leave_all();
  co_await d.arrive();
  EXPECT_EQ(d.data.controller_id, 11);
  for (TestHost* host : {&a, &c, &d}) co_await host->leave_all();
}

SIM_TEST_P(Connect, TheAdminQueueTakesTheOthersAlong) {
  co_await serve(registry);
  TestHost host(registry);
  co_await host.arrive();
  for (uint16_t id = 1; id <= 3; ++id) {
    const ConnectReply reply = co_await host.connect_queue(id, CoreId(id % env.core_count()));
    EXPECT_TRUE(reply.status.ok());
  }
  co_await host.leave(2);
  EXPECT_EQ(host.links[1]->disconnected_why, "");
  co_await host.leave(0);
  co_await let_pass(env, 1_ms);
  EXPECT_EQ(host.links[1]->disconnected_why, "the admin queue is gone");
  EXPECT_EQ(host.links[3]->disconnected_why, "the admin queue is gone");
  host.data.controller_id = 1;
  co_await expect_invalid(host, 2, {.offset = 16, .in_data = true, .do_not_retry = false});
  host.links[2] = nullptr;
  co_await host.leave_all();
}

SIM_TEST_P(Connect, ASecondConnectOnAQueueIsOutOfSequence) {
  co_await serve(registry);
  TestHost host(registry);
  co_await host.arrive();
  const Cqe cqe = co_await host.admin(to_sqe(ConnectCommand{}));
  EXPECT_EQ(cqe.get_status(), StatusCode::kCommandSequenceError);
  co_await host.leave_all();
}

SIM_TEST_P(Connect, DisconnectIsForIoQueuesWhoseHostSaidSo) {
  co_await serve(registry);
  TestHost host(registry);
  co_await host.arrive();
  host.connect.attributes = ConnectAttributes::kDeleteIoQueues;
  ConnectReply reply = co_await host.connect_queue(1);
  EXPECT_TRUE(reply.status.ok());
  host.connect.attributes = 0;
  reply = co_await host.connect_queue(2);
  EXPECT_TRUE(reply.status.ok());
  const Sqe sqe = to_sqe(DisconnectCommand{});
  Cqe cqe = co_await registry.admin(*host.controller, sqe, {}, {}, 1);
  EXPECT_TRUE(cqe.get_status().ok());
  cqe = co_await registry.admin(*host.controller, sqe, {}, {}, 2);
  EXPECT_EQ(cqe.get_status(), StatusCode::kInvalidOpcode);
  cqe = co_await registry.admin(*host.controller, sqe, {}, {});
  EXPECT_EQ(cqe.get_status(), StatusCode::kDisconnectInvalidQueueType);
  co_await host.leave_all();
}

SIM_TEST_P(Connect, RemovingASubsystemWaitsForItsHostsToLeave) {
  co_await serve(registry);
  TestHost host(registry);
  co_await host.arrive();
  Task<Result<void>> removal = registry.remove_subsystem(kTestNqn);
  co_await let_pass(env, 1_ms);
  EXPECT_EQ(host.links[0]->disconnected_why, "the subsystem was removed");
  EXPECT_FALSE(removal.is_done());
  co_await host.leave_all();
  const Result<void> removed = co_await removal;
  EXPECT_TRUE(removed);
  co_await expect_invalid(host, 0, {.offset = 256, .in_data = true});
  const Result<void> again = co_await registry.remove_subsystem(kTestNqn);
  EXPECT_EQ(again.error(), Errc::kNotFound);
}

}  // namespace
}  // namespace cairn::nvme
