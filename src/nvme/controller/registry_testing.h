// SPDX-License-Identifier: Apache-2.0
// Hosts and queues without a transport, for tests that drive a Registry directly.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "env/call.h"
#include "nvme/controller/registry.h"
#include "nvme/format/fabrics_format.h"
#include "nvme/format/feature_format.h"
#include "nvme/format/identify_format.h"
#include "nvme/format/log_format.h"
#include "nvme/format/property_format.h"
#include "task/deadline.h"
#include "world/sim/cluster.h"

namespace cairn::nvme {

inline const std::string kTestNqn = "nqn.2026-11.io.cairn:test";

// A queue whose transport does what the test says.
struct TestLink final : QueueLink {
  void disconnect(const char* why) override { disconnected_why = why; }
  bool abort(uint16_t cid) override {
    aborted.push_back(cid);
    return cid == abortable;
  }
  bool take_traffic() override { return std::exchange(traffic, false); }
  void set_authenticated(bool is_so) override { authenticated = is_so; }

  bool authenticated = false;
  std::string disconnected_why;
  std::vector<uint16_t> aborted;
  uint16_t abortable = 0xffff;
  bool traffic = false;
};

// One host's association: its admin queue, and I/O queues as the test adds them.
class TestHost {
 public:
  explicit TestHost(Registry& registry, uint8_t number = 1) : registry_(registry) {
    data.host_id[0] = number;
    data.host_nqn.set("nqn.2014-08.org.nvmexpress:uuid:" + std::to_string(number));
    data.subsystem_nqn.set(kTestNqn);
    connect.queue_size = 31;
  }

  ConnectCommand connect;
  ConnectData data;
  env::Address local = env::Address::loopback(4420);
  std::optional<TlsIdentity> tls;
  Controller* controller = nullptr;
  std::vector<std::unique_ptr<TestLink>> links;  // by queue, the admin queue's first

  // Connects a queue on a core; keeps the controller when it succeeds.
  task::Task<ConnectReply> connect_queue(uint16_t id, CoreId core = CoreId(0)) {
    connect.queue_id = id;
    ConnectRequest request;
    request.sqe = to_sqe(connect);
    request.data = data;
    request.local = local;
    request.core = core;
    request.tls = tls ? &*tls : nullptr;
    if (links.size() <= id) links.resize(id + 1u);
    if (links[id] == nullptr) links[id] = std::make_unique<TestLink>();
    request.link = links[id].get();
    ConnectReply reply = co_await registry_.connect(request);
    if (reply.status.ok()) {
      controller = reply.controller;
      data.controller_id = static_cast<uint16_t>(reply.dw0);
    }
    co_return reply;
  }
  // Connects the admin queue and enables the controller.
  task::Task<void> arrive() {
    const ConnectReply reply = co_await connect_queue(0);
    EXPECT_TRUE(reply.status.ok()) << text(reply.status, StatusContext::kFabrics);
    if (reply.status.ok()) co_await enable();
  }
  task::Task<void> enable() {
    const Configuration on{.enable = true, .submission_entry_size = 6, .completion_entry_size = 4};
    const Cqe cqe = co_await set_property(PropertyOffset::kConfiguration, on.encode());
    EXPECT_TRUE(cqe.get_status().ok());
  }
  task::Task<void> leave(uint16_t id = 0) {
    const std::unique_ptr<TestLink> link = std::move(links[id]);
    co_await registry_.disconnected(*controller, id, *link);
  }
  // Every queue, last first.
  task::Task<void> leave_all() {
    for (size_t id = links.size(); id-- > 0;) {
      if (links[id] != nullptr) co_await leave(static_cast<uint16_t>(id));
    }
    links.clear();
    data.controller_id = kAnyController;
  }

  task::Task<Cqe> admin(Sqe sqe, MutableBytes bytes = {}, task::CancelToken token = {}) {
    sqe.cid = ++cid_;
    const Cqe cqe = co_await registry_.admin(*controller, sqe, bytes, token);
    EXPECT_EQ(cqe.cid, sqe.cid);
    co_return cqe;
  }
  task::Task<Cqe> set_property(PropertyOffset offset, uint64_t value) {
    PropertyCommand command;
    command.type = FabricsType::kPropertySet;
    command.offset = static_cast<uint32_t>(offset);
    command.value = value;
    return admin(to_sqe(command));
  }
  task::Task<uint64_t> get_property(PropertyOffset offset) {
    PropertyCommand command;
    command.attributes = offset == PropertyOffset::kCapabilities ? PropertyCommand::k8Bytes
                                                                 : PropertyCommand::k4Bytes;
    command.offset = static_cast<uint32_t>(offset);
    const Cqe cqe = co_await admin(to_sqe(command));
    EXPECT_TRUE(cqe.get_status().ok());
    co_return cqe.result64();
  }
  task::Task<Cqe> get_feature(Feature feature, FeatureSelect select = FeatureSelect::kCurrent,
                              uint32_t value = 0, MutableBytes bytes = {}, uint32_t nsid = 0) {
    Sqe sqe = Sqe::make(AdminOpcode::kGetFeatures, nsid);
    GetFeaturesFields{.feature = feature, .select = select, .value = value}.encode(sqe);
    return admin(sqe, bytes);
  }
  task::Task<Cqe> set_feature(Feature feature, uint32_t value, MutableBytes bytes = {},
                              uint32_t nsid = 0) {
    Sqe sqe = Sqe::make(AdminOpcode::kSetFeatures, nsid);
    SetFeaturesFields{.feature = feature, .value = value}.encode(sqe);
    return admin(sqe, bytes);
  }
  // An Identify page; zeroes when it fails, with the status in `last`.
  template <class Page>
  task::Task<Page> identify(Cns cns, uint32_t nsid = 0) {
    Sqe sqe = Sqe::make(AdminOpcode::kIdentify, nsid);
    IdentifyFields{.cns = cns}.encode(sqe);
    Page page;
    const Cqe cqe = co_await admin(sqe, mutable_bytes_of(page));
    last = cqe.get_status();
    co_return page;
  }
  struct LogRead {
    LogPage page{};
    uint64_t offset = 0;
    bool retain_event = false;
    uint8_t specific = 0;
    uint32_t nsid = kBroadcastNsid;
  };
  task::Task<std::vector<std::byte>> log(LogRead read, size_t size) {
    Sqe sqe = Sqe::make(AdminOpcode::kGetLogPage, read.nsid);
    GetLogFields{.page = read.page,
                 .specific = read.specific,
                 .retain_event = read.retain_event,
                 .dwords = static_cast<uint32_t>(size / 4 - 1),
                 .offset = read.offset}
        .encode(sqe);
    std::vector<std::byte> bytes(size);
    const Cqe cqe = co_await admin(sqe, bytes);
    last = cqe.get_status();
    co_return bytes;
  }
  template <class Page>
  task::Task<Page> log_as(LogPage page, uint32_t nsid = kBroadcastNsid) {
    const std::vector<std::byte> bytes = co_await log({.page = page, .nsid = nsid}, sizeof(Page));
    co_return load<Page>(bytes);
  }

  Status last;

 private:
  Registry& registry_;
  uint16_t cid_ = 0;
};

inline task::Task<void> let_pass(env::Env& env, Duration duration) {
  const Result<void> slept = co_await task::sleep_for(env, duration);
  EXPECT_TRUE(slept);
}

// A subsystem with one memory namespace of 1 MiB in blocks of 512.
inline task::Task<void> serve(Registry& registry, SubsystemOptions options = {}) {
  options.nqn = kTestNqn;
  EXPECT_TRUE(registry.add_subsystem(options));
  NamespaceOptions space;
  space.drive = *drive::Spec::parse("mem:size=1M,block=512");
  const Result<uint32_t> added = co_await registry.add_namespace(kTestNqn, space);
  EXPECT_EQ(added.value_or(0), 1u);
}

// Runs a body with a Registry on a simulated node, then closes the registry. The body has to let
// its hosts leave.
class RegistryTest : public ::testing::TestWithParam<uint32_t> {
 public:
  struct Scene {
    env::Env& env;
    Registry& registry;
  };

 protected:
  using Body = std::function<task::Task<void>(env::Env&, Registry&)>;

  void run(Body body) {
    done_ = false;
    body_ = std::move(body);
    sim::Cluster cluster;
    cluster.node("box", {.cores = GetParam()}).start([this](env::Env& env) { return main(env); });
    ASSERT_TRUE(cluster.run_until([this] { return done_; }, 100'000_s)) << cluster.trace_tail();
    cluster.run_for(1_ms);
  }

 private:
  task::Task<void> main(env::Env& env) {
    {
      Registry registry(env);
      co_await body_(env, registry);
      co_await registry.close();
    }
    done_ = true;
  }
  Body body_;
  bool done_ = false;
};

}  // namespace cairn::nvme
