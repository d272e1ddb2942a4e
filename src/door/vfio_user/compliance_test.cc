// SPDX-License-Identifier: Apache-2.0
// What compliance suites ask of a controller on PCI, command by command: queues made and deleted
// wrongly, identify, features, logs, aborts and events, data pointers, fused pairs (NVMe Base 2.0,
// 4.1.1, 5 and 6; NVMe over PCIe 1.0, 3).
#include <gtest/gtest.h>

#include <array>
#include <string_view>
#include <vector>

#include "door/vfio_user/controller.h"
#include "door/vfio_user/controller_testing.h"
#include "nvme/format/event_format.h"
#include "nvme/format/feature_format.h"
#include "nvme/format/identify_format.h"
#include "nvme/format/log_format.h"
#include "testing/sim_test.h"

namespace cairn::door::vfio_user {
namespace {

using env::Env;
using nvme::AdminOpcode;
using nvme::IoOpcode;
using nvme::Registry;
using nvme::Sqe;
using nvme::StatusCode;
using task::Task;

class PciCompliance : public ControllerTest {};
INSTANTIATE_TEST_SUITE_P(Cores, PciCompliance, ::testing::Values(1, 2));

constexpr uint16_t kEntriesMax = 128;  // of a queue here: CAP.MQES is one less

struct Case {
  std::string_view what;
  Sqe sqe;
  StatusCode expected = StatusCode::kSuccess;
};

Task<void> expect_all(Guest& guest, std::vector<Case> cases) {
  for (const Case& each : cases) {
    const StatusCode status = co_await guest.run_admin(each.sqe);
    EXPECT_EQ(status, each.expected) << each.what;
  }
}

Sqe admin(AdminOpcode opcode, uint32_t nsid = 0) {
  Sqe sqe;
  sqe.opcode = static_cast<uint8_t>(opcode);
  sqe.nsid = nsid;
  return sqe;
}

uint64_t data_of(const Guest& guest) { return guest.driver->data().address; }

Sqe create_completion(const Guest& guest, nvme::CompletionQueueFields fields) {
  Sqe sqe = admin(AdminOpcode::kCreateCompletionQueue);
  if (fields.address == 0) fields.address = data_of(guest) + fields.id * 0x4000u;
  fields.encode(sqe);
  return sqe;
}
Sqe create_submission(const Guest& guest, nvme::SubmissionQueueFields fields) {
  Sqe sqe = admin(AdminOpcode::kCreateSubmissionQueue);
  if (fields.address == 0) fields.address = data_of(guest) + 0x2000 + fields.id * 0x4000u;
  fields.encode(sqe);
  return sqe;
}
Sqe delete_queue(AdminOpcode opcode, uint16_t id) {
  Sqe sqe = admin(opcode);
  sqe.cdw10 = uint32_t{id};
  return sqe;
}
Sqe identify(const Guest& guest, nvme::Cns cns, uint32_t nsid = 0) {
  Sqe sqe = admin(AdminOpcode::kIdentify, nsid);
  nvme::IdentifyFields{.cns = cns}.encode(sqe);
  Driver::point(sqe, data_of(guest), 4096, {});
  return sqe;
}
Sqe with_prps(Sqe sqe, uint64_t first, uint64_t second) {
  nvme::PrpPair{.first = first, .second = second}.encode(sqe);
  return sqe;
}

// --- queues -------------------------------------------------------------------------------------

Task<void> completion_queues(Env& env, Registry& registry) {
  Guest guest(env, {.driver = {.queues = 2}});
  co_await guest.start(registry);
  co_await expect_all(guest, {{"room", delete_queue(AdminOpcode::kDeleteSubmissionQueue, 2)},
                              {"room", delete_queue(AdminOpcode::kDeleteCompletionQueue, 2)}});
  Sqe scattered = create_completion(guest, {.id = 2, .size = 15});
  scattered.cdw11 = scattered.cdw11 & ~1u;
  const uint64_t odd = data_of(guest) + 8;
  co_await expect_all(
      guest,
      {
          {"id 0", create_completion(guest, {.id = 0, .size = 15}), StatusCode::kInvalidQueueId},
          {"an id that is taken", create_completion(guest, {.id = 1, .size = 15}),
           StatusCode::kInvalidQueueId},
          {"an id that was not granted", create_completion(guest, {.id = 300, .size = 15}),
           StatusCode::kInvalidQueueId},
          {"one entry", create_completion(guest, {.id = 2, .size = 0}),
           StatusCode::kInvalidQueueSize},
          {"one entry too many", create_completion(guest, {.id = 2, .size = kEntriesMax}),
           StatusCode::kInvalidQueueSize},
          {"not contiguous", scattered, StatusCode::kInvalidField},
          {"a vector too far",
           create_completion(guest, {.id = 2, .size = 15, .vector = 8, .interrupts = true}),
           StatusCode::kInvalidInterruptVector},
          {"a page that begins within one",
           create_completion(guest, {.id = 2, .size = 15, .address = odd}),
           StatusCode::kPrpOffsetInvalid},
          {"all entries there may be",
           create_completion(guest, {.id = 2, .size = kEntriesMax - 1})},
          {"of none", delete_queue(AdminOpcode::kDeleteCompletionQueue, 0),
           StatusCode::kInvalidQueueId},
          {"of one not there", delete_queue(AdminOpcode::kDeleteCompletionQueue, 3),
           StatusCode::kInvalidQueueId},
          {"of one in use", delete_queue(AdminOpcode::kDeleteCompletionQueue, 1),
           StatusCode::kInvalidQueueDeletion},
          {"of one", delete_queue(AdminOpcode::kDeleteCompletionQueue, 2)},
          {"of one that was", delete_queue(AdminOpcode::kDeleteCompletionQueue, 2),
           StatusCode::kInvalidQueueId},
      });
  co_await guest.close();
}
TEST_P(PciCompliance, CompletionQueuesAreMadeAndDeletedAsTheyShould) {
  subsystem.queue_entries_max = kEntriesMax;
  run(completion_queues);
}

Task<void> submission_queues(Env& env, Registry& registry) {
  Guest guest(env, {.driver = {.queues = 2}});
  co_await guest.start(registry);
  Sqe scattered = create_submission(guest, {.id = 2, .size = 15, .completion = 1});
  scattered.cdw11 = scattered.cdw11 & ~1u;
  const auto deletion = [](uint16_t id) {
    return delete_queue(AdminOpcode::kDeleteSubmissionQueue, id);
  };
  const auto submission = [&](uint16_t id, uint16_t size, uint16_t completion) {
    return create_submission(guest, {.id = id, .size = size, .completion = completion});
  };
  co_await expect_all(
      guest,
      {
          {"of the admin queue", deletion(0), StatusCode::kInvalidQueueId},
          {"of one", deletion(2)},
          {"of one that was", deletion(2), StatusCode::kInvalidQueueId},
          {"one entry", submission(2, 0, 1), StatusCode::kInvalidQueueSize},
          {"one entry too many", submission(2, kEntriesMax, 1), StatusCode::kInvalidQueueSize},
          {"for the admin queue", submission(2, 15, 0), StatusCode::kInvalidQueueId},
          {"for a queue not granted", submission(2, 15, 300), StatusCode::kInvalidQueueId},
          {"for a queue of which there is none", submission(2, 15, 2)},
          {"of it again", deletion(2)},
          {"of its completions", delete_queue(AdminOpcode::kDeleteCompletionQueue, 2)},
          {"for a queue that was", submission(2, 15, 2), StatusCode::kCompletionQueueInvalid},
          {"not contiguous", scattered, StatusCode::kInvalidField},
          {"an id that is taken", submission(1, 15, 1), StatusCode::kInvalidQueueId},
          // Two on one completion queue.
          {"all entries there may be", submission(2, kEntriesMax - 1, 1)},
          {"of the first", deletion(1)},
          {"of their completions", delete_queue(AdminOpcode::kDeleteCompletionQueue, 1),
           StatusCode::kInvalidQueueDeletion},
          {"of the second", deletion(2)},
          {"of their completions at last", delete_queue(AdminOpcode::kDeleteCompletionQueue, 1)},
      });
  co_await guest.close();
}
TEST_P(PciCompliance, SubmissionQueuesAreMadeAndDeletedAsTheyShould) {
  subsystem.queue_entries_max = kEntriesMax;
  run(submission_queues);
}

Sqe set_feature(nvme::Feature feature, uint32_t value) {
  Sqe sqe = admin(AdminOpcode::kSetFeatures);
  nvme::SetFeaturesFields{.feature = feature, .value = value}.encode(sqe);
  return sqe;
}
Sqe get_feature(nvme::Feature feature) {
  Sqe sqe = admin(AdminOpcode::kGetFeatures);
  nvme::GetFeaturesFields{.feature = feature}.encode(sqe);
  return sqe;
}

SIM_TEST_P(PciCompliance, AsManyQueuesAreMadeAsWereGranted) {
  Guest guest(env, {.driver = {.queues = 0}, .memory = 8_MiB});
  co_await guest.start(registry);
  constexpr auto kNumber = nvme::Feature::kNumberOfQueues;
  co_await expect_all(guest, {
                                 {"more submission queues than a number has",
                                  set_feature(kNumber, 0x0000'ffff), StatusCode::kInvalidField},
                                 {"more completion queues", set_feature(kNumber, 0xffff'0000),
                                  StatusCode::kInvalidField},
                             });
  const Sqe all = set_feature(kNumber, 0xfffe'fffe);
  const Result<nvme::Cqe> granted = co_await guest.driver->admin(all);
  EXPECT_TRUE(granted && granted->get_status().ok());
  const auto count =
      static_cast<uint16_t>(nvme::NumberOfQueues::decode(granted->dw0).submission + 1);
  EXPECT_GE(count, 1);
  for (uint32_t id = 1; id <= count + 1u; ++id) {
    const auto number = static_cast<uint16_t>(id);
    const uint64_t at = data_of(guest) + number * 0x2000u;
    const StatusCode made = co_await guest.run_admin(
        create_completion(guest, {.id = number, .size = 15, .address = at}));
    EXPECT_EQ(made, number <= count ? StatusCode::kSuccess : StatusCode::kInvalidQueueId);
    if (number > count) break;
    const StatusCode both = co_await guest.run_admin(create_submission(
        guest, {.id = number, .size = 15, .completion = number, .address = at + 0x1000}));
    EXPECT_EQ(both, StatusCode::kSuccess);
  }
  co_await expect_all(guest, {{"after queues were made", all, StatusCode::kCommandSequenceError}});
  co_await guest.close();
}

// --- what a controller says of itself -----------------------------------------------------------

SIM_TEST_P(PciCompliance, IdentifyIsAnsweredOrRefusedAsItShould) {
  Guest guest(env, {});
  co_await guest.start(registry);
  const uint64_t data = data_of(guest);
  Sqe fused = identify(guest, nvme::Cns::kController);
  fused.set_fuse(nvme::Fuse::kFirst);
  Sqe fused_second = fused;
  fused_second.set_fuse(nvme::Fuse::kSecond);
  Sqe by_sgl = identify(guest, nvme::Cns::kController);
  by_sgl.set_psdt(nvme::Psdt::kSgl);
  by_sgl.sgl1 = nvme::SglDescriptor::data(data, 4096);
  const Sqe whole = identify(guest, nvme::Cns::kController);
  co_await expect_all(
      guest,
      {
          {"controller", whole},
          {"fused", fused, StatusCode::kInvalidField},
          {"fused, the second", fused_second, StatusCode::kInvalidField},
          {"by SGL", by_sgl, StatusCode::kInvalidField},
          {"in two pages", with_prps(whole, data + 3072, data + 8192)},
          {"a quarter of it", with_prps(whole, data + 3072, 0), StatusCode::kDataTransferError},
          {"a second page that begins within one", with_prps(whole, data + 3072, data + 8),
           StatusCode::kPrpOffsetInvalid},
          {"an address of odd bytes", with_prps(whole, data + 2, data + 4096),
           StatusCode::kPrpOffsetInvalid},
          {"nowhere", with_prps(whole, 0x1000, 0), StatusCode::kDataTransferError},
          {"namespace", identify(guest, nvme::Cns::kNamespace, 1)},
          {"namespace 0", identify(guest, nvme::Cns::kNamespace, 0),
           StatusCode::kInvalidNamespaceOrFormat},
          {"every namespace", identify(guest, nvme::Cns::kNamespace, nvme::kBroadcastNsid),
           StatusCode::kInvalidNamespaceOrFormat},
          {"a namespace beyond the last", identify(guest, nvme::Cns::kNamespace, 0x7fff'ffff),
           StatusCode::kInvalidNamespaceOrFormat},
          {"namespaces", identify(guest, nvme::Cns::kActiveNamespaces)},
          {"descriptors", identify(guest, nvme::Cns::kNamespaceDescriptors, 1)},
          {"what there is none of", identify(guest, static_cast<nvme::Cns>(0x55)),
           StatusCode::kInvalidField},
          {"a command of Fabrics", admin(AdminOpcode::kFabrics, 4), StatusCode::kInvalidOpcode},
          {"a command that is none", admin(static_cast<AdminOpcode>(0xff)),
           StatusCode::kInvalidOpcode},
      });
  co_await guest.close();
}

SIM_TEST_P(PciCompliance, MandatoryFeaturesAreThere) {
  Guest guest(env, {});
  co_await guest.start(registry);
  // NVMe Base 2.0, figure 318: mandatory for an I/O controller.
  for (const auto feature : {nvme::Feature::kArbitration, nvme::Feature::kPowerManagement,
                             nvme::Feature::kTemperatureThreshold, nvme::Feature::kErrorRecovery,
                             nvme::Feature::kWriteCache, nvme::Feature::kNumberOfQueues,
                             nvme::Feature::kInterruptCoalescing, nvme::Feature::kInterruptVector,
                             nvme::Feature::kWriteAtomicity, nvme::Feature::kEventConfiguration}) {
    Sqe get = get_feature(feature);
    StatusCode status = co_await guest.run_admin(get);
    EXPECT_EQ(status, StatusCode::kSuccess) << static_cast<int>(feature);
    for (const auto select : {nvme::FeatureSelect::kDefault, nvme::FeatureSelect::kCapabilities}) {
      nvme::GetFeaturesFields{.feature = feature, .select = select}.encode(get);
      status = co_await guest.run_admin(get);
      EXPECT_EQ(status, StatusCode::kSuccess) << static_cast<int>(feature);
    }
  }
  co_await expect_all(
      guest, {
                 {"what there is none of", get_feature(static_cast<nvme::Feature>(0xbf)),
                  StatusCode::kInvalidField},
                 {"setting that", set_feature(static_cast<nvme::Feature>(0xbf), 0),
                  StatusCode::kInvalidField},
                 {"a power state too far", set_feature(nvme::Feature::kPowerManagement, 31),
                  StatusCode::kInvalidField},
                 {"a vector too far", set_feature(nvme::Feature::kInterruptVector, 4000),
                  StatusCode::kInvalidField},
                 {"write atomicity", set_feature(nvme::Feature::kWriteAtomicity, 1)},
             });
  const Result<nvme::Cqe> atomicity =
      co_await guest.driver->admin(get_feature(nvme::Feature::kWriteAtomicity));
  EXPECT_TRUE(atomicity && atomicity->dw0 == 1u);
  co_await guest.close();
}

Sqe get_log(const Guest& guest, nvme::LogPage page, uint32_t bytes, uint64_t offset = 0) {
  Sqe sqe = admin(AdminOpcode::kGetLogPage, nvme::kBroadcastNsid);
  nvme::GetLogFields{.page = page, .dwords = bytes / 4 - 1, .offset = offset}.encode(sqe);
  Driver::point(sqe, data_of(guest), bytes, {});
  return sqe;
}

SIM_TEST_P(PciCompliance, MandatoryLogsAreThere) {
  Guest guest(env, {});
  co_await guest.start(registry);
  const auto error = nvme::LogPage::kError;
  co_await expect_all(
      guest,
      {
          {"errors", get_log(guest, error, 64)},
          {"errors, the second", get_log(guest, error, 64, 64)},
          {"health", get_log(guest, nvme::LogPage::kHealth, 512)},
          {"firmware", get_log(guest, nvme::LogPage::kFirmware, 512)},
          {"beyond the end", get_log(guest, nvme::LogPage::kHealth, 64, 1 << 20),
           StatusCode::kInvalidField},
          {"an offset of odd bytes", get_log(guest, error, 64, 2), StatusCode::kInvalidField},
          {"what there is none of", get_log(guest, static_cast<nvme::LogPage>(0xbf), 64),
           StatusCode::kInvalidLogPage},
      });
  co_await guest.close();
}

// --- aborts and events --------------------------------------------------------------------------

SIM_TEST_P(PciCompliance, AbortOfNothingAbortsNothing) {
  Guest guest(env, {});
  co_await guest.start(registry);
  for (const uint16_t queue : {0, 1, 2, 500}) {
    Sqe sqe = admin(AdminOpcode::kAbort);
    nvme::AbortFields{.sqid = queue, .cid = 77}.encode(sqe);
    const Result<nvme::Cqe> aborted = co_await guest.driver->admin(sqe);
    EXPECT_TRUE(aborted.has_value());
    if (!aborted) continue;
    EXPECT_EQ(aborted->get_status().code(), StatusCode::kSuccess) << queue;
    EXPECT_EQ(aborted->dw0 & 1, 1u) << "nothing was aborted";
  }
  co_await guest.close();
}

SIM_TEST_P(PciCompliance, EventRequestsAreLimited) {
  Guest guest(env, {});
  co_await guest.start(registry);
  DriverQueue& queue = guest.driver->admin_queue();
  const uint16_t limit = guest.driver->identity().events_max + 1u;
  for (uint16_t i = 0; i <= limit; ++i) {
    Sqe sqe = admin(AdminOpcode::kAsynchronousEventRequest);
    sqe.cid = static_cast<uint16_t>(1000 + i);
    queue.submit(sqe);
  }
  queue.ring();
  co_await task::sleep_for(env, 50_us);
  std::vector<nvme::Cqe> told;
  queue.poll([&](const nvme::Cqe& cqe) { told.push_back(cqe); });
  EXPECT_EQ(told.size(), 1u);
  if (!told.empty()) {
    EXPECT_EQ(told[0].cid, 1000 + limit);
    EXPECT_EQ(told[0].get_status().code(), StatusCode::kEventRequestLimitExceeded);
  }
  co_await guest.close();
}

// --- data and pairs -----------------------------------------------------------------------------

SIM_TEST_P(PciCompliance, DataPointersAreTakenAsTheyAre) {
  Guest guest(env, {});
  co_await guest.start(registry);
  const uint64_t data = data_of(guest);
  const Sqe one = guest.io(IoOpcode::kRead, 0, 1, 0);
  const Sqe list = guest.io(IoOpcode::kRead, 0, 64, 0);
  // The list is the last but one page of data, and goes on in the last.
  const uint64_t last = data + guest.driver->data().bytes.size() - 8192;
  struct Read {
    std::string_view what;
    Sqe sqe;
    StatusCode expected = StatusCode::kSuccess;
  };
  const Read reads[] = {
      {"one block", one},
      {"at four bytes", with_prps(one, data + 4, 0)},
      {"at two bytes", with_prps(one, data + 2, 0), StatusCode::kPrpOffsetInvalid},
      {"across pages", with_prps(one, data + 4096 - 256, data + 8192)},
      {"across pages, into the middle", with_prps(one, data + 4096 - 256, data + 8192 + 512),
       StatusCode::kPrpOffsetInvalid},
      {"a list", list},
      {"a list that ends a page", with_prps(list, data, last + 4096 - 7 * 8),
       StatusCode::kDataTransferError},
      {"a list at odd bytes", with_prps(list, data, last + 4), StatusCode::kPrpOffsetInvalid},
      {"a list nowhere", with_prps(list, data, 0x1000), StatusCode::kDataTransferError},
      {"blocks beyond the last", guest.io(IoOpcode::kRead, 8192, 1, 0), StatusCode::kLbaOutOfRange},
      {"blocks across the end", guest.io(IoOpcode::kRead, 8191, 2, 0), StatusCode::kLbaOutOfRange},
  };
  for (const Read& read : reads) {
    const StatusCode status = co_await guest.run(read.sqe);
    EXPECT_EQ(status, read.expected) << read.what;
  }
  Sqe nowhere = one;
  nowhere.nsid = 9;
  const StatusCode status = co_await guest.run(nowhere);
  EXPECT_EQ(status, StatusCode::kInvalidNamespaceOrFormat);
  co_await guest.close();
}

// What both of a pair were answered.
Task<std::array<StatusCode, 2>> run_pair(Env& env, Guest& guest, Sqe first, Sqe second) {
  DriverQueue& queue = guest.driver->queue(1);
  first.cid = 1;
  second.cid = 2;
  queue.submit(first);
  queue.submit(second);
  queue.ring();
  std::array<StatusCode, 2> told{};
  for (size_t count = 0; count < 2;) {
    co_await task::sleep_for(env, 5_us);
    count += queue.poll(
        [&](const nvme::Cqe& cqe) { told[cqe.cid == 1 ? 0 : 1] = cqe.get_status().code(); });
  }
  co_return told;
}

SIM_TEST_P(PciCompliance, ComparedAndWrittenInAPair) {
  Guest guest(env, {});
  co_await guest.start(registry);
  fill_pattern(guest.data(0, 512), 1);
  fill_pattern(guest.data(4096, 512), 2);
  const StatusCode written = co_await guest.run(guest.io(IoOpcode::kWrite, 5, 1, 0));
  EXPECT_EQ(written, StatusCode::kSuccess);
  Sqe compare = guest.io(IoOpcode::kCompare, 5, 1, 0);
  compare.set_fuse(nvme::Fuse::kFirst);
  Sqe write = guest.io(IoOpcode::kWrite, 5, 1, 4096);
  write.set_fuse(nvme::Fuse::kSecond);
  using Told = std::array<StatusCode, 2>;
  Told told = co_await run_pair(env, guest, compare, write);
  EXPECT_EQ(told, (Told{StatusCode::kSuccess, StatusCode::kSuccess}));
  // It is another block now.
  told = co_await run_pair(env, guest, compare, write);
  EXPECT_EQ(told, (Told{StatusCode::kCompareFailure, StatusCode::kAbortedFailedFused}));
  // Halves without the other half.
  told = co_await run_pair(env, guest, compare, guest.io(IoOpcode::kRead, 5, 1, 8192));
  EXPECT_EQ(told, (Told{StatusCode::kAbortedMissingFused, StatusCode::kSuccess}));
  EXPECT_TRUE(std::ranges::equal(guest.data(8192, 512), guest.data(4096, 512)));
  const StatusCode alone = co_await guest.run(write);
  EXPECT_EQ(alone, StatusCode::kAbortedMissingFused);
  co_await guest.close();
}

}  // namespace
}  // namespace cairn::door::vfio_user
