// SPDX-License-Identifier: Apache-2.0
// What a client learns of its device, how it reads and writes it, and how the device reaches the
// client's memory and attention.
#include <gtest/gtest.h>

#include <algorithm>

#include "door/vfio_user/rig.h"

namespace cairn::vfio_user_tests {
namespace {

WORLD_TEST_SUITE(VfioUserSession);

template <class Layout>
Layout first(const std::vector<std::byte>& payload) {
  EXPECT_GE(payload.size(), sizeof(Layout));
  return load<Layout>(payload);
}

WORLD_TEST(VfioUserSession, TellsDeviceRegionsAndInterrupts) {
  Rig rig(env);
  rig.open(scene);
  {
    Guest guest = co_await rig.guest(false);
    Client& client = *guest.client;
    EXPECT_TRUE(client.server().write_multiple);
    const std::vector<std::byte> info_answer =
        co_await sure(client.call(Command::kGetInfo, payload_of(DeviceInfo{.argsz = 16u})));
    const auto info = first<DeviceInfo>(info_answer);
    EXPECT_EQ(info.flags, kDeviceReset | kDevicePci);
    EXPECT_EQ(info.regions, 9u);
    EXPECT_EQ(info.irqs, 5u);
    const uint64_t sizes[] = {16384, 0, 0, 0, 8192, 0, 0, 4096, 0};
    for (uint32_t i = 0; i < kRegions; ++i) {
      // As one asks who does not know how much there is to say.
      const std::vector<std::byte> answer = co_await sure(
          client.call(Command::kGetRegionInfo, payload_of(RegionInfo{.argsz = 32u, .index = i})));
      EXPECT_EQ(answer.size(), sizeof(RegionInfo));
      const auto region = first<RegionInfo>(answer);
      EXPECT_EQ(region.size, sizes[i]) << i;
      EXPECT_EQ(region.index, i);
      EXPECT_EQ(region.argsz, i == 0 ? 64u : 32u);
      EXPECT_EQ(region.flags, i == 0 ? 0xfu : sizes[i] > 0 ? 0x3u : 0u);
    }
    const uint32_t counts[] = {1, 0, kVectors, 1, 1};
    for (uint32_t i = 0; i < kIrqs; ++i) {
      const std::vector<std::byte> irq_answer = co_await sure(
          client.call(Command::kGetIrqInfo, payload_of(IrqInfo{.argsz = 16u, .index = i})));
      const auto irq = first<IrqInfo>(irq_answer);
      EXPECT_EQ(irq.count, counts[i]) << i;
    }
    const std::vector<std::byte> fds_answer =
        co_await sure(client.call(Command::kGetRegionIoFds, payload_of(RegionIoFds{.argsz = 16u})));
    const auto fds = first<RegionIoFds>(fds_answer);
    EXPECT_EQ(fds.count, 0u);
  }
  co_await rig.close();
}

WORLD_TEST(VfioUserSession, ARequestMayBeAsLargeAsItsAnswer) {
  // SPDK's driver asks for regions with as many bytes as it has room for.
  Rig rig(env);
  rig.open(scene);
  {
    Guest guest = co_await rig.guest(false);
    std::vector<std::byte> request = payload_of(RegionInfo{.argsz = 4064u});
    request.resize(4064);
    std::vector<env::Descriptor> descriptors;
    const std::vector<std::byte> answer = co_await sure(
        guest.client->call(Command::kGetRegionInfo, std::move(request), {}, &descriptors));
    EXPECT_EQ(answer.size(), 64u);
    EXPECT_EQ(descriptors.size(), 1u);
    const auto area = load<SparseMap>(Bytes(answer).subspan(32));
    EXPECT_EQ(area.id, 1u);
    EXPECT_EQ(area.areas, 1u);
    EXPECT_EQ(area.offset, 0x1000u);
    EXPECT_EQ(area.size, 0x1000u);
  }
  co_await rig.close();
}

WORLD_TEST(VfioUserSession, RegistersConfigurationAndTableAreReadAndWritten) {
  Rig rig(env);
  rig.open(scene);
  {
    Guest guest = co_await rig.guest(false);
    Client& client = *guest.client;
    Le64 value(0x1122'3344'5566'7788);
    co_await sure(client.write(kBar0, 0x30, bytes_of(value)));
    Le64 got;
    co_await sure(client.read(kBar0, 0x30, mutable_bytes_of(got)));
    EXPECT_EQ(got, value);
    Le32 ids;
    co_await sure(client.read(kConfig, 0, mutable_bytes_of(ids)));
    EXPECT_EQ(ids, 0xca10'1b36u);
    Le16 command(uint16_t{0x404});
    co_await sure(client.write(kConfig, 4, bytes_of(command)));
    co_await sure(client.read(kConfig, 4, mutable_bytes_of(command)));
    EXPECT_EQ(command, 0x404u);
    Le32 entry;
    co_await sure(client.read(kBar4, 12, mutable_bytes_of(entry)));
    EXPECT_EQ(entry, 1u);
    std::vector<std::byte> all(kBar0Size);
    co_await sure(client.read(kBar0, 0, all));
    EXPECT_EQ(load<Le64>(Bytes(all).subspan(0x30)), value);
    co_await sure(client.write(kBar0, 0, all));
    std::vector<std::byte> config(kConfigSize);
    co_await sure(client.read(kConfig, 0, config));
  }
  co_await rig.close();
}

WORLD_TEST(VfioUserSession, SeveralWritesComeInOneMessage) {
  Rig rig(env);
  rig.open(scene);
  {
    Guest guest = co_await rig.guest(false);
    RegionWriteOne one{.offset = uint64_t{0x100}, .region = uint32_t{kBar0}, .count = 4u};
    one.data[0] = std::byte{7};
    RegionWriteOne two = one;
    two.offset = uint64_t{0x104};
    two.data[0] = std::byte{8};
    const std::vector<std::byte> answer = co_await sure(
        guest.client->call(Command::kRegionWriteMulti, payload_of(Le64(uint64_t{2}), one, two)));
    EXPECT_EQ(load<Le64>(answer), 2u);
    Le64 both;
    co_await sure(guest.client->read(kBar0, 0x100, mutable_bytes_of(both)));
    EXPECT_EQ(both, 0x8'0000'0007u);
  }
  co_await rig.close();
}

// Orders, waits, looks.
Task<void> copy_and_check(Guest& guest, uint16_t vector) {
  const auto signal = co_await sure(guest.client->listen(kMsix, vector));
  for (uint8_t round = 1; round <= 3; ++round) {
    std::ranges::fill(guest.at(4096, 4096), std::byte{round});
    co_await sure(guest.copy(4096, 65536, 4096, vector, 30_us));
    co_await sure_of(*signal);
    EXPECT_TRUE(std::ranges::equal(guest.at(4096, 4096), guest.at(65536, 4096)));
  }
}

WORLD_TEST(VfioUserSession, ADeviceCopiesAndRaisesAtEveryPace) {
  for (const Pace pace : {Pace::kAdaptive, Pace::kPolling, Pace::kInterrupt}) {
    Rig rig(env, pace);
    rig.open(scene);
    {
      Guest guest = co_await rig.guest();
      EXPECT_EQ(guest.client->doorbells().empty(), pace == Pace::kInterrupt);
      co_await copy_and_check(guest, 3);
      // A doorbell that is mapped can also be written by message.
      const auto signal = co_await sure(guest.client->listen(kMsix, 5));
      co_await sure(guest.copy(4096, 131072, 512, 5));
      const Le32 value(guest.rings);
      co_await sure(guest.client->write(kBar0, kDoorbellsAt, bytes_of(value)));
      co_await sure_of(*signal);
    }
    co_await rig.close();
  }
}

WORLD_TEST(VfioUserSession, MaskedVectorsPend) {
  Rig rig(env);
  rig.open(scene);
  {
    Guest guest = co_await rig.guest();
    Client& client = *guest.client;
    const auto done = co_await sure(client.listen(kMsix, 9));
    const auto signal = co_await sure(client.listen(kMsix, 1));
    co_await sure(client.set_irq(kMsix, 1, kIrqActionMask));
    co_await sure(guest.copy(0, 8192, 8, 1));
    Le64 pending;
    while (pending == 0) {
      co_await sure(client.read(kBar4, kPendingAt, mutable_bytes_of(pending)));
    }
    EXPECT_EQ(pending, 2u);
    co_await sure(client.set_irq(kMsix, 1, kIrqActionUnmask));
    co_await sure_of(*signal);
    co_await sure(client.read(kBar4, kPendingAt, mutable_bytes_of(pending)));
    EXPECT_EQ(pending, 0u);
    // The same by the table of the device, once it was written.
    const Le32 masked(1u);
    const Le32 unmasked(0u);
    co_await sure(client.write(kBar4, 16 + 12, bytes_of(masked)));
    co_await sure(guest.copy(0, 8192, 8, 1));
    while (pending == 0) {
      co_await sure(client.read(kBar4, kPendingAt, mutable_bytes_of(pending)));
    }
    co_await sure(client.write(kBar4, 16 + 12, bytes_of(unmasked)));
    co_await sure_of(*signal);
    // And by the mask of the whole function.
    const Le16 all(uint16_t{0xc000});
    const Le16 none(uint16_t{0x8000});
    co_await sure(client.write(kConfig, 0x52, bytes_of(all)));
    pending = uint64_t{0};
    co_await sure(guest.copy(0, 8192, 8, 1));
    while (pending == 0) {
      co_await sure(client.read(kBar4, kPendingAt, mutable_bytes_of(pending)));
    }
    co_await sure(client.write(kConfig, 0x52, bytes_of(none)));
    co_await sure_of(*signal);
    // A vector without a signal waits for one.
    pending = uint64_t{0};
    co_await sure(guest.copy(0, 8192, 8, 2));
    while (pending == 0) {
      co_await sure(client.read(kBar4, kPendingAt, mutable_bytes_of(pending)));
    }
    EXPECT_EQ(pending, 4u);
    const auto late = co_await sure(client.listen(kMsix, 2));
    co_await sure_of(*late);
  }
  co_await rig.close();
}

Task<uint16_t> status(Client& client) {
  Le16 status;
  co_await sure(client.read(kConfig, 6, mutable_bytes_of(status)));
  co_return status;
}

WORLD_TEST(VfioUserSession, ThePinMasksItselfUntilTheClientUnmasksIt) {
  Rig rig(env);
  rig.open(scene);
  {
    Guest guest = co_await rig.guest();
    Client& client = *guest.client;
    const auto pin = co_await sure(client.listen(kIntx, 0));
    co_await sure(guest.copy(0, 8192, 8, 4));
    co_await sure_of(*pin);
    const uint16_t raised = co_await status(client);
    EXPECT_EQ(raised & 8, 8);
    // While it is masked, the next is kept for later.
    guest.at(16384, 1)[0] = std::byte{1};
    co_await sure(guest.copy(16384, 20480, 1, 4));
    while (guest.at(20480, 1)[0] == std::byte{0}) {
      const uint16_t still = co_await status(client);
      EXPECT_EQ(still & 8, 8);
    }
    co_await sure(client.set_irq(kIntx, 0, kIrqActionUnmask));
    co_await sure_of(*pin);
    co_await sure(client.set_irq(kIntx, 0, kIrqActionUnmask));
    const uint16_t quiet = co_await status(client);
    EXPECT_EQ(quiet & 8, 0);
    // A client can unmask it by a signal.
    const env::Descriptor descriptor = must(client.sharing().make_signal());
    const IrqSet by_signal{.argsz = 20u,
                           .flags = kIrqDataEventfd | kIrqActionUnmask,
                           .index = uint32_t{kIntx},
                           .start = 0u,
                           .count = 1u};
    co_await sure(client.call(Command::kSetIrqs, payload_of(by_signal), {&descriptor}));
    const auto unmask = must(client.sharing().open_signal(descriptor));
    for (int i = 0; i < 3; ++i) {
      co_await sure(guest.copy(0, 8192, 8, 4));
      co_await sure_of(*pin);
      unmask->raise();
    }
  }
  co_await rig.close();
}

WORLD_TEST(VfioUserSession, ClientsTriggerAndTakeAwaySignals) {
  Rig rig(env);
  rig.open(scene);
  {
    Guest guest = co_await rig.guest();
    Client& client = *guest.client;
    const auto first_signal = co_await sure(client.listen(kMsix, 0));
    const auto second = co_await sure(client.listen(kMsix, 1));
    co_await sure(client.set_irq(kMsix, 0, kIrqActionTrigger));
    co_await sure_of(*first_signal);
    // Of two vectors only the one that is named.
    std::vector<std::byte> request = payload_of(IrqSet{.argsz = 22u,
                                                       .flags = kIrqDataBool | kIrqActionTrigger,
                                                       .index = uint32_t{kMsix},
                                                       .start = 0u,
                                                       .count = 2u});
    request.push_back(std::byte{0});
    request.push_back(std::byte{1});
    co_await sure(client.call(Command::kSetIrqs, std::move(request)));
    co_await sure_of(*second);
    task::Deadline now(env, env.now());
    const Result<void> silent = co_await first_signal->wait(now.token());
    EXPECT_EQ(outcome(silent), "timed_out");
    // None at all, and it is as if there had never been any.
    co_await sure(client.call(
        Command::kSetIrqs,
        payload_of(IrqSet{
            .argsz = 20u, .flags = kIrqDataNone | kIrqActionTrigger, .index = uint32_t{kMsix}})));
    const auto pin = co_await sure(client.listen(kIntx, 0));
    co_await sure(guest.copy(0, 8192, 8, 1));
    co_await sure_of(*pin);
  }
  co_await rig.close();
}

WORLD_TEST(VfioUserSession, UnmappingEndsWhatUsesTheMemory) {
  Rig rig(env);
  rig.open(scene);
  {
    Guest guest = co_await rig.guest();
    Client& client = *guest.client;
    // A copy that would take a day.
    const auto signal = co_await sure(client.listen(kMsix, 0));
    co_await sure(guest.copy(4096, 65536, 8, 0, 86400_s));
    guest.at(4096, 1)[0] = std::byte{9};
    co_await sure(client.unmap(kGuestBase, kGuestSize));
    EXPECT_EQ(guest.at(65536, 1)[0], std::byte{0});
    const Result<void> again = co_await client.unmap(kGuestBase, kGuestSize);
    EXPECT_EQ(outcome(again), "not_found");
    co_await sure(client.map(kGuestBase, guest.memory_descriptor, {.size = kGuestSize}));
    co_await sure(guest.copy(4096, 65536, 8, 0));
    co_await sure_of(*signal);
    EXPECT_EQ(guest.at(65536, 1)[0], std::byte{9});
  }
  co_await rig.close();
}

Task<Result<void>> map_unshared(Client& client, uint64_t address, uint64_t size) {
  const Result<std::vector<std::byte>> answer = co_await client.call(
      Command::kDmaMap,
      payload_of(DmaMap{.argsz = 32u, .flags = 3u, .address = address, .size = size}));
  if (!answer) co_return fail(answer.error());
  co_return Result<void>{};
}

WORLD_TEST(VfioUserSession, MemoryIsListedOnceWithOrWithoutADescriptor) {
  Rig rig(env);
  rig.open(scene);
  {
    Guest guest = co_await rig.guest();
    Client& client = *guest.client;
    Result<void> mapped =
        co_await client.map(kGuestBase + 4096, guest.memory_descriptor, {.size = 4096});
    EXPECT_EQ(outcome(mapped), "exists");
    mapped = co_await map_unshared(client, kGuestBase + kGuestSize - 1, 1);
    EXPECT_EQ(outcome(mapped), "exists");
    mapped = co_await map_unshared(client, 0x8000, 0x1000);
    EXPECT_EQ(outcome(mapped), "ok");
    mapped = co_await map_unshared(client, 0x8fff, 0x1000);
    EXPECT_EQ(outcome(mapped), "exists");
    mapped = co_await client.map(0x8000, guest.memory_descriptor, {.size = 4096});
    EXPECT_EQ(outcome(mapped), "exists");
    mapped = co_await map_unshared(client, ~uint64_t{0}, 2);
    EXPECT_EQ(outcome(mapped), "invalid");
    mapped = co_await client.map(0x1'0000, guest.memory_descriptor,
                                 {.offset = kGuestSize, .size = 4096});
    EXPECT_EQ(outcome(mapped), "invalid");
    Result<void> unmapped = co_await client.unmap(0x8000, 0x800);
    EXPECT_EQ(outcome(unmapped), "invalid");
    unmapped = co_await client.unmap(kGuestBase, kGuestSize / 2);
    EXPECT_EQ(outcome(unmapped), "invalid");
    unmapped = co_await client.unmap(0x8000, 0x1000);
    EXPECT_EQ(outcome(unmapped), "ok");
    // Everything at once, as QEMU does at its end.
    co_await sure(map_unshared(client, 0x8000, 0x1000));
    co_await sure(
        client.call(Command::kDmaUnmap, payload_of(DmaUnmap{.argsz = 24u, .flags = kUnmapAll})));
    co_await sure(map_unshared(client, 0x8000, 0x1000));
    co_await sure(client.map(kGuestBase, guest.memory_descriptor, {.size = kGuestSize}));
  }
  co_await rig.close();
}

WORLD_TEST(VfioUserSession, AResetLeavesADeviceAsNew) {
  Rig rig(env);
  rig.open(scene);
  {
    Guest guest = co_await rig.guest();
    Client& client = *guest.client;
    for (const bool by_message : {true, false}) {
      co_await sure(guest.copy(4096, 65536, 8, 0, 86400_s));
      if (by_message) {
        co_await sure(client.reset());
      } else {
        const Le16 function_reset(uint16_t{0x8000});
        co_await sure(client.write(kConfig, 0x68, bytes_of(function_reset)));
      }
      Le32 enabled;
      co_await sure(client.read(kBar0, kEnableAt, mutable_bytes_of(enabled)));
      EXPECT_EQ(enabled, 0u);
      EXPECT_EQ(load<uint32_t>(client.doorbells()), 0u);
      guest.rings = 0;
      co_await sure(enable(client));
      co_await copy_and_check(guest, 1);
    }
  }
  co_await rig.close();
}

WORLD_TEST(VfioUserSession, CommandsMayAskForNoReply) {
  Rig rig(env);
  rig.open(scene);
  {
    Guest guest = co_await rig.guest(false);
    MessageWriter writer(guest.client->stream());
    for (uint32_t i = 0; i < 3; ++i) {
      OutgoingMessage write{
          .header = {.command = static_cast<uint16_t>(Command::kRegionWrite), .flags = kNoReply},
          .payload = payload_of(
              RegionAccess{.offset = uint64_t{0x200}, .region = uint32_t{kBar0}, .count = 4u},
              Le32(i))};
      if (i == 1) write.payload.resize(17);  // wrong, and still no reply
      co_await sure(writer.write(std::move(write)));
    }
    Le32 value;
    co_await sure(guest.client->read(kBar0, 0x200, mutable_bytes_of(value)));
    EXPECT_EQ(value, 2u);
  }
  co_await rig.close();
}

}  // namespace
}  // namespace cairn::vfio_user_tests
