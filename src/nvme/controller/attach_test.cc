// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>

#include "nvme/controller/attachment.h"
#include "nvme/controller/controller.h"
#include "nvme/controller/registry_testing.h"
#include "nvme/format/admin_data.h"
#include "nvme/format/event_format.h"
#include "nvme/format/identify_controller_format.h"
#include "nvme/format/identify_namespace_format.h"
#include "nvme/format/limits.h"
#include "testing/sim_test.h"

namespace cairn::nvme {
namespace {

using env::Env;
using task::Task;

// A transport without memory: it keeps what it is told, and refuses what the test says.
class TestDoor final : public PciQueues {
 public:
  TestDoor(Env& env, Registry& registry) : env_(env), registry_(registry) {}

  TestLink admin_link;
  Controller* controller = nullptr;
  std::map<uint16_t, CompletionQueueFields> completion;
  std::map<uint16_t, std::unique_ptr<TestLink>> submission;
  std::vector<uint16_t> drained;
  DoorbellBuffers buffers;
  InterruptCoalescing coalescing;
  InterruptVector vector;
  Status refusal;

  Status create_completion_queue(const CompletionQueueFields& fields) override {
    note();
    if (refusal.ok()) completion[fields.id] = fields;
    return refusal;
  }
  Status create_submission_queue(const SubmissionQueueFields& fields, const HostId& host,
                                 QueueLink*& link) override {
    note();
    EXPECT_EQ(host, controller->host());
    if (!refusal.ok()) return refusal;
    link = (submission[fields.id] = std::make_unique<TestLink>()).get();
    return {};
  }
  Task<void> drain_submission_queue(uint16_t id) override {
    note();
    drained.push_back(id);
    co_return;
  }
  void delete_submission_queue(uint16_t id) override { submission.erase(id); }
  void delete_completion_queue(uint16_t id) override { completion.erase(id); }
  Status use_doorbell_buffers(const DoorbellBuffers& asked) override {
    if (refusal.ok()) buffers = asked;
    return refusal;
  }
  void set_coalescing(InterruptCoalescing asked) override { coalescing = asked; }
  void set_vector(InterruptVector asked) override { vector = asked; }

  // On the last core, so that calls cross cores where there are several.
  CoreId core() const { return CoreId(env_.core_count() - 1); }
  void attach(bool enabled = true) {
    const Result<Attached> attached = registry_.attach(
        {.nqn = kTestNqn, .vectors = 4, .core = core(), .link = &admin_link, .queues = this});
    ASSERT_TRUE(attached);
    controller = attached->controller;
    EXPECT_NE(attached->namespaces, nullptr);
    if (enabled) registry_.enable(*controller);
  }
  Task<void> detach() {
    co_await registry_.reset(*controller);
    co_await registry_.disconnected(*controller, 0, admin_link);
  }
  Task<Cqe> admin(Sqe sqe, MutableBytes data = {}, task::CancelToken token = {}) {
    sqe.cid = ++cid_;
    return registry_.admin(*controller, sqe, data, token);
  }
  template <class Fields>
  Task<StatusCode> run(AdminOpcode opcode, Fields fields) {
    Sqe sqe = Sqe::make(opcode);
    fields.encode(sqe);
    const Cqe cqe = co_await admin(sqe);
    co_return cqe.get_status().code();
  }
  Task<StatusCode> create(CompletionQueueFields fields) {
    return run(AdminOpcode::kCreateCompletionQueue, fields);
  }
  Task<StatusCode> create(SubmissionQueueFields fields) {
    return run(AdminOpcode::kCreateSubmissionQueue, fields);
  }
  Task<StatusCode> delete_completion(uint16_t id) {
    return run(AdminOpcode::kDeleteCompletionQueue, DeleteQueueFields{.id = id});
  }
  Task<StatusCode> delete_submission(uint16_t id) {
    return run(AdminOpcode::kDeleteSubmissionQueue, DeleteQueueFields{.id = id});
  }
  Task<Cqe> get_feature(Feature feature, uint32_t value = 0, MutableBytes data = {}) {
    Sqe sqe = Sqe::make(AdminOpcode::kGetFeatures);
    GetFeaturesFields{.feature = feature, .value = value}.encode(sqe);
    return admin(sqe, data);
  }
  Task<Cqe> set_feature(Feature feature, uint32_t value, MutableBytes data = {}) {
    Sqe sqe = Sqe::make(AdminOpcode::kSetFeatures);
    SetFeaturesFields{.feature = feature, .value = value}.encode(sqe);
    return admin(sqe, data);
  }

 private:
  void note() { EXPECT_NE(controller, nullptr); }

  Env& env_;
  Registry& registry_;
  uint16_t cid_ = 0;
};

constexpr CompletionQueueFields kCompletion{.id = 1, .size = 63, .vector = 1, .address = 0x1000};
constexpr SubmissionQueueFields kSubmission{
    .id = 2, .size = 63, .completion = 1, .address = 0x2000};

class Attach : public RegistryTest {};
INSTANTIATE_TEST_SUITE_P(Cores, Attach, ::testing::Values(1, 3));

SIM_TEST_P(Attach, IdentifySaysNothingOfFabrics) {
  co_await serve(registry);
  TestDoor door(env, registry);
  door.attach();
  Sqe sqe = Sqe::make(AdminOpcode::kIdentify);
  IdentifyFields{.cns = Cns::kController}.encode(sqe);
  IdentifyController page;
  Cqe cqe = co_await door.admin(sqe, mutable_bytes_of(page));
  EXPECT_TRUE(cqe.get_status().ok());
  EXPECT_EQ(page.pci_vendor, kPciVendor);
  EXPECT_EQ(page.multipath, 0);
  EXPECT_EQ(page.ana_capabilities, 0);
  EXPECT_EQ(page.keep_alive_100ms, 0u);
  EXPECT_EQ(page.command_capsule, 0u);
  EXPECT_EQ(page.response_capsule, 0u);
  EXPECT_EQ(page.sgl_descriptors_max, 0);
  EXPECT_EQ(page.fabrics_commands, 0u);
  EXPECT_EQ(page.commands_max, 0u);
  EXPECT_EQ(page.sgl, Sgls::kByteAligned);
  EXPECT_EQ(page.admin_commands, Oacs::kDoorbellBuffers);
  EXPECT_EQ(page.attributes, Ctratt::kHostId128);
  EXPECT_EQ(page.submission_entry, 0x66);
  EXPECT_EQ(page.completion_entry, 0x44);
  EXPECT_EQ(page.transfer_max, kTransferPagesShift);
  EXPECT_EQ(page.write_cache, Vwc::kPresent | Vwc::kFlushAll);
  EXPECT_EQ(page.events, EventMask::kNamespaceAttributes);
  sqe = Sqe::make(AdminOpcode::kIdentify, 1);
  IdentifyFields{.cns = Cns::kNamespace}.encode(sqe);
  IdentifyNamespace space;
  cqe = co_await door.admin(sqe, mutable_bytes_of(space));
  EXPECT_EQ(space.size, 2048u);
  EXPECT_EQ(space.multipath, 0);
  co_await door.detach();
}

SIM_TEST_P(Attach, FabricsCommandsAreInvalid) {
  co_await serve(registry);
  TestDoor door(env, registry);
  door.attach(false);
  Cqe cqe = co_await door.admin(Sqe::make(AdminOpcode::kKeepAlive));
  EXPECT_EQ(cqe.get_status().code(), StatusCode::kInvalidOpcode) << "KAS is 0";
  cqe = co_await door.get_feature(Feature::kArbitration);
  EXPECT_EQ(cqe.get_status().code(), StatusCode::kCommandSequenceError) << "not enabled";
  registry.enable(*door.controller);
  for (const FabricsType type : {FabricsType::kPropertyGet, FabricsType::kPropertySet,
                                 FabricsType::kConnect, FabricsType::kAuthenticationSend,
                                 FabricsType::kAuthenticationReceive, FabricsType::kDisconnect}) {
    cqe = co_await door.admin(Sqe::make(type));
    EXPECT_EQ(cqe.get_status().code(), StatusCode::kInvalidOpcode) << name(type);
  }
  // And a host on a fabric has no commands that make queues.
  TestHost host(registry);
  co_await host.arrive();
  cqe = co_await host.admin(Sqe::make(AdminOpcode::kDoorbellBufferConfig));
  EXPECT_EQ(cqe.get_status().code(), StatusCode::kInvalidOpcode);
  // It cannot connect queues to the controller that is attached either.
  host.data.controller_id = door.controller->id();
  const ConnectReply reply = co_await host.connect_queue(1);
  EXPECT_EQ(reply.status.code(), StatusCode::kConnectInvalidParameters);
  host.links.pop_back();
  co_await host.leave_all();
  co_await door.detach();
}

SIM_TEST_P(Attach, QueuesAreMadeAndDeletedInOrder) {
  co_await serve(registry);
  TestDoor door(env, registry);
  door.attach();
  StatusCode status = co_await door.create(kSubmission);
  EXPECT_EQ(status, StatusCode::kCompletionQueueInvalid);
  status = co_await door.create(kCompletion);
  EXPECT_EQ(status, StatusCode::kSuccess);
  EXPECT_EQ(door.completion.at(1).address, 0x1000u);
  EXPECT_EQ(door.completion.at(1).vector, 1);
  status = co_await door.create(kCompletion);
  EXPECT_EQ(status, StatusCode::kInvalidQueueId);
  status = co_await door.create(kSubmission);
  EXPECT_EQ(status, StatusCode::kSuccess);
  const Cqe late = co_await door.set_feature(Feature::kNumberOfQueues, 0x0003'0003);
  EXPECT_EQ(late.get_status().code(), StatusCode::kCommandSequenceError);
  status = co_await door.delete_completion(1);
  EXPECT_EQ(status, StatusCode::kInvalidQueueDeletion);
  // Abort finds the queue's own transport.
  door.submission.at(2)->abortable = 7;
  Sqe abort = Sqe::make(AdminOpcode::kAbort);
  AbortFields{.sqid = 2, .cid = 7}.encode(abort);
  Cqe cqe = co_await door.admin(abort);
  EXPECT_EQ(cqe.dw0, 0u);
  AbortFields{.sqid = 3, .cid = 7}.encode(abort);
  cqe = co_await door.admin(abort);
  EXPECT_EQ(cqe.dw0, 1u);
  status = co_await door.delete_submission(2);
  EXPECT_EQ(status, StatusCode::kSuccess);
  EXPECT_EQ(door.drained, std::vector<uint16_t>{2});
  EXPECT_TRUE(door.submission.empty());
  status = co_await door.delete_submission(2);
  EXPECT_EQ(status, StatusCode::kInvalidQueueId);
  status = co_await door.delete_completion(1);
  EXPECT_EQ(status, StatusCode::kSuccess);
  EXPECT_TRUE(door.completion.empty());
  co_await door.detach();
}

SIM_TEST_P(Attach, QueueTheDoorCannotReachIsNotThere) {
  co_await serve(registry);
  TestDoor door(env, registry);
  door.attach();
  door.refusal = final_status(StatusCode::kDataTransferError);
  StatusCode status = co_await door.create(kCompletion);
  EXPECT_EQ(status, StatusCode::kDataTransferError);
  door.refusal = {};
  status = co_await door.create(kCompletion);
  EXPECT_EQ(status, StatusCode::kSuccess) << "a refusal leaves nothing behind";
  door.refusal = final_status(StatusCode::kDataTransferError);
  status = co_await door.create(kSubmission);
  EXPECT_EQ(status, StatusCode::kDataTransferError);
  door.refusal = {};
  status = co_await door.create(kSubmission);
  EXPECT_EQ(status, StatusCode::kSuccess);
  co_await door.detach();
}

SIM_TEST_P(Attach, QueuesStayWithinWhatWasGranted) {
  co_await serve(registry, {.queues_max = 8});
  TestDoor door(env, registry);
  door.attach();
  Cqe cqe = co_await door.set_feature(Feature::kNumberOfQueues, 0x0001'0001);
  EXPECT_EQ(cqe.dw0, 0x0001'0001u);
  CompletionQueueFields fields = kCompletion;
  fields.id = 3;
  StatusCode status = co_await door.create(fields);
  EXPECT_EQ(status, StatusCode::kInvalidQueueId) << "two were asked for";
  cqe = co_await door.set_feature(Feature::kNumberOfQueues, 0x00ff'00ff);
  EXPECT_EQ(cqe.dw0, 0x0007'0007u);
  status = co_await door.create(fields);
  EXPECT_EQ(status, StatusCode::kSuccess);
  co_await door.detach();
}

SIM_TEST_P(Attach, DoorbellBuffersBeginPages) {
  co_await serve(registry);
  TestDoor door(env, registry);
  door.attach();
  using Buffers = DoorbellBuffers;
  constexpr auto kOpcode = AdminOpcode::kDoorbellBufferConfig;
  StatusCode status = co_await door.run(kOpcode, Buffers{0x3000, 0x4000});
  EXPECT_EQ(status, StatusCode::kSuccess);
  EXPECT_EQ(door.buffers.doorbells, 0x3000u);
  EXPECT_EQ(door.buffers.event_indexes, 0x4000u);
  for (const Buffers bad :
       {Buffers{0x3004, 0x4000}, Buffers{0x3000, 0x4800}, Buffers{0x3000, 0x3000}}) {
    status = co_await door.run(kOpcode, bad);
    EXPECT_EQ(status, StatusCode::kInvalidField);
  }
  co_await door.detach();
}

SIM_TEST_P(Attach, FeaturesOfInterruptsAndHostsAreKept) {
  co_await serve(registry);
  TestDoor door(env, registry);
  door.attach();
  Cqe cqe = co_await door.set_feature(Feature::kInterruptCoalescing, 0xffff'0a07);
  EXPECT_TRUE(cqe.get_status().ok());
  EXPECT_EQ(door.coalescing, (InterruptCoalescing{.threshold = 7, .time_100us = 10}));
  cqe = co_await door.get_feature(Feature::kInterruptCoalescing);
  EXPECT_EQ(cqe.dw0, 0x0a07u);
  cqe = co_await door.set_feature(Feature::kInterruptVector, 0x0001'0003);
  EXPECT_TRUE(cqe.get_status().ok());
  EXPECT_EQ(door.vector.vector, 3);
  EXPECT_TRUE(door.vector.at_once);
  cqe = co_await door.get_feature(Feature::kInterruptVector, 3);
  EXPECT_EQ(cqe.dw0, 0x0001'0003u);
  cqe = co_await door.get_feature(Feature::kInterruptVector, 2);
  EXPECT_EQ(cqe.dw0, 2u);
  for (const Feature feature : {Feature::kInterruptVector, Feature::kKeepAlive}) {
    cqe = co_await door.set_feature(feature, 4);
    EXPECT_EQ(cqe.get_status().code(), StatusCode::kInvalidField);
  }
  HostId host{9, 8, 7};
  cqe = co_await door.set_feature(Feature::kHostId, kHostIdExtended, mutable_bytes_of(host));
  EXPECT_TRUE(cqe.get_status().ok());
  EXPECT_EQ(door.controller->host(), host);
  HostId read{};
  cqe = co_await door.get_feature(Feature::kHostId, kHostIdExtended, mutable_bytes_of(read));
  EXPECT_EQ(read, host);
  cqe = co_await door.set_feature(Feature::kHostId, 0, mutable_bytes_of(host));
  EXPECT_EQ(cqe.get_status().code(), StatusCode::kHostIdInconsistentFormat);
  HostId none{};
  cqe = co_await door.set_feature(Feature::kHostId, kHostIdExtended, mutable_bytes_of(none));
  EXPECT_EQ(cqe.get_status().code(), StatusCode::kInvalidField);
  co_await registry.reset(*door.controller);
  EXPECT_NE(door.controller->host(), host) << "a reset forgets what the driver set";
  EXPECT_NE(door.controller->host(), HostId{});
  co_await door.detach();
}

SIM_TEST_P(Attach, ResetForgetsQueuesAgainAndAgain) {
  co_await serve(registry);
  TestDoor door(env, registry);
  door.attach();
  for (int round = 0; round < 5; ++round) {
    StatusCode status = co_await door.create(kCompletion);
    EXPECT_EQ(status, StatusCode::kSuccess);
    status = co_await door.create(kSubmission);
    EXPECT_EQ(status, StatusCode::kSuccess);
    co_await registry.reset(*door.controller);
    EXPECT_EQ(door.controller->queue_count(), 1u);
    door.submission.clear();
    door.completion.clear();
    const Cqe cqe = co_await door.get_feature(Feature::kArbitration);
    EXPECT_EQ(cqe.get_status().code(), StatusCode::kCommandSequenceError);
    registry.enable(*door.controller);
  }
  co_await door.detach();
}

SIM_TEST_P(Attach, ControllerHearsOfNamespacesAndNotOfHosts) {
  co_await serve(registry);
  TestDoor door(env, registry);
  door.attach();
  Task<Cqe> waiting = door.admin(Sqe::make(AdminOpcode::kAsynchronousEventRequest));
  NamespaceOptions space;
  space.drive = *drive::Spec::parse("mem:size=64K");
  const Result<uint32_t> added = co_await registry.add_namespace(kTestNqn, space);
  EXPECT_TRUE(added);
  const Cqe event = co_await waiting;
  EXPECT_TRUE(event.get_status().ok());
  EXPECT_EQ(event.dw0 >> 16, static_cast<uint32_t>(LogPage::kChangedNamespaces));
  // Hosts that may come over a fabric are none of its business.
  EXPECT_TRUE(registry.set_hosts(kTestNqn, false, {}));
  EXPECT_FALSE(door.controller->is_ending());
  // Failures are kept, and not said to have come by TCP.
  Cqe cqe = co_await door.admin(Sqe::make(AdminOpcode::kFormatNvm));
  EXPECT_EQ(cqe.get_status().code(), StatusCode::kInvalidOpcode);
  EXPECT_EQ(door.controller->errors.page()[0].transport, 0);
  Sqe log = Sqe::make(AdminOpcode::kGetLogPage, kBroadcastNsid);
  GetLogFields{.page = LogPage::kAna, .dwords = 3}.encode(log);
  std::array<std::byte, 16> bytes;
  cqe = co_await door.admin(log, bytes);
  EXPECT_EQ(cqe.get_status().code(), StatusCode::kInvalidLogPage) << "one path, no groups";
  co_await door.detach();
}

Task<void> detach_when_asked(Env& env, TestDoor& door) {
  while (door.admin_link.disconnected_why.empty()) co_await let_pass(env, 1_us);
  co_await door.detach();
}
SIM_TEST_P(Attach, SubsystemThatGoesAsksTheDoorToDetach) {
  co_await serve(registry);
  TestDoor door(env, registry);
  door.attach();
  Task<void> leaving = detach_when_asked(env, door);
  const Result<void> removed = co_await registry.remove_subsystem(kTestNqn);
  EXPECT_TRUE(removed);
  EXPECT_EQ(door.admin_link.disconnected_why, "the subsystem was removed");
  co_await leaving;
  const Result<Attached> again = registry.attach({.nqn = kTestNqn});
  EXPECT_EQ(again.error().code(), Errc::kNotFound);
}

SIM_TEST_P(Attach, ControllersAreLimited) {
  co_await serve(registry, {.controllers_max = 1});
  TestDoor door(env, registry);
  door.attach();
  TestLink link;
  const Result<Attached> second =
      registry.attach({.nqn = kTestNqn, .link = &link, .queues = &door});
  EXPECT_EQ(second.error().code(), Errc::kLimit);
  const std::vector<DriveFailure> failed = co_await registry.shut_down(*door.controller, {});
  EXPECT_TRUE(failed.empty());
  co_await door.detach();
}

TEST(AdminData, SizeFollowsFromTheCommand) {
  Sqe sqe = Sqe::make(AdminOpcode::kIdentify);
  EXPECT_EQ(admin_data_size(sqe), 4096u);
  sqe = Sqe::make(AdminOpcode::kGetLogPage);
  GetLogFields{.page = LogPage::kError, .dwords = 15}.encode(sqe);
  EXPECT_EQ(admin_data_size(sqe), 64u);
  GetLogFields{.page = LogPage::kError, .dwords = kTransferBytesMax / 4}.encode(sqe);
  EXPECT_EQ(admin_data_size(sqe).error(), final_status(StatusCode::kInvalidField));
  sqe = Sqe::make(AdminOpcode::kSetFeatures);
  SetFeaturesFields{.feature = Feature::kHostId, .value = kHostIdExtended}.encode(sqe);
  EXPECT_EQ(admin_data_size(sqe), 16u);
  SetFeaturesFields{.feature = Feature::kHostId}.encode(sqe);
  EXPECT_EQ(admin_data_size(sqe), 8u);
  SetFeaturesFields{.feature = Feature::kHostBehavior}.encode(sqe);
  EXPECT_EQ(admin_data_size(sqe), 512u);
  SetFeaturesFields{.feature = Feature::kArbitration}.encode(sqe);
  EXPECT_EQ(admin_data_size(sqe), 0u);
  sqe = Sqe::make(AdminOpcode::kGetFeatures);
  GetFeaturesFields{.feature = Feature::kHostBehavior, .select = FeatureSelect::kCapabilities}
      .encode(sqe);
  EXPECT_EQ(admin_data_size(sqe), 0u);
  EXPECT_EQ(admin_data_size(Sqe::make(AdminOpcode::kCreateSubmissionQueue)), 0u);
}

}  // namespace
}  // namespace cairn::nvme
