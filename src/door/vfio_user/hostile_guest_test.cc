// SPDX-License-Identifier: Apache-2.0
// What a guest can do to its controller, and that it can do it to nobody else.
#include <gtest/gtest.h>

#include "door/vfio_user/controller.h"
#include "door/vfio_user/controller_testing.h"
#include "nvme/format/log_format.h"
#include "testing/sim_test.h"

namespace cairn::door::vfio_user {
namespace {

using env::Env;
using nvme::IoOpcode;
using nvme::Registry;
using nvme::StatusCode;
using task::Task;

class HostileGuest : public ControllerTest {};
INSTANTIATE_TEST_SUITE_P(Cores, HostileGuest, ::testing::Values(1, 2));

constexpr uint64_t kEnd = Guest::kAddress + 4_MiB;

void write_doorbell(Guest& guest, Doorbell doorbell, uint32_t value) {
  store(guest.page().subspan(doorbell.offset()), value);
}

// The controller has failed, says why, and works again after a reset; a neighbour on the same
// subsystem has noticed nothing.
Task<void> expect_failure(Env& env, Guest& guest, Guest& neighbour) {
  co_await task::sleep_for(env, 20_us);
  EXPECT_EQ(guest.status() & 2, 2u);
  EXPECT_STRNE(guest.controller().figures().failure, "");
  const Result<void> started = co_await guest.driver->start();
  EXPECT_TRUE(started) << started.error().text();
  EXPECT_STREQ(guest.controller().figures().failure, "");
  for (Guest* each : {&guest, &neighbour}) {
    const StatusCode status = co_await each->run(each->io(IoOpcode::kRead, 0, 1, 0));
    EXPECT_EQ(status, StatusCode::kSuccess);
  }
}

SIM_TEST_P(HostileGuest, DoorbellsOutOfRangeFailTheController) {
  Guest guest(env, {});
  Guest neighbour(env, {});
  co_await guest.start(registry);
  co_await neighbour.start(registry);
  for (const uint32_t value : {64u, 65535u, 65536u, UINT32_MAX}) {
    write_doorbell(guest, Doorbell::tail_of(1), value);
    co_await expect_failure(env, guest, neighbour);
    write_doorbell(guest, Doorbell::tail_of(0), value);
    co_await expect_failure(env, guest, neighbour);
  }
  // A head is looked at when a ring is full: then it has to be one.
  DriverQueue& queue = guest.driver->queue(1);
  write_doorbell(guest, Doorbell::head_of(1), 64);
  for (uint16_t round = 0; round < 2; ++round) {
    for (uint16_t i = 0; i < 40; ++i) {
      nvme::Sqe sqe = guest.io(IoOpcode::kRead, 0, 1, 0);
      sqe.cid = static_cast<uint16_t>(round * 100 + i);
      store(queue.rings().submission.bytes.subspan((round * 40 + i) % 64 * sizeof sqe), sqe);
    }
    write_doorbell(guest, Doorbell::tail_of(1), (round * 40 + 40) % 64);
    co_await task::sleep_for(env, 20_us);
  }
  co_await expect_failure(env, guest, neighbour);
  // Doorbells of queues that are not there are just memory.
  for (size_t at = 16; at < 4096; at += 4) store(guest.page().subspan(at), UINT32_MAX);
  const StatusCode status = co_await guest.run(guest.io(IoOpcode::kRead, 0, 1, 0));
  EXPECT_EQ(status, StatusCode::kSuccess);
  co_await guest.close();
  co_await neighbour.close();
}

SIM_TEST_P(HostileGuest, DataOutsideOfMemoryIsRefused) {
  Guest guest(env, {});
  co_await guest.start(registry);
  const auto with = [&](uint64_t first, uint64_t second, uint32_t blocks, IoOpcode opcode) {
    nvme::Sqe sqe = guest.io(opcode, 0, blocks, 0);
    nvme::PrpPair{.first = first, .second = second}.encode(sqe);
    return sqe;
  };
  for (const IoOpcode opcode : {IoOpcode::kRead, IoOpcode::kWrite, IoOpcode::kCompare}) {
    struct {
      uint64_t first, second;
      uint32_t blocks;
      StatusCode expected;
    } const cases[] = {
        {0, 0, 1, StatusCode::kDataTransferError},
        {kEnd, 0, 1, StatusCode::kDataTransferError},
        {kEnd - 508, 0, 1, StatusCode::kDataTransferError},
        {Guest::kAddress - 512, 0, 2, StatusCode::kDataTransferError},
        {UINT64_MAX - 3, 0, 1, StatusCode::kDataTransferError},
        {Guest::kAddress + 2, 0, 1, StatusCode::kPrpOffsetInvalid},
        {Guest::kAddress, kEnd, 16, StatusCode::kDataTransferError},
        {Guest::kAddress, Guest::kAddress + 8, 16, StatusCode::kPrpOffsetInvalid},
        {Guest::kAddress, kEnd, 17, StatusCode::kDataTransferError},
        {Guest::kAddress, kEnd - 8, 25, StatusCode::kDataTransferError},
    };
    for (const auto& each : cases) {
      const StatusCode status =
          co_await guest.run(with(each.first, each.second, each.blocks, opcode));
      EXPECT_EQ(status, each.expected) << std::hex << each.first << " " << each.second;
    }
    const StatusCode edge = co_await guest.run(with(kEnd - 512, 0, 1, IoOpcode::kRead));
    EXPECT_EQ(edge, StatusCode::kSuccess) << "the last bytes there are";
    // Descriptors that are none, or lead to themselves.
    nvme::Sqe sqe = guest.io(opcode, 0, 1, 0);
    sqe.set_psdt(nvme::Psdt::kSgl);
    sqe.sgl1 = nvme::SglDescriptor::data(kEnd - 100, 512);
    StatusCode status = co_await guest.run(sqe);
    EXPECT_EQ(status, StatusCode::kDataTransferError);
    sqe.sgl1 = nvme::SglDescriptor::transport(512);
    status = co_await guest.run(sqe);
    EXPECT_EQ(status, StatusCode::kSglDescriptorTypeInvalid);
    sqe.sgl1 = nvme::SglDescriptor::data(guest.driver->data().address, 16);
    sqe.sgl1.id = nvme::SglId::kSegment;
    store(guest.data(0, 16), sqe.sgl1);
    status = co_await guest.run(sqe);
    EXPECT_EQ(status, StatusCode::kInvalidSglCount);
  }
  // The same of admin commands, which take no SGLs at all.
  nvme::Sqe identify;
  identify.opcode = static_cast<uint8_t>(nvme::AdminOpcode::kIdentify);
  identify.cdw10 = 1;
  nvme::PrpPair{.first = kEnd, .second = {}}.encode(identify);
  StatusCode status = co_await guest.run_admin(identify);
  EXPECT_EQ(status, StatusCode::kDataTransferError);
  identify.set_psdt(nvme::Psdt::kSgl);
  status = co_await guest.run_admin(identify);
  EXPECT_EQ(status, StatusCode::kInvalidField);
  EXPECT_EQ(guest.status() & 2, 0u) << "none of this breaks the controller";
  co_await guest.close();
}

SIM_TEST_P(HostileGuest, MemoryUnderQueuesMayVanish) {
  Guest guest(env, {});
  Guest neighbour(env, {});
  co_await guest.start(registry);
  co_await neighbour.start(registry);
  const StatusCode status = co_await guest.run(guest.io(IoOpcode::kRead, 0, 1, 0));
  EXPECT_EQ(status, StatusCode::kSuccess);
  guest.device->abandon(Guest::kAddress, 4_MiB);
  const Result<void> removed = co_await guest.memory().remove(Guest::kAddress, 4_MiB);
  EXPECT_TRUE(removed);
  write_doorbell(guest, Doorbell::tail_of(1), 5);
  co_await task::sleep_for(env, 20_us);
  EXPECT_EQ(guest.status() & 2, 2u);
  const Result<void> started = co_await guest.driver->disable();
  EXPECT_TRUE(started) << "a controller without memory can still be reset";
  const StatusCode other = co_await neighbour.run(neighbour.io(IoOpcode::kRead, 0, 1, 0));
  EXPECT_EQ(other, StatusCode::kSuccess);
  co_await guest.close();
  co_await neighbour.close();
}

Task<void> vanishing_data(Env& env, Registry& registry) {
  Guest guest(env, {.block = 4096});
  co_await guest.start(registry);
  constexpr uint64_t kOther = 0x8000'0000;
  EXPECT_TRUE(guest.memory().add(kOther, std::make_unique<HeapMemory>(1_MiB)));
  DriverQueue& queue = guest.driver->queue(1);
  for (uint16_t i = 0; i < 32; ++i) {
    nvme::Sqe sqe = guest.io(i % 2 == 0 ? IoOpcode::kRead : IoOpcode::kWrite, i, 1, 0);
    nvme::PrpPair{.first = kOther + i * 4096ull, .second = {}}.encode(sqe);
    sqe.cid = i;
    queue.submit(sqe);
  }
  queue.ring();
  guest.device->poll();
  EXPECT_TRUE(guest.device->is_busy());
  guest.device->abandon(kOther, 1_MiB);
  const Result<void> removed = co_await guest.memory().remove(kOther, 1_MiB);
  EXPECT_TRUE(removed) << "done when nobody uses it any more";
  co_await task::sleep_for(env, 100_ms);
  EXPECT_EQ(queue.poll([](const nvme::Cqe&) {}), 32u) << "each is answered";
  const StatusCode status = co_await guest.run(guest.io(IoOpcode::kRead, 0, 1, 0));
  EXPECT_EQ(status, StatusCode::kSuccess);
  co_await guest.close();
}
TEST_P(HostileGuest, MemoryUnderDataMayVanish) {
  drive = "file:/guest,size=4M,block=4096";
  run(vanishing_data);
}

Task<void> same_ids(Env& env, Registry& registry) {
  Guest guest(env, {.block = 4096});
  co_await guest.start(registry);
  DriverQueue& queue = guest.driver->queue(1);
  for (uint16_t i = 0; i < 3; ++i) {
    nvme::Sqe sqe = guest.io(IoOpcode::kRead, 0, 1, 0);
    sqe.cid = 9;
    queue.submit(sqe);
  }
  queue.ring();
  co_await task::sleep_for(env, 100_ms);
  int conflicts = 0;
  EXPECT_EQ(queue.poll([&](const nvme::Cqe& cqe) {
    conflicts += cqe.get_status().code() == StatusCode::kCommandIdConflict ? 1 : 0;
  }),
            3u);
  EXPECT_EQ(conflicts, 2);
  const StatusCode status = co_await guest.run(guest.io(IoOpcode::kRead, 0, 1, 0));
  EXPECT_EQ(status, StatusCode::kSuccess);
  co_await guest.close();
}
TEST_P(HostileGuest, SameIdTwiceIsAConflict) {
  drive = "file:/guest,size=4M,block=4096";
  run(same_ids);
}

SIM_TEST_P(HostileGuest, QueuesAndDoorbellsOutsideOfMemoryAreRefused) {
  Guest guest(env, {});
  co_await guest.start(registry);
  nvme::Sqe sqe;
  for (const uint64_t address : {uint64_t{0}, kEnd, kEnd - 4096, UINT64_MAX - 4095}) {
    sqe.opcode = static_cast<uint8_t>(nvme::AdminOpcode::kCreateSubmissionQueue);
    nvme::SubmissionQueueFields{.id = 1, .size = 127, .completion = 1, .address = address}.encode(
        sqe);
    StatusCode status = co_await guest.run_admin(sqe);
    EXPECT_EQ(status, StatusCode::kInvalidQueueId) << "it is there";
    nvme::Sqe bells;
    bells.opcode = static_cast<uint8_t>(nvme::AdminOpcode::kDoorbellBufferConfig);
    nvme::DoorbellBuffers{.doorbells = address, .event_indexes = Guest::kAddress}.encode(bells);
    status = co_await guest.run_admin(bells);
    EXPECT_EQ(status, address == kEnd - 4096 ? StatusCode::kSuccess : StatusCode::kInvalidField);
  }
  co_await guest.close();
}

SIM_TEST_P(HostileGuest, FailedCommandsAreInTheErrorLog) {
  Guest guest(env, {});
  co_await guest.start(registry);
  StatusCode status = co_await guest.run(guest.io(IoOpcode::kRead, 1'000'000, 1, 0));
  EXPECT_EQ(status, StatusCode::kLbaOutOfRange);
  co_await task::sleep_for(env, 50_us);
  nvme::Sqe sqe;
  sqe.opcode = static_cast<uint8_t>(nvme::AdminOpcode::kGetLogPage);
  sqe.nsid = nvme::kBroadcastNsid;
  nvme::GetLogFields{.page = nvme::LogPage::kError, .dwords = 15}.encode(sqe);
  Driver::point(sqe, guest.driver->data().address, 64, {});
  status = co_await guest.run_admin(sqe);
  EXPECT_EQ(status, StatusCode::kSuccess);
  const auto entry = load<nvme::ErrorEntry>(guest.data(0, 64));
  EXPECT_EQ(entry.error_count, 1u);
  EXPECT_EQ(entry.sqid, 1u);
  EXPECT_EQ(entry.lba, 1'000'000u);
  co_await guest.close();
}

}  // namespace
}  // namespace cairn::door::vfio_user
