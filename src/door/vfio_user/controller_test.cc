// SPDX-License-Identifier: Apache-2.0
#include "door/vfio_user/controller.h"

#include <gtest/gtest.h>

#include "door/vfio_user/controller_testing.h"
#include "nvme/format/event_format.h"
#include "nvme/format/feature_format.h"
#include "testing/sim_test.h"

namespace cairn::door::vfio_user {
namespace {

using env::Env;
using nvme::IoOpcode;
using nvme::Registry;
using nvme::StatusCode;
using task::Task;

constexpr auto kFile = "file:/guest,size=4M,block=4096";

class PciControllers : public ControllerTest {};
INSTANTIATE_TEST_SUITE_P(Cores, PciControllers, ::testing::Values(1, 2));

// Writes and reads back sizes that take one PRP, two and a list, at offsets inside a page.
Task<void> read_back(Guest& guest) {
  for (const uint32_t blocks : {1u, 2u, 3u, 8u, 9u, 17u, 64u}) {
    for (const uint64_t offset : {uint64_t{0}, uint64_t{512}, uint64_t{3076}}) {
      const uint64_t bytes = uint64_t{blocks} * guest.block();
      fill_pattern(guest.data(offset, bytes), static_cast<uint8_t>(blocks + offset));
      StatusCode status = co_await guest.run(guest.io(IoOpcode::kWrite, 100, blocks, offset));
      EXPECT_EQ(status, StatusCode::kSuccess);
      const uint64_t elsewhere = 1_MiB + offset;
      std::ranges::fill(guest.data(elsewhere, bytes), std::byte{0});
      status = co_await guest.run(guest.io(IoOpcode::kRead, 100, blocks, elsewhere));
      EXPECT_EQ(status, StatusCode::kSuccess);
      EXPECT_TRUE(std::ranges::equal(guest.data(offset, bytes), guest.data(elsewhere, bytes)))
          << blocks << " blocks at " << offset;
    }
  }
}

Task<void> serves(Env& env, Registry& registry, GuestOptions options) {
  Guest guest(env, options);
  co_await guest.start(registry);
  co_await read_back(guest);
  EXPECT_EQ(guest.controller().figures().bytes_copied, 0u) << "memory needs no alignment";
  const Result<void> stopped = co_await guest.driver->stop();
  EXPECT_TRUE(stopped);
  EXPECT_STREQ(guest.controller().figures().failure, "");
  co_await guest.close();
}
TEST_P(PciControllers, DriverReadsBackWhatItWrote) {
  run([](Env& env, Registry& registry) { return serves(env, registry, {}); });
}
// Aligned, so that nothing goes through memory of ours.
Task<void> writes_and_reads(Env& env, Registry& registry) {
  Guest guest(env, {.block = 4096});
  co_await guest.start(registry);
  StatusCode status = co_await guest.run(guest.io(IoOpcode::kWrite, 0, 64, 4096));
  EXPECT_EQ(status, StatusCode::kSuccess);
  status = co_await guest.run(guest.io(IoOpcode::kRead, 0, 64, 8192));
  EXPECT_EQ(status, StatusCode::kSuccess);
  co_await guest.close();
}
TEST_P(PciControllers, TellsDrivesThatTheGuestCanChangeItsMemory) {
  is_watched = true;
  drive = "mem:size=4M,block=4096";
  run(writes_and_reads);
  EXPECT_GT(seen->counts().transfers, 0);
  EXPECT_EQ(seen->counts().unstable, seen->counts().transfers);
}
TEST_P(PciControllers, DriverWithShadowDoorbellsReadsBackWhatItWrote) {
  run([](Env& env, Registry& registry) {
    return serves(env, registry, {.driver = {.shadow = true}});
  });
}
TEST_P(PciControllers, DeviceThatIsToldServesToo) {
  run([](Env& env, Registry& registry) { return serves(env, registry, {.is_told = true}); });
}
TEST_P(PciControllers, DeviceThatIsToldAsksToBeRungForShadows) {
  run([](Env& env, Registry& registry) {
    return serves(env, registry, {.is_told = true, .driver = {.shadow = true}});
  });
}

Task<void> on_file(Env& env, Registry& registry) {
  Guest guest(env, {.block = 4096});
  co_await guest.start(registry);
  StatusCode status = co_await guest.run(guest.io(IoOpcode::kWrite, 0, 64, 4096));
  EXPECT_EQ(status, StatusCode::kSuccess);
  status = co_await guest.run(guest.io(IoOpcode::kRead, 0, 64, 8192));
  EXPECT_EQ(status, StatusCode::kSuccess);
  EXPECT_EQ(guest.controller().figures().bytes_copied, 0u) << "aligned data is not copied";
  fill_pattern(guest.data(4, 4096), 9);
  status = co_await guest.run(guest.io(IoOpcode::kWrite, 0, 1, 4));
  EXPECT_EQ(status, StatusCode::kSuccess);
  EXPECT_EQ(guest.controller().figures().bytes_copied, 4096u) << "once";
  status = co_await guest.run(guest.io(IoOpcode::kRead, 0, 1, 8196));
  EXPECT_EQ(status, StatusCode::kSuccess);
  EXPECT_EQ(guest.controller().figures().bytes_copied, 8192u);
  EXPECT_TRUE(std::ranges::equal(guest.data(4, 4096), guest.data(8196, 4096)));
  co_await read_back(guest);
  co_await guest.close();
}
TEST_P(PciControllers, OnlyMisalignedDataOfAFileIsCopied) {
  drive = kFile;
  run(on_file);
}

SIM_TEST_P(PciControllers, ControllerThatCannotBeEnabledFailsUntilReset) {
  Guest guest(env, {});
  co_await guest.plug_in(registry);
  Driver& driver = *guest.driver;
  co_await driver.write32(0x24, 0x001f'0000);
  co_await driver.write64(0x28, Guest::kAddress);
  co_await driver.write64(0x30, Guest::kAddress + 4096);
  co_await driver.write32(0x14, 0x0046'0001);
  Result<void> ready = co_await driver.wait_status(1, 1);
  EXPECT_EQ(ready.error().code(), Errc::kIo) << "an admin queue of one entry";
  co_await driver.write32(0x14, 0);
  ready = co_await driver.wait_status(3, 0);
  EXPECT_TRUE(ready);
  co_await driver.write32(0x24, 0x001f'001f);
  co_await driver.write64(0x28, 0x1000);
  co_await driver.write32(0x14, 0x0046'0001);
  ready = co_await driver.wait_status(1, 1);
  EXPECT_EQ(ready.error().code(), Errc::kIo) << "a queue outside of memory";
  ready = co_await driver.start();
  EXPECT_TRUE(ready) << "a reset makes it well again";
  co_await guest.close();
}

Task<void> reset_under_load(Env& env, Registry& registry, uint32_t block) {
  Guest guest(env, {.driver = {.queues = 2}, .block = block});
  co_await guest.start(registry);
  uint8_t acknowledged = 0;  // the last value that is surely on the drive
  for (int round = 1; round <= 30; ++round) {
    const auto value = static_cast<uint8_t>(round);
    std::ranges::fill(guest.data(0, 4096), std::byte(value));
    const StatusCode status = co_await guest.run(guest.io(IoOpcode::kWrite, 0, 1, 0));
    EXPECT_EQ(status, StatusCode::kSuccess);
    acknowledged = value;
    // Reads and writes elsewhere are in flight when the reset comes.
    DriverQueue& queue = guest.driver->queue(2);
    for (uint16_t i = 0; i < 40; ++i) {
      nvme::Sqe sqe = guest.io(i % 2 == 0 ? IoOpcode::kRead : IoOpcode::kWrite, 64 + i, 1, 8192);
      sqe.cid = static_cast<uint16_t>(1000 + i);
      queue.submit(sqe);
    }
    queue.ring();
    if (round % 3 == 0) guest.device->poll();
    if (round % 5 == 0) {
      co_await guest.device->reset();
      EXPECT_EQ(guest.status(), 0u);
    }
    const Result<void> started = co_await guest.driver->start();
    EXPECT_TRUE(started) << started.error().text();
    const StatusCode read = co_await guest.run(guest.io(IoOpcode::kRead, 0, 1, 16384));
    EXPECT_EQ(read, StatusCode::kSuccess);
    EXPECT_EQ(guest.data(16384, 4096)[17], std::byte(acknowledged));
  }
  co_await guest.close();
}
TEST_P(PciControllers, ResetAgainAndAgainLosesNothingAcknowledged) {
  run([](Env& env, Registry& registry) { return reset_under_load(env, registry, 512); });
}
TEST_P(PciControllers, ResetOverAFileLosesNothingAcknowledged) {
  drive = kFile;
  run([](Env& env, Registry& registry) { return reset_under_load(env, registry, 4096); });
}

SIM_TEST_P(PciControllers, CompletionsShareInterrupts) {
  Guest guest(env, {});
  co_await guest.start(registry);
  DriverQueue& queue = guest.driver->queue(1);
  const auto submit = [&](uint16_t count) {
    for (uint16_t i = 0; i < count; ++i) {
      nvme::Sqe sqe = guest.io(IoOpcode::kRead, i, 1, 0);
      sqe.cid = static_cast<uint16_t>(2000 + i);
      queue.submit(sqe);
    }
    queue.ring();
  };
  int before = guest.interrupts[1];
  submit(20);
  co_await task::sleep_for(env, 10_us);
  EXPECT_EQ(queue.poll([](const nvme::Cqe&) {}), 20u);
  EXPECT_EQ(guest.interrupts[1], before + 1) << "a batch is one interrupt";
  // Four completions or 500 us.
  nvme::Sqe set;
  set.opcode = static_cast<uint8_t>(nvme::AdminOpcode::kSetFeatures);
  nvme::SetFeaturesFields{.feature = nvme::Feature::kInterruptCoalescing, .value = 0x0503}.encode(
      set);
  StatusCode status = co_await guest.run_admin(set);
  EXPECT_EQ(status, StatusCode::kSuccess);
  before = guest.interrupts[1];
  submit(3);
  co_await task::sleep_for(env, 400_us);
  EXPECT_EQ(guest.interrupts[1], before) << "three wait for others";
  co_await task::sleep_for(env, 200_us);
  EXPECT_EQ(guest.interrupts[1], before + 1) << "but not for ever";
  submit(4);
  co_await task::sleep_for(env, 10_us);
  EXPECT_EQ(guest.interrupts[1], before + 2) << "four do not wait";
  nvme::SetFeaturesFields{.feature = nvme::Feature::kInterruptVector, .value = 0x0001'0001}.encode(
      set);
  status = co_await guest.run_admin(set);
  EXPECT_EQ(status, StatusCode::kSuccess);
  submit(1);
  co_await task::sleep_for(env, 10_us);
  EXPECT_EQ(guest.interrupts[1], before + 3) << "nor does a vector that takes no part";
  co_await guest.close();
}

SIM_TEST_P(PciControllers, QueueWithoutInterruptsRaisesNone) {
  Guest guest(env, {.driver = {.interrupts = false}});
  co_await guest.start(registry);
  const StatusCode status = co_await guest.run(guest.io(IoOpcode::kRead, 0, 1, 0));
  EXPECT_EQ(status, StatusCode::kSuccess);
  EXPECT_EQ(guest.interrupts[1], 0);
  co_await guest.close();
}

SIM_TEST_P(PciControllers, MaskedInterruptsWait) {
  Guest guest(env, {});
  co_await guest.start(registry);
  co_await guest.driver->write32(nvme::PciRegister::kInterruptMaskSet, 2);
  const int before = guest.interrupts[1];
  const StatusCode status = co_await guest.run(guest.io(IoOpcode::kRead, 0, 1, 0));
  EXPECT_EQ(status, StatusCode::kSuccess);
  EXPECT_EQ(guest.interrupts[1], before);
  co_await guest.driver->write32(nvme::PciRegister::kInterruptMaskClear, 1);
  EXPECT_EQ(guest.interrupts[1], before) << "another vector";
  co_await guest.driver->write32(nvme::PciRegister::kInterruptMaskClear, 2);
  EXPECT_EQ(guest.interrupts[1], before + 1) << "what was held back comes";
  co_await guest.close();
}

Task<void> full_ring(Env& env, Registry& registry, bool is_told) {
  Guest guest(env, {.is_told = is_told, .driver = {.entries = 8}});
  co_await guest.start(registry);
  DriverQueue& queue = guest.driver->queue(1);
  // More than the completion queue holds, because nobody takes any out of it.
  uint16_t submitted = 0;
  for (int i = 0; i < 7; ++i) {
    nvme::Sqe sqe = guest.io(IoOpcode::kRead, 0, 1, 0);
    sqe.cid = ++submitted;
    queue.submit(sqe);
  }
  queue.ring();
  co_await task::sleep_for(env, 20_us);
  // The submission queue is empty again; fill it behind the driver's back.
  const DriverQueue::Rings& rings = queue.rings();
  for (uint32_t i = 0; i < 5; ++i) {
    nvme::Sqe sqe = guest.io(IoOpcode::kRead, 0, 1, 0);
    sqe.cid = ++submitted;
    store(rings.submission.bytes.subspan((7 + i) % 8 * sizeof sqe), sqe);
  }
  const Doorbell tail = Doorbell::tail_of(1);
  if (is_told) {
    guest.ring(tail, 4);
  } else {
    store(guest.page().subspan(tail.offset()), uint32_t{4});
  }
  co_await task::sleep_for(env, 20_us);
  std::vector<uint16_t> ids;
  const auto keep = [&](const nvme::Cqe& cqe) { ids.push_back(cqe.cid); };
  EXPECT_EQ(queue.poll(keep), 7u) << "one place stays empty";
  co_await task::sleep_for(env, 20_us);
  EXPECT_EQ(queue.poll(keep), 5u);
  EXPECT_EQ(ids, (std::vector<uint16_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}));
  EXPECT_EQ(guest.status() & 2, 0u);
  co_await guest.close();
}
TEST_P(PciControllers, CompletionsWaitForRoomInTheirRing) {
  run([](Env& env, Registry& registry) { return full_ring(env, registry, false); });
}
TEST_P(PciControllers, CompletionsWaitForRoomWhenTheDeviceIsTold) {
  run([](Env& env, Registry& registry) { return full_ring(env, registry, true); });
}

Task<void> deletes_under_load(Env& env, Registry& registry) {
  Guest guest(env, {.block = 4096});
  co_await guest.start(registry);
  DriverQueue& queue = guest.driver->queue(1);
  for (uint16_t i = 0; i < 30; ++i) {
    nvme::Sqe sqe = guest.io(IoOpcode::kWrite, i, 1, 0);
    sqe.cid = static_cast<uint16_t>(100 + i);
    queue.submit(sqe);
  }
  queue.ring();
  guest.device->poll();
  nvme::Sqe sqe;
  sqe.opcode = static_cast<uint8_t>(nvme::AdminOpcode::kDeleteCompletionQueue);
  nvme::DeleteQueueFields{.id = 1}.encode(sqe);
  StatusCode status = co_await guest.run_admin(sqe);
  EXPECT_EQ(status, StatusCode::kInvalidQueueDeletion);
  sqe.opcode = static_cast<uint8_t>(nvme::AdminOpcode::kDeleteSubmissionQueue);
  status = co_await guest.run_admin(sqe);
  EXPECT_EQ(status, StatusCode::kSuccess);
  EXPECT_EQ(queue.poll([](const nvme::Cqe& cqe) {
    const StatusCode code = cqe.get_status().code();
    EXPECT_TRUE(code == StatusCode::kSuccess || code == StatusCode::kAbortedQueueDeletion);
  }),
            30u);
  sqe.opcode = static_cast<uint8_t>(nvme::AdminOpcode::kDeleteCompletionQueue);
  status = co_await guest.run_admin(sqe);
  EXPECT_EQ(status, StatusCode::kSuccess);
  co_await guest.close();
}
TEST_P(PciControllers, DeletedQueueAnswersWhatItTook) {
  drive = kFile;
  run(deletes_under_load);
}

SIM_TEST_P(PciControllers, EventsComeOnTheAdminQueue) {
  Guest guest(env, {});
  co_await guest.start(registry);
  DriverQueue& queue = guest.driver->admin_queue();
  nvme::Sqe sqe;
  sqe.opcode = static_cast<uint8_t>(nvme::AdminOpcode::kAsynchronousEventRequest);
  sqe.cid = 77;
  queue.submit(sqe);
  queue.ring();
  co_await task::sleep_for(env, 50_us);
  EXPECT_FALSE(guest.device->is_busy()) << "a request for events is no work";
  nvme::NamespaceOptions space;
  space.drive = *drive::Spec::parse("mem:size=64K");
  co_await env::call_on(env, CoreId(0),
                        [&](Env&) { return registry.add_namespace(kGuestNqn, space); });
  co_await task::sleep_for(env, 50_us);
  EXPECT_EQ(queue.poll([](const nvme::Cqe& cqe) {
    EXPECT_EQ(cqe.cid, 77u);
    EXPECT_TRUE(cqe.get_status().ok());
  }),
            1u);
  co_await guest.close();
}

SIM_TEST_P(PciControllers, SubsystemThatGoesUnplugsTheController) {
  Guest guest(env, {});
  co_await guest.start(registry);
  Task<Result<void>> removal =
      env::call_on(env, CoreId(0), [&](Env&) { return registry.remove_subsystem(kGuestNqn); });
  while (guest.left == 0) co_await task::sleep_for(env, 1_us);
  EXPECT_EQ(guest.status() & 2, 2u) << "the driver sees a failed controller";
  co_await guest.close();
  const Result<void> gone = co_await removal;
  EXPECT_TRUE(gone);
}

}  // namespace
}  // namespace cairn::door::vfio_user
