// SPDX-License-Identifier: Apache-2.0
// Namespaces come, change and go while hosts are connected.
#include <gtest/gtest.h>

#include "nvme/controller/registry_testing.h"
#include "nvme/format/ana_format.h"
#include "nvme/format/identify_controller_format.h"
#include "nvme/format/identify_namespace_format.h"
#include "nvme/format/limits.h"
#include "testing/drive/stubborn.h"
#include "testing/sim_test.h"

namespace cairn::nvme {
namespace {

using env::Env;
using task::Task;

class Namespaces : public RegistryTest {};
INSTANTIATE_TEST_SUITE_P(Cores, Namespaces, ::testing::Values(1, 3));

NamespaceOptions on(const char* drive) {
  NamespaceOptions options;
  options.drive = *drive::Spec::parse(drive);
  return options;
}

Task<Errc> failure_of_adding(Registry& registry, NamespaceOptions options) {
  const Result<uint32_t> added = co_await registry.add_namespace(kTestNqn, options);
  EXPECT_FALSE(added);
  co_return added ? Errc::kInvalid : added.error().code();
}

SIM_TEST_P(Namespaces, IdsAreGivenKeptAndChecked) {
  co_await serve(registry);
  NamespaceOptions options = on("mem:size=64K");
  options.nsid = 3;
  Result<uint32_t> added = co_await registry.add_namespace(kTestNqn, options);
  EXPECT_EQ(added.value_or(0), 3u);
  added = co_await registry.add_namespace(kTestNqn, on("mem:size=64K"));
  EXPECT_EQ(added.value_or(0), 2u) << "the lowest free";
  Errc why = co_await failure_of_adding(registry, options);
  EXPECT_EQ(why, Errc::kExists);
  options.nsid = kNsidMax + 1;
  why = co_await failure_of_adding(registry, options);
  EXPECT_EQ(why, Errc::kInvalid);
  options.nsid = 0;
  options.ana_group = 0;
  why = co_await failure_of_adding(registry, options);
  EXPECT_EQ(why, Errc::kInvalid);
  options.ana_group = 1;
  options.nguid = registry.namespaces(kTestNqn)[0].options.nguid;
  why = co_await failure_of_adding(registry, options);
  EXPECT_EQ(why, Errc::kExists);
  added = co_await registry.add_namespace("nqn.none", on("mem:size=64K"));
  EXPECT_EQ(added.error(), Errc::kNotFound);
  EXPECT_EQ(registry.namespaces(kTestNqn).size(), 3u);
  EXPECT_TRUE(registry.namespaces("nqn.none").empty());
  for (const NamespaceInfo& info : registry.namespaces(kTestNqn)) {
    EXPECT_NE(info.options.nguid, (std::array<uint8_t, 16>{}));
    EXPECT_NE(info.options.uuid, (std::array<uint8_t, 16>{}));
  }
}

SIM_TEST_P(Namespaces, AFileIsServedOnce) {
  co_await serve(registry);
  Result<uint32_t> added = co_await registry.add_namespace(kTestNqn, on("file:/d0,size=1M"));
  EXPECT_EQ(added.value_or(0), 2u);
  added = co_await registry.add_namespace(kTestNqn, on("file:/d0"));
  EXPECT_EQ(added.error(), Errc::kExists);
  EXPECT_NE(added.error().text().find("file is served"), std::string::npos);
  SubsystemOptions other;
  other.nqn = "nqn.2026-11.io.cairn:other";
  EXPECT_TRUE(registry.add_subsystem(other));
  added = co_await registry.add_namespace(other.nqn, on("file:/d0,block=512"));
  EXPECT_EQ(added.error(), Errc::kExists) << "not under another name either";
  added = co_await registry.add_namespace(kTestNqn, on("file:/missing"));
  EXPECT_EQ(added.error(), Errc::kNotFound);
  Result<void> removed = co_await registry.remove_namespace(kTestNqn, 2);
  EXPECT_TRUE(removed);
  added = co_await registry.add_namespace(other.nqn, on("file:/d0"));
  EXPECT_EQ(added.value_or(0), 1u);
  removed = co_await registry.remove_namespace(kTestNqn, 2);
  EXPECT_EQ(removed.error(), Errc::kNotFound);
}

SIM_TEST_P(Namespaces, ASourceThatIsLentStaysOpen) {
  co_await serve(registry);
  std::unique_ptr<drive::Source> source =
      drive::Source::make(env, *drive::Spec::parse("mem:size=64K")).value();
  NamespaceOptions options;
  options.source = source.get();
  options.stack = "limit(mem:size=64K, iops=5)";
  Result<uint32_t> added = co_await registry.add_namespace(kTestNqn, options);
  EXPECT_EQ(added.value_or(0), 2u);
  NamespaceInfo info = registry.namespaces(kTestNqn)[1];
  EXPECT_EQ(info.geometry.bytes(), 65536u);
  EXPECT_EQ(info.options.drive_text(), options.stack);
  const auto nguid = info.options.nguid;
  Result<void> done = co_await registry.resize_namespace(kTestNqn, 2, 131072);
  EXPECT_TRUE(done);
  done = co_await registry.remove_namespace(kTestNqn, 2);
  EXPECT_TRUE(done);
  std::unique_ptr<drive::Drive> drive = source->open(env).value();
  EXPECT_EQ(drive->geometry().bytes(), 131072u) << "it is as it was left";
  co_await drive->close();
  options.stack = "priority(mem:size=64K)";
  added = co_await registry.add_namespace(kTestNqn, options);
  EXPECT_EQ(added.value_or(0), 2u);
  info = registry.namespaces(kTestNqn)[1];
  EXPECT_EQ(info.options.nguid, nguid) << "another stack in its place is the same drive";
  done = co_await registry.remove_namespace(kTestNqn, 2);
  EXPECT_TRUE(done);
}

// Namespace 2 is the first host's alone.
SIM_TEST_P(Namespaces, OneWithAnOwnerIsThereForItAlone) {
  co_await serve(registry);
  TestHost owner(registry, 1);
  TestHost other(registry, 2);
  co_await owner.arrive();
  co_await other.arrive();
  NamespaceOptions options = on("mem:size=64K");
  options.owner = owner.data.host_nqn.get().value();
  const Result<uint32_t> added = co_await registry.add_namespace(kTestNqn, options);
  EXPECT_EQ(added.value_or(0), 2u);
  const auto told = co_await owner.log_as<ChangedNamespacesPage>(LogPage::kChangedNamespaces);
  EXPECT_EQ(told.nsids[0], 2u);
  const auto untold = co_await other.log_as<ChangedNamespacesPage>(LogPage::kChangedNamespaces);
  EXPECT_EQ(untold.nsids[0], 0u);
  auto list = co_await owner.identify<NamespaceList>(Cns::kActiveNamespaces);
  EXPECT_EQ(list.nsids[1], 2u);
  list = co_await other.identify<NamespaceList>(Cns::kActiveNamespaces);
  EXPECT_EQ(list.nsids[0], 1u);
  EXPECT_EQ(list.nsids[1], 0u);
  auto page = co_await owner.identify<IdentifyNamespace>(Cns::kNamespace, 2);
  EXPECT_EQ(page.size, 16u);
  page = co_await other.identify<IdentifyNamespace>(Cns::kNamespace, 2);
  EXPECT_EQ(page.size, 0u) << "as one that is not there";
  co_await other.identify<NamespaceList>(Cns::kNamespaceDescriptors, 2);
  EXPECT_EQ(other.last.code(), StatusCode::kInvalidNamespaceOrFormat);
  const auto health = co_await other.log_as<HealthPage>(LogPage::kHealth, 2);
  EXPECT_EQ(other.last.code(), StatusCode::kInvalidNamespaceOrFormat);
  EXPECT_EQ(health.host_reads.low, 0u);
  const auto controller = co_await other.identify<IdentifyController>(Cns::kController);
  EXPECT_EQ(controller.capacity.low, 1u << 20);
  Cqe cqe = co_await other.get_feature(Feature::kReservationPersistence, FeatureSelect::kCurrent, 0,
                                       {}, 2);
  EXPECT_EQ(cqe.get_status().code(), StatusCode::kInvalidNamespaceOrFormat);
  cqe = co_await other.set_feature(Feature::kReservationNoticeMask, 0, {}, 2);
  EXPECT_EQ(cqe.get_status().code(), StatusCode::kInvalidNamespaceOrFormat);
  cqe = co_await other.set_feature(Feature::kReservationPersistence, 0, {}, 2);
  EXPECT_EQ(cqe.get_status().code(), StatusCode::kInvalidNamespaceOrFormat);
  const size_t size = sizeof(AnaHeader) + sizeof(AnaGroup);
  std::vector<std::byte> ana = co_await other.log({.page = LogPage::kAna}, size);
  EXPECT_EQ(load<AnaGroup>(Bytes(ana).subspan(sizeof(AnaHeader))).namespaces, 1u);
  ana = co_await owner.log({.page = LogPage::kAna}, size);
  EXPECT_EQ(load<AnaGroup>(Bytes(ana).subspan(sizeof(AnaHeader))).namespaces, 2u);
  co_await owner.leave_all();
  co_await other.leave_all();
}

SIM_TEST_P(Namespaces, SubsystemsNeedAProperName) {
  co_await serve(registry);
  SubsystemOptions options;
  options.nqn = kTestNqn;
  EXPECT_EQ(registry.add_subsystem(options).error(), Errc::kExists);
  for (const std::string_view nqn :
       std::initializer_list<std::string_view>{"", "cairn", "nqn.2026-11.", kDiscoveryNqn}) {
    options.nqn = nqn;
    EXPECT_EQ(registry.add_subsystem(options).error(), Errc::kInvalid);
  }
  options.nqn = "nqn.2026-11.io.cairn:b";
  options.queue_entries_max = 1;
  EXPECT_EQ(registry.add_subsystem(options).error(), Errc::kInvalid);
  co_return;
}

SIM_TEST_P(Namespaces, HostsHearOfChangesOncePerRead) {
  co_await serve(registry);
  TestHost host(registry);
  TestHost deaf(registry, 2);
  co_await host.arrive();
  co_await deaf.arrive();
  Cqe cqe = co_await deaf.set_feature(Feature::kEventConfiguration, 0);
  EXPECT_TRUE(cqe.get_status().ok());
  const Sqe ask = Sqe::make(AdminOpcode::kAsynchronousEventRequest);
  Task<Cqe> unheard = deaf.admin(ask);
  Task<Cqe> first = host.admin(ask);
  Result<uint32_t> added = co_await registry.add_namespace(kTestNqn, on("mem:size=64K"));
  EXPECT_EQ(added.value_or(0), 2u);
  cqe = co_await first;
  EXPECT_EQ(cqe.dw0, 0x0004'0002u);
  // A second change before the page is read is in the page, not in another event.
  Task<Cqe> second = host.admin(ask);
  added = co_await registry.add_namespace(kTestNqn, on("mem:size=64K"));
  EXPECT_EQ(added.value_or(0), 3u);
  co_await let_pass(env, 1_ms);
  EXPECT_FALSE(second.is_done());
  std::vector<std::byte> page =
      co_await host.log({.page = LogPage::kChangedNamespaces, .retain_event = true}, 4096);
  EXPECT_EQ(load<ChangedNamespacesPage>(page).nsids[1], 3u);
  const Result<void> removed = co_await registry.remove_namespace(kTestNqn, 2);
  EXPECT_TRUE(removed);
  EXPECT_FALSE(second.is_done()) << "read with RAE";
  page = co_await host.log({.page = LogPage::kChangedNamespaces}, 4096);
  EXPECT_EQ(load<ChangedNamespacesPage>(page).nsids[0], 2u);
  EXPECT_EQ(load<ChangedNamespacesPage>(page).nsids[1], 3u);
  EXPECT_EQ(load<ChangedNamespacesPage>(page).nsids[2], 0u);
  page = co_await host.log({.page = LogPage::kChangedNamespaces}, 4096);
  EXPECT_EQ(load<ChangedNamespacesPage>(page).nsids[0], 0u);
  const Result<void> gone = co_await registry.remove_namespace(kTestNqn, 3);
  EXPECT_TRUE(gone);
  cqe = co_await second;
  EXPECT_EQ(cqe.dw0, 0x0004'0002u);
  EXPECT_FALSE(unheard.is_done());
  co_await host.leave_all();
  co_await deaf.leave_all();
  co_await unheard;
}

// Blocks of namespace 1 as each core sees it.
Task<std::vector<uint64_t>> blocks_on_cores(Env& env, TestHost& host, uint32_t nsid) {
  std::vector<uint64_t> blocks;
  for (uint32_t core = 0; core < env.core_count(); ++core) {
    const auto id = static_cast<uint16_t>(core + 1);
    const ConnectReply reply = co_await host.connect_queue(id, CoreId(core));
    CoreNamespaces* spaces = reply.namespaces;
    blocks.push_back(co_await env::call_on(env, CoreId(core), [spaces, nsid](Env&) -> uint64_t {
      CoreNamespace* space = spaces->find(nsid);
      return space == nullptr ? 0 : space->drive->geometry().blocks;
    }));
    co_await host.leave(id);
  }
  co_return blocks;
}

SIM_TEST_P(Namespaces, ResizingReachesEveryCoreAndHost) {
  co_await serve(registry);
  Result<uint32_t> added = co_await registry.add_namespace(kTestNqn, on("file:/d0,size=1M"));
  EXPECT_EQ(added.value_or(0), 2u);
  TestHost host(registry);
  co_await host.arrive();
  Task<Cqe> event = host.admin(Sqe::make(AdminOpcode::kAsynchronousEventRequest));
  const std::array<uint8_t, 16> nguid = registry.namespaces(kTestNqn)[1].options.nguid;
  for (const uint64_t size : {2_MiB, 512_KiB}) {
    const Result<void> resized = co_await registry.resize_namespace(kTestNqn, 2, size);
    EXPECT_TRUE(resized);
    const std::vector<uint64_t> blocks = co_await blocks_on_cores(env, host, 2);
    EXPECT_EQ(blocks, std::vector<uint64_t>(env.core_count(), size / 4096));
    const auto page = co_await host.identify<IdentifyNamespace>(Cns::kNamespace, 2);
    EXPECT_EQ(page.size, size / 4096);
    EXPECT_EQ(page.nguid, nguid);
    EXPECT_EQ(registry.namespaces(kTestNqn)[1].options.drive.size, size);
  }
  const Cqe cqe = co_await event;
  EXPECT_EQ(cqe.dw0, 0x0004'0002u);
  Result<void> refused = co_await registry.resize_namespace(kTestNqn, 2, 1000);
  EXPECT_EQ(refused.error(), Errc::kInvalid);
  refused = co_await registry.resize_namespace(kTestNqn, 2, 0);
  EXPECT_EQ(refused.error(), Errc::kInvalid);
  const Result<void> grown = co_await registry.resize_namespace(kTestNqn, 1, 2_MiB);
  EXPECT_TRUE(grown) << "memory too";
  refused = co_await registry.resize_namespace(kTestNqn, 9, 2_MiB);
  EXPECT_EQ(refused.error(), Errc::kNotFound);
  co_await host.leave_all();
}

SIM_TEST_P(Namespaces, AResizeThatOneCoreRefusesIsUndone) {
  co_await serve(registry);
  const auto source = drive::Source::make(env, *drive::Spec::parse("mem:size=1M"));
  drive::StubbornSource stubborn(**source, CoreId(env.core_count() - 1));
  NamespaceOptions options;
  options.source = &stubborn;
  const Result<uint32_t> added = co_await registry.add_namespace(kTestNqn, options);
  EXPECT_EQ(added.value_or(0), 2u);
  TestHost host(registry);
  co_await host.arrive();
  stubborn.refuse(2_MiB);
  Result<void> resized = co_await registry.resize_namespace(kTestNqn, 2, 2_MiB);
  EXPECT_EQ(resized.error(), Errc::kNoSpace);
  std::vector<uint64_t> blocks = co_await blocks_on_cores(env, host, 2);
  EXPECT_EQ(blocks, std::vector<uint64_t>(env.core_count(), 1_MiB / 4096));
  auto page = co_await host.identify<IdentifyNamespace>(Cns::kNamespace, 2);
  EXPECT_EQ(page.size, 1_MiB / 4096);
  stubborn.refuse(0);
  resized = co_await registry.resize_namespace(kTestNqn, 2, 2_MiB);
  EXPECT_TRUE(resized);
  blocks = co_await blocks_on_cores(env, host, 2);
  EXPECT_EQ(blocks, std::vector<uint64_t>(env.core_count(), 2_MiB / 4096));
  co_await host.leave_all();
  const Result<void> removed = co_await registry.remove_namespace(kTestNqn, 2);
  EXPECT_TRUE(removed);
}

SIM_TEST_P(Namespaces, AnaStatesReachCoresLogAndHosts) {
  co_await serve(registry);
  NamespaceOptions options = on("mem:size=64K");
  options.ana_group = 5;
  Result<uint32_t> added = co_await registry.add_namespace(kTestNqn, options);
  EXPECT_EQ(added.value_or(0), 2u);
  TestHost host(registry);
  co_await host.arrive();
  const ConnectReply reply = co_await host.connect_queue(1, CoreId(env.core_count() - 1));
  Task<Cqe> event = host.admin(Sqe::make(AdminOpcode::kAsynchronousEventRequest));
  Result<void> set = co_await registry.set_ana_state(kTestNqn, 5, AnaState::kInaccessible);
  EXPECT_TRUE(set);
  Cqe cqe = co_await event;
  EXPECT_EQ(cqe.dw0, 0x000c'0302u);
  CoreNamespaces* spaces = reply.namespaces;
  const AnaState there = co_await env::call_on(
      env, CoreId(env.core_count() - 1), [spaces](Env&) { return spaces->find(2)->ana_state; });
  EXPECT_EQ(there, AnaState::kInaccessible);
  const std::vector<std::byte> page = co_await host.log({.page = LogPage::kAna}, 128);
  const auto header = load<AnaHeader>(page);
  EXPECT_EQ(header.change_count, 3u) << "two namespaces and a state";
  EXPECT_EQ(header.groups, 2u);
  const auto first = load<AnaGroup>(Bytes(page).subspan(16));
  EXPECT_EQ(first.group_id, 1u);
  EXPECT_EQ(first.namespaces, 1u);
  EXPECT_EQ(first.state(), AnaState::kOptimized);
  EXPECT_EQ(load<uint32_t>(Bytes(page).subspan(48)), 1u);
  const auto second = load<AnaGroup>(Bytes(page).subspan(52));
  EXPECT_EQ(second.group_id, 5u);
  EXPECT_EQ(first.change_count, 1u);
  EXPECT_EQ(second.change_count, 3u);
  EXPECT_EQ(second.state(), AnaState::kInaccessible);
  EXPECT_EQ(load<uint32_t>(Bytes(page).subspan(84)), 2u);
  const std::vector<std::byte> groups =
      co_await host.log({.page = LogPage::kAna, .specific = kAnaGroupsOnly}, 128);
  EXPECT_EQ(load<AnaGroup>(Bytes(groups).subspan(48)).group_id, 5u);
  EXPECT_EQ(load<AnaGroup>(Bytes(groups).subspan(48)).namespaces, 0u);
  // A namespace that joins the group later is in its state.
  options = on("mem:size=64K");
  options.ana_group = 5;
  added = co_await registry.add_namespace(kTestNqn, options);
  EXPECT_EQ(registry.namespaces(kTestNqn)[2].ana_state, AnaState::kInaccessible);
  set = co_await registry.set_ana_state(kTestNqn, kAnaGroupsMax + 1, AnaState::kOptimized);
  EXPECT_EQ(set.error(), Errc::kInvalid);
  set = co_await registry.set_ana_state("nqn.none", 1, AnaState::kOptimized);
  EXPECT_EQ(set.error(), Errc::kNotFound);
  co_await host.leave_all();
}

Task<Result<void>> hold(CoreNamespace& space, Env& env) {
  EXPECT_TRUE(space.gate.enter());
  const Result<void> slept = co_await task::sleep_for(env, 5_ms);
  space.gate.leave();
  co_return slept;
}

SIM_TEST_P(Namespaces, RemovalWaitsForCommandsInFlight) {
  co_await serve(registry);
  TestHost host(registry);
  co_await host.arrive();
  const CoreId core(env.core_count() - 1);
  const ConnectReply reply = co_await host.connect_queue(1, core);
  CoreNamespaces* spaces = reply.namespaces;
  Task<Result<void>> command =
      env::call_on(env, core, [spaces](Env& there) { return hold(*spaces->find(1), there); });
  co_await let_pass(env, 1_ms);
  const Time before = env.now();
  const Result<void> removed = co_await registry.remove_namespace(kTestNqn, 1);
  EXPECT_TRUE(removed);
  EXPECT_GE(env.now() - before, 3_ms);
  const Result<void> held = co_await command;
  EXPECT_TRUE(held);
  co_await host.leave_all();
}

}  // namespace
}  // namespace cairn::nvme
