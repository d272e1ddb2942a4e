// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "nvme/controller/registry_testing.h"
#include "nvme/format/ana_format.h"
#include "nvme/format/event_format.h"
#include "nvme/format/identify_controller_format.h"
#include "nvme/format/identify_namespace_format.h"
#include "nvme/format/limits.h"
#include "testing/sim_test.h"

namespace cairn::nvme {
namespace {

using env::Env;
using task::Task;

class Admin : public RegistryTest {};
INSTANTIATE_TEST_SUITE_P(Cores, Admin, ::testing::Values(1, 3));

SIM_TEST_P(Admin, OnlyFabricsCommandsAreServedBeforeEnabling) {
  co_await serve(registry);
  TestHost host(registry);
  ConnectReply reply = co_await host.connect_queue(0);
  EXPECT_TRUE(reply.status.ok());
  co_await host.identify<IdentifyController>(Cns::kController);
  EXPECT_EQ(host.last.code(), StatusCode::kCommandSequenceError);
  const uint64_t cap = co_await host.get_property(PropertyOffset::kCapabilities);
  EXPECT_EQ(cap & 0xffff, 127u);
  co_await host.enable();
  co_await host.identify<IdentifyController>(Cns::kController);
  EXPECT_TRUE(host.last.ok());
  co_await host.leave_all();
}

SIM_TEST_P(Admin, IdentifiesWhatThereIs) {
  co_await serve(registry);
  NamespaceOptions space;
  space.nsid = 7;
  space.drive = *drive::Spec::parse("mem:size=64K,block=4096");
  const Result<uint32_t> added = co_await registry.add_namespace(kTestNqn, space);
  EXPECT_EQ(added.value_or(0), 7u);
  TestHost host(registry);
  co_await host.arrive();
  const auto controller = co_await host.identify<IdentifyController>(Cns::kController);
  EXPECT_EQ(controller.controller_id, host.data.controller_id);
  EXPECT_EQ(controller.capacity.low, (1u << 20) + (64u << 10));
  auto list = co_await host.identify<NamespaceList>(Cns::kActiveNamespaces);
  EXPECT_EQ(list.nsids[0], 1u);
  EXPECT_EQ(list.nsids[1], 7u);
  EXPECT_EQ(list.nsids[2], 0u);
  list = co_await host.identify<NamespaceList>(Cns::kActiveNamespaces, 1);
  EXPECT_EQ(list.nsids[0], 7u);
  co_await host.identify<NamespaceList>(Cns::kActiveNamespaces, 0xffff'fffe);
  EXPECT_EQ(host.last, final_status(StatusCode::kInvalidNamespaceOrFormat).with_more());
  auto page = co_await host.identify<IdentifyNamespace>(Cns::kNamespace, 7);
  EXPECT_EQ(page.size, 16u);
  page = co_await host.identify<IdentifyNamespace>(Cns::kNamespace, 8);
  EXPECT_TRUE(host.last.ok()) << "inactive: zeroes";
  EXPECT_EQ(page.size, 0u);
  for (const uint32_t nsid : {0u, kNsidMax + 1, kBroadcastNsid}) {
    co_await host.identify<IdentifyNamespace>(Cns::kNamespace, nsid);
    EXPECT_EQ(host.last.code(), StatusCode::kInvalidNamespaceOrFormat);
  }
  co_await host.identify<NamespaceList>(Cns::kNamespaceDescriptors, 7);
  EXPECT_TRUE(host.last.ok());
  co_await host.identify<NamespaceList>(Cns::kNamespaceDescriptors, 8);
  EXPECT_EQ(host.last.code(), StatusCode::kInvalidNamespaceOrFormat);
  for (const Cns cns : {Cns::kCommandSetNamespace, Cns::kIndependentNamespace}) {
    co_await host.identify<NamespaceList>(cns, 7);
    EXPECT_TRUE(host.last.ok());
  }
  co_await host.identify<IdentifyControllerNvm>(Cns::kCommandSetController);
  EXPECT_TRUE(host.last.ok());
  for (const int cns : {0x04, 0x07, 0x10, 0x13, 0x14, 0x1c, 0x20, 0xff}) {
    co_await host.identify<NamespaceList>(Cns(cns), 1);
    EXPECT_EQ(host.last, final_status(StatusCode::kInvalidField).with_more()) << cns;
  }
  Sqe sqe = Sqe::make(AdminOpcode::kIdentify);
  IdentifyFields{.cns = Cns::kController}.encode(sqe);
  std::array<std::byte, 4092> small;
  const Cqe cqe = co_await host.admin(sqe, small);
  EXPECT_EQ(cqe.get_status(), StatusCode::kDataSglLengthInvalid);
  co_await host.leave_all();
}

SIM_TEST_P(Admin, UnknownOpcodesAreInvalid) {
  co_await serve(registry);
  TestHost host(registry);
  co_await host.arrive();
  for (const int opcode : {0x00, 0x01, 0x04, 0x05, 0x0d, 0x10, 0x11, 0x14, 0x80, 0x84, 0xff}) {
    const Cqe cqe = co_await host.admin(Sqe::make(AdminOpcode(opcode)));
    EXPECT_EQ(cqe.get_status(), final_status(StatusCode::kInvalidOpcode).with_more());
  }
  Sqe fused = Sqe::make(AdminOpcode::kKeepAlive);
  fused.set_fuse(Fuse::kFirst);
  const Cqe cqe = co_await host.admin(fused);
  EXPECT_EQ(cqe.get_status(), StatusCode::kInvalidField);
  co_await host.leave_all();
}

Task<Answer> repeat_size(VendorCommand command) {
  EXPECT_EQ(command.nqn, kTestNqn);
  EXPECT_EQ(command.host_nqn, "nqn.2014-08.org.nvmexpress:uuid:1");
  co_return answered(command.data.size());
}

SIM_TEST_P(Admin, VendorCommandIsThereWhileSomebodyExecutesIt) {
  co_await serve(registry);
  TestHost host(registry);
  co_await host.arrive();
  std::vector<std::byte> data(kVendorDataMax + 4);
  const Sqe sqe = Sqe::make(AdminOpcode::kVendorSend);
  Cqe cqe = co_await host.admin(sqe, MutableBytes(data).first(12));
  EXPECT_EQ(cqe.get_status().code(), StatusCode::kInvalidOpcode) << "nobody executes it";
  registry.on_vendor_command(repeat_size);
  cqe = co_await host.admin(sqe, MutableBytes(data).first(12));
  EXPECT_TRUE(cqe.get_status().ok());
  EXPECT_EQ(cqe.dw0.value(), 12u);
  cqe = co_await host.admin(sqe, data);
  EXPECT_EQ(cqe.get_status().code(), StatusCode::kDataSglLengthInvalid) << "too long";
  const auto effects = co_await host.log_as<CommandEffectsPage>(LogPage::kCommandEffects);
  EXPECT_EQ(effects.admin[0xc1], Effect::kSupported | Effect::kNamespaceInventory);
  registry.on_vendor_command({});
  cqe = co_await host.admin(sqe, MutableBytes(data).first(12));
  EXPECT_EQ(cqe.get_status().code(), StatusCode::kInvalidOpcode);
  co_await host.leave_all();
}

SIM_TEST_P(Admin, FailedCommandsAreInTheErrorLogAndSaySo) {
  co_await serve(registry);
  TestHost host(registry);
  co_await host.arrive();
  const Cqe failed = co_await host.admin(Sqe::make(AdminOpcode::kFormatNvm, 5));
  EXPECT_TRUE(failed.get_status().more());
  registry.log_error(*host.controller, 3, Sqe::make(IoOpcode::kRead, 1),
                     StatusCode::kUnrecoveredReadError);
  const auto log = co_await host.log_as<std::array<ErrorEntry, 64>>(LogPage::kError);
  EXPECT_EQ(log[0].error_count, 2u);
  EXPECT_EQ(log[0].sqid, 3u);
  EXPECT_EQ(log[0].status, Status(StatusCode::kUnrecoveredReadError).with_more().to_wire());
  EXPECT_EQ(log[1].error_count, 1u);
  EXPECT_EQ(log[1].sqid, 0u);
  EXPECT_EQ(log[1].cid, failed.cid);
  EXPECT_EQ(log[1].status, failed.status);
  EXPECT_EQ(log[1].nsid, 5u);
  EXPECT_EQ(log[2].error_count, 0u);
  const auto health = co_await host.log_as<HealthPage>(LogPage::kHealth);
  EXPECT_EQ(health.error_log_entries.low, 2u);
  for (int i = 0; i < 100; ++i) co_await host.admin(Sqe::make(AdminOpcode::kFormatNvm));
  const auto full = co_await host.log_as<std::array<ErrorEntry, 64>>(LogPage::kError);
  EXPECT_EQ(full[0].error_count, 102u);
  EXPECT_EQ(full[63].error_count, 39u);
  co_await host.leave_all();
}

SIM_TEST_P(Admin, HealthSumsAllCores) {
  co_await serve(registry);
  TestHost host(registry);
  co_await host.arrive();
  for (uint32_t core = 0; core < env.core_count(); ++core) {
    const auto id = static_cast<uint16_t>(core + 1);
    const ConnectReply reply = co_await host.connect_queue(id, CoreId(core));
    CoreNamespaces* spaces = reply.namespaces;
    co_await env::call_on(env, CoreId(core), [spaces](Env&) {
      spaces->find(1)->counters.add({.reads = 10,
                                     .writes = 20,
                                     .blocks_read = 1001,
                                     .blocks_written = 1000,
                                     .media_errors = 3});
    });
  }
  co_await let_pass(env, 7300_s);
  const auto page = co_await host.log_as<HealthPage>(LogPage::kHealth);
  const uint64_t cores = env.core_count();
  EXPECT_EQ(page.host_reads.low, 10 * cores);
  EXPECT_EQ(page.host_writes.low, 20 * cores);
  EXPECT_EQ(page.data_units_read.low, cores == 1 ? 2u : 4u) << "rounded up";
  EXPECT_EQ(page.data_units_written.low, cores);
  EXPECT_EQ(page.media_errors.low, 3 * cores);
  EXPECT_EQ(page.power_on_hours.low, 2u);
  EXPECT_EQ(page.temperature_kelvin, kTemperatureKelvin);
  EXPECT_EQ(page.spare_percent, 100);
  const auto of_one = co_await host.log_as<HealthPage>(LogPage::kHealth, 1);
  EXPECT_EQ(of_one.host_reads.low, 10 * cores);
  co_await host.log_as<HealthPage>(LogPage::kHealth, 2);
  EXPECT_EQ(host.last.code(), StatusCode::kInvalidNamespaceOrFormat);
  // What a namespace did is not forgotten when it goes.
  const Result<void> removed = co_await registry.remove_namespace(kTestNqn, 1);
  EXPECT_TRUE(removed);
  const auto after = co_await host.log_as<HealthPage>(LogPage::kHealth);
  EXPECT_EQ(after.host_reads.low, 10 * cores);
  co_await host.leave_all();
}

SIM_TEST_P(Admin, LogPagesAreReadInPiecesAndWithinBounds) {
  co_await serve(registry);
  TestHost host(registry);
  co_await host.arrive();
  const std::vector<std::byte> whole = co_await host.log({.page = LogPage::kCommandEffects}, 4096);
  EXPECT_TRUE(host.last.ok());
  const std::vector<std::byte> part =
      co_await host.log({.page = LogPage::kCommandEffects, .offset = 1024}, 512);
  EXPECT_TRUE(std::ranges::equal(part, std::span(whole).subspan(1024, 512)));
  const std::vector<std::byte> tail =
      co_await host.log({.page = LogPage::kCommandEffects, .offset = 4092}, 512);
  EXPECT_TRUE(host.last.ok()) << "zeroes behind the end";
  co_await host.log({.page = LogPage::kCommandEffects, .offset = 4096}, 512);
  EXPECT_TRUE(host.last.ok());
  co_await host.log({.page = LogPage::kCommandEffects, .offset = 4100}, 512);
  EXPECT_EQ(host.last.code(), StatusCode::kInvalidField);
  co_await host.log({.page = LogPage::kCommandEffects, .offset = UINT64_MAX - 3}, 512);
  EXPECT_EQ(host.last.code(), StatusCode::kInvalidField);
  co_await host.log({.page = LogPage::kCommandEffects, .offset = 2}, 512);
  EXPECT_EQ(host.last.code(), StatusCode::kInvalidField);
  Sqe sqe = Sqe::make(AdminOpcode::kGetLogPage);
  GetLogFields{.page = LogPage::kFirmware, .dwords = 127}.encode(sqe);
  std::array<std::byte, 508> small;
  Cqe cqe = co_await host.admin(sqe, small);
  EXPECT_EQ(cqe.get_status(), StatusCode::kDataSglLengthInvalid);
  GetLogFields{.page = LogPage::kFirmware, .dwords = UINT32_MAX}.encode(sqe);
  cqe = co_await host.admin(sqe, small);
  EXPECT_EQ(cqe.get_status(), StatusCode::kDataSglLengthInvalid);
  for (const int page : {0x06, 0x07, 0x08, 0x0d, 0x70, 0x81, 0xc0}) {
    co_await host.log({.page = LogPage(page)}, 512);
    EXPECT_EQ(host.last, final_status(StatusCode::kInvalidLogPage).with_more()) << page;
  }
  co_await host.leave_all();
}

SIM_TEST_P(Admin, ListsOfWhatIsSupportedAreTrue) {
  co_await serve(registry);
  TestHost host(registry);
  co_await host.arrive();
  const auto pages = co_await host.log_as<std::array<Le32, 256>>(LogPage::kSupported);
  for (int id = 0; id < 256; ++id) {
    co_await host.log({.page = LogPage(id)}, 4);
    EXPECT_EQ(host.last.ok(), pages[static_cast<size_t>(id)] == 1u) << id;
  }
  const auto effects = co_await host.log_as<CommandEffectsPage>(LogPage::kCommandEffects);
  EXPECT_EQ(effects.io[0x01], 3u);
  EXPECT_EQ(effects.io[0x02], 1u);
  EXPECT_EQ(effects.io[0x0c], 0u);
  EXPECT_EQ(effects.admin[0x06], 1u);
  EXPECT_EQ(effects.admin[0x80], 0u);
  const auto features = co_await host.log_as<std::array<Le32, 256>>(LogPage::kFeatureEffects);
  for (uint8_t id = 0; id < 255; ++id) {
    const Cqe cqe = co_await host.get_feature(Feature(id), FeatureSelect::kCapabilities);
    EXPECT_EQ(cqe.get_status().ok(), (features[id] & 1u) != 0) << int{id};
  }
  const auto firmware = co_await host.log_as<FirmwarePage>(LogPage::kFirmware);
  EXPECT_EQ(firmware.active, 1);
  EXPECT_EQ(firmware.revisions[0].trimmed(), "0.1.0");
  co_await host.leave_all();
}

SIM_TEST_P(Admin, AbortReachesTheQueueOnItsCore) {
  co_await serve(registry);
  TestHost host(registry);
  co_await host.arrive();
  const ConnectReply reply = co_await host.connect_queue(1, CoreId(env.core_count() - 1));
  EXPECT_TRUE(reply.status.ok());
  host.links[1]->abortable = 55;
  Sqe sqe = Sqe::make(AdminOpcode::kAbort);
  AbortFields{.sqid = 1, .cid = 55}.encode(sqe);
  Cqe cqe = co_await host.admin(sqe);
  EXPECT_TRUE(cqe.get_status().ok());
  EXPECT_EQ(cqe.dw0, 0u);
  AbortFields{.sqid = 1, .cid = 56}.encode(sqe);
  cqe = co_await host.admin(sqe);
  EXPECT_EQ(cqe.dw0, 1u) << "no such command";
  AbortFields{.sqid = 2, .cid = 55}.encode(sqe);
  cqe = co_await host.admin(sqe);
  EXPECT_EQ(cqe.dw0, 1u) << "no such queue";
  EXPECT_EQ(host.links[1]->aborted, (std::vector<uint16_t>{55, 56}));
  AbortFields{.sqid = 1, .cid = 57}.encode(sqe);
  std::vector<Task<Cqe>> many;
  for (int i = 0; i < kAbortsMax + 1; ++i) many.push_back(host.admin(sqe));
  for (int i = 0; i < kAbortsMax + 1; ++i) {
    cqe = co_await many[static_cast<size_t>(i)];
    EXPECT_EQ(cqe.get_status().ok(), i < kAbortsMax);
  }
  co_await host.leave_all();
}

SIM_TEST_P(Admin, AnEventRequestCanBeAborted) {
  co_await serve(registry);
  TestHost host(registry);
  co_await host.arrive();
  Sqe ask = Sqe::make(AdminOpcode::kAsynchronousEventRequest);
  ask.cid = 700;
  Task<Cqe> event = registry.admin(*host.controller, ask, {}, {});
  Sqe sqe = Sqe::make(AdminOpcode::kAbort);
  AbortFields{.sqid = 0, .cid = 700}.encode(sqe);
  Cqe cqe = co_await host.admin(sqe);
  EXPECT_EQ(cqe.dw0, 0u);
  cqe = co_await event;
  EXPECT_EQ(cqe.get_status(), Status(StatusCode::kAbortRequested));
  co_await host.leave_all();
}

// Hosts compute the page's size from Identify Controller and read it in pieces (nvme-cli 2.3).
SIM_TEST_P(Admin, TheAnaPageIsAsLongAsHostsComputeIt) {
  co_await serve(registry);
  TestHost host(registry);
  co_await host.arrive();
  for (const uint32_t offset : {0u, 4096u, 8192u}) {
    const TestHost::LogRead fields{.page = LogPage::kAna, .offset = offset};
    const std::vector<std::byte> piece = co_await host.log(fields, 16);
    EXPECT_EQ(piece[0] == std::byte{0}, offset > 0) << offset;
  }
  co_await host.leave_all();
}

SIM_TEST_P(Admin, EventRequestsAreLimitedAndEndWithTheirController) {
  co_await serve(registry);
  TestHost host(registry);
  co_await host.arrive();
  task::CancelSource source;
  const Sqe sqe = Sqe::make(AdminOpcode::kAsynchronousEventRequest);
  std::vector<Task<Cqe>> waiting;
  for (int i = 0; i < kEventRequestsMax; ++i) {
    waiting.push_back(host.admin(sqe, {}, source.token()));
  }
  Cqe cqe = co_await host.admin(sqe);
  EXPECT_EQ(cqe.get_status(), final_status(StatusCode::kEventRequestLimitExceeded).with_more());
  source.request();
  for (Task<Cqe>& each : waiting) {
    cqe = co_await each;
    EXPECT_EQ(cqe.get_status(), Status(StatusCode::kAbortRequested));
  }
  // Without a token, the end of the controller ends them.
  Task<Cqe> last = host.admin(sqe);
  co_await host.leave_all();
  cqe = co_await last;
  EXPECT_EQ(cqe.get_status(), Status(StatusCode::kAbortedQueueDeletion));
  co_await let_pass(env, 1_ms);
}

SIM_TEST_P(Admin, AResetEndsIoQueuesAndForgetsFeatures) {
  co_await serve(registry);
  TestHost host(registry);
  co_await host.arrive();
  const ConnectReply reply = co_await host.connect_queue(1);
  EXPECT_TRUE(reply.status.ok());
  Cqe cqe = co_await host.set_feature(Feature::kArbitration, 3);
  EXPECT_TRUE(cqe.get_status().ok());
  Task<Cqe> event = host.admin(Sqe::make(AdminOpcode::kAsynchronousEventRequest));
  cqe = co_await host.set_property(PropertyOffset::kConfiguration, 0);
  EXPECT_TRUE(cqe.get_status().ok());
  cqe = co_await event;
  EXPECT_EQ(cqe.get_status(), Status(StatusCode::kAbortedQueueDeletion));
  co_await let_pass(env, 1_ms);
  EXPECT_EQ(host.links[1]->disconnected_why, "the controller was reset");
  EXPECT_EQ(host.links[0]->disconnected_why, "");
  co_await host.leave(1);
  const uint64_t status = co_await host.get_property(PropertyOffset::kStatus);
  EXPECT_EQ(status, 0u);
  co_await host.enable();
  cqe = co_await host.get_feature(Feature::kArbitration);
  EXPECT_EQ(cqe.dw0, 7u);
  co_await host.leave_all();
}

SIM_TEST_P(Admin, CrossingATemperatureThresholdIsTold) {
  co_await serve(registry);
  TestHost host(registry);
  co_await host.arrive();
  Task<Cqe> event = host.admin(Sqe::make(AdminOpcode::kAsynchronousEventRequest));
  Cqe cqe = co_await host.set_feature(Feature::kTemperatureThreshold, 300);
  EXPECT_TRUE(cqe.get_status().ok());
  cqe = co_await event;
  EXPECT_EQ(cqe.dw0, 0x0002'0101u);
  const auto page = co_await host.log_as<HealthPage>(LogPage::kHealth);
  EXPECT_EQ(page.critical_warning, CriticalWarning::kTemperature);
  co_await host.leave_all();
}

SIM_TEST_P(Admin, FeaturesOfNamespacesTakeANamespace) {
  co_await serve(registry);
  TestHost host(registry);
  co_await host.arrive();
  Cqe cqe = co_await host.set_feature(Feature::kReservationNoticeMask, 0x6, {}, 1);
  EXPECT_TRUE(cqe.get_status().ok());
  cqe =
      co_await host.get_feature(Feature::kReservationNoticeMask, FeatureSelect::kCurrent, 0, {}, 1);
  EXPECT_EQ(cqe.dw0, 6u);
  cqe = co_await host.set_feature(Feature::kReservationNoticeMask, 0x2, {}, kBroadcastNsid);
  EXPECT_TRUE(cqe.get_status().ok());
  cqe =
      co_await host.get_feature(Feature::kReservationNoticeMask, FeatureSelect::kCurrent, 0, {}, 1);
  EXPECT_EQ(cqe.dw0, 2u);
  cqe =
      co_await host.get_feature(Feature::kReservationNoticeMask, FeatureSelect::kDefault, 0, {}, 1);
  EXPECT_EQ(cqe.dw0, 0u);
  cqe = co_await host.set_feature(Feature::kReservationNoticeMask, 1, {}, 1);
  EXPECT_EQ(cqe.get_status(), StatusCode::kInvalidField);
  cqe = co_await host.set_feature(Feature::kReservationNoticeMask, 2, {}, 9);
  EXPECT_EQ(cqe.get_status(), StatusCode::kInvalidNamespaceOrFormat);
  cqe = co_await host.set_feature(Feature::kReservationPersistence, 1, {}, 1);
  EXPECT_EQ(cqe.get_status(), StatusCode::kInvalidField) << "nothing is kept here";
  cqe = co_await host.set_feature(Feature::kArbitration, 1, {}, 1);
  EXPECT_EQ(cqe.get_status(), final_status(StatusCode::kFeatureNotNamespaceSpecific).with_more());
  co_await host.leave_all();
}

}  // namespace
}  // namespace cairn::nvme
