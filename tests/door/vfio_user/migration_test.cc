// SPDX-License-Identifier: Apache-2.0
// A device that moves to another server with its guest, and one that is told nonsense instead.
#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

#include "door/vfio_user/migration_format.h"
#include "door/vfio_user/rig.h"

namespace cairn::vfio_user_tests {
namespace {

WORLD_TEST_SUITE(VfioUserMigration);

Task<void> expect_change(Client& client, DeviceState to, std::string_view expected = "ok") {
  const Result<void> changed = co_await client.change_state(to);
  EXPECT_EQ(outcome(changed), expected);
}

WORLD_TEST(VfioUserMigration, ADeviceGoesOnWhereItsPredecessorStopped) {
  Rig rig(env);
  rig.open(scene);
  must(rig.server->add("b", scene.local_socket("b").value(), make_fake));
  {
    Guest guest = co_await rig.guest();
    Client& before = *guest.client;
    const auto signal = co_await sure(before.listen(kMsix, 2));
    co_await sure(guest.copy(4096, 8192, 64, 2));
    co_await sure_of(*signal);
    const Le16 command(uint16_t{6});
    co_await sure(before.write(kConfig, 4, bytes_of(command)));
    // One copy is in flight and finished first; its interrupt is masked and goes with the device.
    co_await sure(before.set_irq(kMsix, 2, kIrqActionMask));
    std::ranges::fill(guest.at(4096, 64), std::byte{3});
    co_await sure(guest.copy(4096, 12288, 64, 2, 1_ms));
    const Le32 rung(guest.rings);
    co_await sure(before.write(kBar0, kDoorbellsAt, bytes_of(rung)));
    co_await expect_change(before, DeviceState::kStopCopy);
    EXPECT_EQ(guest.at(12288, 1)[0], std::byte{3});
    const std::vector<std::byte> state = co_await sure(before.read_state());

    Result<std::unique_ptr<Client>> after =
        co_await Client::connect(env, scene.local_socket("b").value());
    guest.client = must(std::move(after));
    Client& client = *guest.client;
    co_await sure(client.map(kGuestBase, guest.memory_descriptor, {.size = kGuestSize}));
    co_await expect_change(client, DeviceState::kResuming);
    co_await sure(client.write_state(state));
    co_await expect_change(client, DeviceState::kRunning);
    Le16 moved;
    co_await sure(client.read(kConfig, 4, mutable_bytes_of(moved)));
    EXPECT_EQ(moved, 6u);
    const auto new_signal = co_await sure(client.listen(kMsix, 2));
    co_await sure(client.set_irq(kMsix, 2, kIrqActionUnmask));
    co_await sure_of(*new_signal);
    co_await sure(guest.copy(4096, 16384, 64, 2));
    co_await sure_of(*new_signal);
    EXPECT_EQ(guest.at(16384, 1)[0], std::byte{3});
  }
  co_await rig.close();
}

WORLD_TEST(VfioUserMigration, AStoppedDeviceDoesNothingUntilItRuns) {
  Rig rig(env);
  rig.open(scene);
  {
    Guest guest = co_await rig.guest();
    Client& client = *guest.client;
    const auto signal = co_await sure(client.listen(kMsix, 0));
    co_await expect_change(client, DeviceState::kStop);
    co_await sure(guest.copy(4096, 8192, 64));
    const Le32 rung(guest.rings);
    co_await sure(client.write(kBar0, kDoorbellsAt, bytes_of(rung)));
    task::Deadline soon(env, env.now() + 10_ms);
    const Result<void> silent = co_await signal->wait(soon.token());
    EXPECT_EQ(outcome(silent), "timed_out");
    co_await expect_change(client, DeviceState::kRunning);
    co_await sure_of(*signal);
  }
  co_await rig.close();
}

WORLD_TEST(VfioUserMigration, EveryWayBetweenStatesIsThereOrRefused) {
  Rig rig(env);
  rig.open(scene);
  {
    Guest guest = co_await rig.guest();
    Client& client = *guest.client;
    const DeviceState all[] = {DeviceState::kStop, DeviceState::kRunning, DeviceState::kStopCopy,
                               DeviceState::kResuming};
    for (const DeviceState from : all) {
      for (const DeviceState to : all) {
        co_await expect_change(client, from);
        co_await expect_change(client, to);
      }
    }
    for (const uint32_t none : {0u, 5u, 6u, 7u, 8u, ~0u}) {
      co_await expect_change(client, DeviceState{none}, "invalid");
    }
    co_await expect_change(client, DeviceState::kRunning);
    const Result<std::vector<std::byte>> read = co_await client.read_state();
    EXPECT_EQ(outcome(read), "invalid");
    const Result<void> written = co_await client.write_state(as_bytes("x"));
    EXPECT_EQ(outcome(written), "invalid");
  }
  co_await rig.close();
}

WORLD_TEST(VfioUserMigration, WhatIsNoStateIsRefusedAndAResetHelps) {
  Rig rig(env);
  rig.open(scene);
  {
    Guest guest = co_await rig.guest();
    Client& client = *guest.client;
    co_await expect_change(client, DeviceState::kStopCopy);
    const std::vector<std::byte> good = co_await sure(client.read_state());
    EXPECT_GT(good.size(), sizeof(StateHeader));
    // Every byte of the header, and some of the rest, changed or missing.
    std::vector<std::vector<std::byte>> bad;
    for (size_t at = 0; at < good.size(); at += at < 40 ? 1 : 997) {
      std::vector<std::byte> changed = good;
      changed[at] ^= std::byte{0x40};
      bad.push_back(std::move(changed));
      if (at > 0) bad.emplace_back(good.begin(), good.begin() + static_cast<ptrdiff_t>(at));
    }
    bad.push_back(good);
    bad.back().push_back(std::byte{0});
    for (const std::vector<std::byte>& state : bad) {
      co_await expect_change(client, DeviceState::kResuming);
      co_await sure(client.write_state(state));
      const Result<void> taken = co_await client.change_state(DeviceState::kRunning);
      EXPECT_FALSE(taken.has_value());
      co_await expect_change(client, DeviceState::kRunning, "invalid");
      co_await sure(client.reset());
    }
    co_await expect_change(client, DeviceState::kResuming);
    const std::vector<std::byte> much(kStateMax / 2);
    co_await sure(client.write_state(much));
    co_await sure(client.write_state(good));
    const Result<void> too_much = co_await client.write_state(much);
    EXPECT_EQ(outcome(too_much), "limit");
    co_await sure(client.reset());
    // And it works again.
    guest.rings = 0;
    co_await sure(enable(client));
    const auto signal = co_await sure(client.listen(kMsix, 0));
    co_await sure(guest.copy(4096, 8192, 64));
    co_await sure_of(*signal);
  }
  co_await rig.close();
}

Feature feature(FeatureId id, uint32_t ways, size_t room) {
  return {.argsz = static_cast<uint32_t>(room), .flags = static_cast<uint32_t>(id) | ways};
}

using Pages = std::vector<uint64_t>;

// Which pages of the guest were written to since the last question.
Task<void> expect_dirty(Client& client, Pages expected) {
  const FeatureLoggingReport range{.address = kGuestBase, .length = kGuestSize, .page_size = 4096u};
  const std::vector<std::byte> answer = co_await sure(
      client.call(Command::kFeature,
                  payload_of(feature(FeatureId::kLoggingReport, kFeatureGet, 32 + 32), range)));
  EXPECT_EQ(answer.size(), 32u + 32u);
  Pages dirty;
  for (uint64_t page = 0; page < kGuestSize / 4096; ++page) {
    if ((answer[32 + page / 8] >> page % 8 & std::byte{1}) != std::byte{0}) dirty.push_back(page);
  }
  EXPECT_EQ(dirty, expected);
}

WORLD_TEST(VfioUserMigration, WrittenPagesAreToldUntilNobodyWrites) {
  Rig rig(env);
  rig.open(scene);
  {
    Guest guest = co_await rig.guest();
    Client& client = *guest.client;
    const auto signal = co_await sure(client.listen(kMsix, 0));
    const std::vector<std::byte> start = co_await sure(client.call(
        Command::kFeature, payload_of(feature(FeatureId::kLoggingStart, kFeatureSet, 24),
                                      FeatureLoggingStart{.page_size = 8192u})));
    EXPECT_EQ(load<FeatureLoggingStart>(Bytes(start).subspan(8)).page_size, 4096u);
    co_await expect_dirty(client, Pages{});
    co_await sure(guest.copy(0, 4096 * 7 + 4000, 200));
    co_await sure_of(*signal);
    co_await expect_dirty(client, Pages{7, 8});
    co_await expect_dirty(client, Pages{});
    // One that is under way is told every time.
    co_await sure(guest.copy(0, 4096 * 20, 4096, 0, 86400_s));
    const Le32 rung(guest.rings);
    co_await sure(client.write(kBar0, kDoorbellsAt, bytes_of(rung)));
    co_await expect_dirty(client, Pages{20});
    co_await expect_dirty(client, Pages{20});
    // Larger pages than ours.
    const FeatureLoggingReport coarse{
        .address = kGuestBase, .length = kGuestSize, .page_size = 65536u};
    const std::vector<std::byte> answer = co_await sure(
        client.call(Command::kFeature,
                    payload_of(feature(FeatureId::kLoggingReport, kFeatureGet, 4096), coarse)));
    EXPECT_EQ(load<uint64_t>(Bytes(answer).subspan(32)), 2u);
    // The same in the words of older clients.
    const DirtyRange range{
        .address = kGuestBase, .size = kGuestSize, .bitmap = {.page_size = 4096u, .size = 64u}};
    const std::vector<std::byte> old_answer = co_await sure(
        client.call(Command::kDirtyPages,
                    payload_of(DirtyPages{.argsz = 4096u, .flags = kDirtyGetBitmap}, range)));
    EXPECT_EQ(old_answer.size(), 48u + 64u);
    EXPECT_EQ(load<uint64_t>(Bytes(old_answer).subspan(48)), 1u << 20);
    const std::vector<std::byte> unmapped = co_await sure(client.call(
        Command::kDmaUnmap,
        payload_of(
            DmaUnmap{
                .argsz = 4096u, .flags = kUnmapGetDirty, .address = kGuestBase, .size = kGuestSize},
            DirtyBitmap{.page_size = 4096u, .size = 32u})));
    EXPECT_EQ(load<uint64_t>(Bytes(unmapped).subspan(48)), 1u << 20);
    co_await sure(client.call(Command::kDirtyPages,
                              payload_of(DirtyPages{.argsz = 8u, .flags = kDirtyStop})));
    const Result<std::vector<std::byte>> off = co_await client.call(
        Command::kDirtyPages,
        payload_of(DirtyPages{.argsz = 4096u, .flags = kDirtyGetBitmap}, range));
    EXPECT_EQ(outcome(off), "invalid");
  }
  co_await rig.close();
}

WORLD_TEST(VfioUserMigration, WhatIsUnderWayWhenLoggingStartsIsTold) {
  Rig rig(env);
  rig.open(scene);
  {
    Guest guest = co_await rig.guest();
    Client& client = *guest.client;
    co_await sure(guest.copy(0, 4096 * 20, 4096, 0, 86400_s));
    const Le32 rung(guest.rings);
    co_await sure(client.write(kBar0, kDoorbellsAt, bytes_of(rung)));
    for (int starts = 0; starts < 2; ++starts) {
      co_await sure(client.call(Command::kFeature,
                                payload_of(feature(FeatureId::kLoggingStart, kFeatureSet, 24),
                                           FeatureLoggingStart{.page_size = 4096u})));
      co_await expect_dirty(client, Pages{20});
      co_await expect_dirty(client, Pages{20});
    }
    co_await sure(client.call(Command::kDirtyPages,
                              payload_of(DirtyPages{.argsz = 8u, .flags = kDirtyStart})));
    co_await expect_dirty(client, Pages{20});
  }
  co_await rig.close();
}

WORLD_TEST(VfioUserMigration, FeaturesAreProbed) {
  Rig rig(env);
  rig.open(scene);
  {
    Guest guest = co_await rig.guest(false);
    Client& client = *guest.client;
    struct Probe {
      uint32_t id;
      uint32_t ways;
      const char* outcome;
    };
    const Probe probes[] = {
        {1, kFeatureGet, "ok"},          {1, kFeatureSet, "invalid"},
        {2, kFeatureGet, "ok"},          {2, kFeatureGet | kFeatureSet, "ok"},
        {6, kFeatureSet, "ok"},          {6, kFeatureGet, "invalid"},
        {7, kFeatureSet, "ok"},          {8, kFeatureGet, "ok"},
        {8, kFeatureSet, "invalid"},     {3, kFeatureGet, "unsupported"},
        {0, kFeatureGet, "unsupported"}, {0xffff, 0, "unsupported"},
    };
    for (const Probe& probe : probes) {
      const Result<std::vector<std::byte>> answer = co_await client.call(
          Command::kFeature,
          payload_of(Feature{.argsz = 8u, .flags = probe.id | probe.ways | kFeatureProbe}));
      EXPECT_EQ(outcome(answer), probe.outcome) << probe.id << " " << probe.ways;
    }
    const std::vector<std::byte> migration = co_await sure(client.call(
        Command::kFeature, payload_of(feature(FeatureId::kMigration, kFeatureGet, 16))));
    EXPECT_EQ(load<FeatureMigration>(Bytes(migration).subspan(8)).flags, kMigrationStopCopy);
    const std::vector<std::byte> state = co_await sure(client.call(
        Command::kFeature, payload_of(feature(FeatureId::kMigrationState, kFeatureGet, 16))));
    EXPECT_EQ(load<FeatureState>(Bytes(state).subspan(8)).state, 2u);
  }
  co_await rig.close();
}

}  // namespace
}  // namespace cairn::vfio_user_tests
