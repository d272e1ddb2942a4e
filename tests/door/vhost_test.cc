// SPDX-License-Identifier: Apache-2.0
// The vhost-user door against a driver that behaves like a guest's, in every world.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <string>
#include <vector>

#include "base/rng.h"
#include "door/vhost.h"
#include "door/vhost_user/dirty_log.h"
#include "task/deadline.h"
#include "task/when_all.h"

namespace cairn::door_tests {
namespace {

WORLD_TEST_SUITE(Vhost);

using door::vhost_user::kRangeUnmap;
using door::vhost_user::Waiting;

constexpr DriverOptions kLayouts[] = {
    {.is_packed = false, .has_event_index = true, .has_indirect = true},
    {.is_packed = false, .has_event_index = false, .has_indirect = false},
    {.is_packed = true, .has_event_index = true, .has_indirect = true},
    {.is_packed = true, .has_event_index = false, .has_indirect = false},
    {.is_packed = true, .has_event_index = true, .has_indirect = true, .has_inflight = false},
};

using Content = std::vector<std::byte>;

Bytes bytes_of(const BlkRange& range) {
  return std::as_bytes(std::span<const BlkRange, 1>(&range, 1));
}

Task<Content> read(Driver& driver, uint64_t sector, size_t size) {
  Content data(size);
  co_await expect_ok(driver.read(sector, data, {}));
  co_return data;
}

Task<Content> read_on(Driver& driver, size_t queue, uint64_t sector, size_t size) {
  Content data(size);
  co_await expect_ok(driver.read(sector, data, {}, queue));
  co_return data;
}

WORLD_TEST(Vhost, WhatWasWrittenIsReadInEveryLayout) {
  VhostDoor door(env, scene);
  co_await door.open("mem:size=4M");
  for (const DriverOptions& layout : kLayouts) {
    Driver driver(env, *env::sharing(env), layout);
    must(driver.prepare());
    const Result<void> connected = co_await driver.connect(door.address, {});
    must(connected);
    EXPECT_EQ(driver.config().capacity, (4u << 20) / 512);
    EXPECT_EQ(driver.config().physical_block_exponent, 3);
    const Content data = pattern(20480, layout.is_packed ? 7 : 8);
    co_await expect_ok(driver.write(8, data, {}));
    co_await expect_ok(driver.call(BlkType::kFlush, 0, {}, {}, {}));
    const Content found = co_await read(driver, 8, data.size());
    EXPECT_EQ(found, data);
    const Result<void> left = co_await driver.leave({});
    must(left);
    co_await driver.close();
  }
  const auto figures = co_await door.server().figures("disk");
  EXPECT_EQ(must(figures).copied_bytes, 0u) << "whole blocks go straight to the drive";
  EXPECT_EQ(must(figures).front_ends, std::size(kLayouts));
  co_await door.close();
}

WORLD_TEST(Vhost, DrivesAreToldThatTheGuestCanChangeItsMemory) {
  VhostDoor door(env, scene);
  door.is_watched = true;
  co_await door.open("mem:size=4M,block=4096");
  Driver driver(env, *env::sharing(env), {});
  must(driver.prepare());
  const Result<void> connected = co_await driver.connect(door.address, {});
  must(connected);
  const Content data = pattern(16384, 1);
  co_await expect_ok(driver.write(8, data, {}));
  const Content found = co_await read(driver, 8, data.size());
  EXPECT_EQ(found, data);
  EXPECT_EQ(door.seen().transfers, 2);
  EXPECT_EQ(door.seen().unstable, 2);
  const Content sector = co_await read(driver, 9, 512);
  EXPECT_EQ(door.seen().transfers, 3);
  EXPECT_EQ(door.seen().unstable, 2) << "what is no whole block goes through memory of ours";
  co_await driver.close();
  co_await door.close();
}

WORLD_TEST(Vhost, SingleSectorsKeepTheRestOfTheirBlock) {
  VhostDoor door(env, scene);
  co_await door.open("mem:size=1M,block=4096");
  Driver driver(env, *env::sharing(env), {});
  must(driver.prepare());
  const Result<void> connected = co_await driver.connect(door.address, {});
  must(connected);
  Content whole = pattern(8192, 1);
  co_await expect_ok(driver.write(0, whole, {}));
  const Content part = pattern(1024, 2);
  co_await expect_ok(driver.write(7, part, {}));
  std::ranges::copy(part, whole.begin() + 7 * 512);
  const Content found = co_await read(driver, 0, 8192);
  EXPECT_EQ(found, whole);
  const Content sector = co_await read(driver, 8, 512);
  EXPECT_TRUE(std::ranges::equal(sector, Bytes(whole).subspan(4096, 512)));
  const auto figures = co_await door.server().figures("disk");
  EXPECT_EQ(must(figures).copied_bytes, 1536u) << "one copy of what is no whole block";
  co_await driver.close();
  co_await door.close();
}

WORLD_TEST(Vhost, DiscardsAndZeroesReadAsZeroes) {
  VhostDoor door(env, scene);
  co_await door.open("mem:size=1M");
  Driver driver(env, *env::sharing(env), {});
  must(driver.prepare());
  const Result<void> connected = co_await driver.connect(door.address, {});
  must(connected);
  const Content data = pattern(16384, 3);
  const Content zeroes(4096);
  co_await expect_ok(driver.write(0, data, {}));
  const BlkRange discard{.sector = 8, .sectors = 8, .flags = 0};
  const BlkRange zero{.sector = 17, .sectors = 3, .flags = kRangeUnmap};
  co_await expect_ok(driver.call(BlkType::kDiscard, 0, bytes_of(discard), {}, {}));
  co_await expect_ok(driver.call(BlkType::kWriteZeroes, 0, bytes_of(zero), {}, {}));
  Content expected = data;
  std::ranges::fill(MutableBytes(expected).subspan(8 * 512, 8 * 512), std::byte{0});
  std::ranges::fill(MutableBytes(expected).subspan(17 * 512, 3 * 512), std::byte{0});
  const Content found = co_await read(driver, 0, data.size());
  EXPECT_EQ(found, expected);
  co_await driver.close();
  co_await door.close();
}

Task<BlkStatus> status_of(Task<Result<BlkStatus>> request) {
  const Result<BlkStatus> status = co_await request;
  co_return must(status);
}

WORLD_TEST(Vhost, WhatCannotBeIsAnsweredSo) {
  VhostDoor door(env, scene);
  co_await door.open("mem:size=1M");
  Driver driver(env, *env::sharing(env), {});
  must(driver.prepare());
  const Result<void> connected = co_await driver.connect(door.address, {});
  must(connected);
  Content data(4096);
  BlkStatus status = co_await status_of(driver.read(2041, data, {}));
  EXPECT_EQ(status, BlkStatus::kError) << "past the end";
  status = co_await status_of(driver.write(UINT64_MAX, data, {}));
  EXPECT_EQ(status, BlkStatus::kError);
  status = co_await status_of(driver.write(0, Bytes(data).first(100), {}));
  EXPECT_EQ(status, BlkStatus::kError) << "no whole sectors";
  status = co_await status_of(driver.call(BlkType::kOut, 0, {}, data, {}));
  EXPECT_EQ(status, BlkStatus::kError) << "a write of memory that is to be written";
  status = co_await status_of(driver.call(static_cast<BlkType>(77), 0, {}, {}, {}));
  EXPECT_EQ(status, BlkStatus::kUnsupported);
  const BlkRange flagged{.sector = 0, .sectors = 8, .flags = 1};
  status = co_await status_of(driver.call(BlkType::kDiscard, 0, bytes_of(flagged), {}, {}));
  EXPECT_EQ(status, BlkStatus::kUnsupported);
  const BlkRange beyond{.sector = 2040, .sectors = 9, .flags = 0};
  status = co_await status_of(driver.call(BlkType::kWriteZeroes, 0, bytes_of(beyond), {}, {}));
  EXPECT_EQ(status, BlkStatus::kError);
  std::array<std::byte, 20> id{};
  co_await expect_ok(driver.call(BlkType::kGetId, 0, {}, id, {}));
  EXPECT_EQ(std::string(as_text(id).data()), "disk");
  co_await driver.close();
  co_await door.close();
}

WORLD_TEST(Vhost, ReadOnlyDrivesAreToldAndKept) {
  VhostDoor door(env, scene);
  co_await door.open("mem:size=1M", true);
  Driver driver(env, *env::sharing(env), {});
  must(driver.prepare());
  const Result<void> connected = co_await driver.connect(door.address, {});
  must(connected);
  EXPECT_NE(driver.features() & door::vhost_user::kBlkReadOnly, 0u);
  EXPECT_EQ(driver.features() & door::vhost_user::kBlkDiscard, 0u);
  Content data(4096);
  BlkStatus status = co_await status_of(driver.write(0, data, {}));
  EXPECT_EQ(status, BlkStatus::kError);
  const BlkRange range{.sector = 0, .sectors = 8, .flags = 0};
  status = co_await status_of(driver.call(BlkType::kDiscard, 0, bytes_of(range), {}, {}));
  EXPECT_EQ(status, BlkStatus::kError);
  co_await driver.close();
  co_await door.close();
}

// One of many at once, on one queue: its own range, checked against what it wrote.
Task<void> use(Driver& driver, size_t queue, uint64_t first, uint64_t seed, int rounds) {
  constexpr uint64_t kOwn = 128;  // sectors
  Rng rng(seed);
  Content expected(kOwn * 512);
  co_await expect_ok(driver.write(first, expected, {}, queue));
  for (int i = 0; i < rounds; ++i) {
    const bool by_block = rng.below(2) == 0;
    const uint64_t unit = by_block ? 8 : 1;
    const uint64_t at = rng.below(kOwn / unit) * unit;
    const uint64_t max = std::min<uint64_t>((kOwn - at) / unit, 16 / unit + 1);
    const uint64_t count = (1 + rng.below(max)) * unit;
    const MutableBytes part = MutableBytes(expected).subspan(at * 512, count * 512);
    if (rng.below(2) == 0) {
      const Content data = pattern(part.size(), rng.next());
      co_await expect_ok(driver.write(first + at, data, {}, queue));
      std::ranges::copy(data, part.begin());
    } else {
      Content found(part.size());
      co_await expect_ok(driver.read(first + at, found, {}, queue));
      EXPECT_TRUE(std::ranges::equal(found, part)) << "round " << i;
    }
  }
}

WORLD_TEST(Vhost, ManyQueuesAndRequestsAtOnceInEveryMode) {
  const env::DiskOptions disk = scene.disk("vhost", 2 << 20);
  uint64_t number = 0;
  for (const Waiting waiting : {Waiting::kInterrupt, Waiting::kAdaptive, Waiting::kPolling}) {
    VhostDoor door(env, scene, {}, ++number);
    co_await door.open("file:" + disk.path + ",size=2M,direct=" + (disk.direct ? "on" : "off"),
                       false, CoreId(env.core_count() - 1), waiting);
    for (DriverOptions layout : {kLayouts[0], kLayouts[2]}) {
      layout.queues = 2;
      Driver driver(env, *env::sharing(env), layout);
      must(driver.prepare());
      const Result<void> connected = co_await driver.connect(door.address, {});
      must(connected);
      std::vector<Task<void>> users;
      for (uint64_t i = 0; i < 12; ++i) {
        users.push_back(use(driver, i % 2, i * 128, env.rng().next(), 30));
      }
      co_await task::when_all(std::move(users));
      const Result<void> left = co_await driver.leave({});
      must(left);
      co_await driver.close();
    }
    co_await door.close();
  }
}

// Some reads, each so long after the last; whether the queue still looks a moment after them.
Task<bool> looks_after_reads(env::Env& env, Driver& driver, Duration apart) {
  Content data(4096);
  for (int i = 0; i < 12; ++i) {
    const Result<void> waited = co_await task::sleep_for(env, apart);
    must(waited);
    co_await expect_ok(driver.read(0, data, {}));
  }
  const Result<void> waited = co_await task::sleep_for(env, 3_us);
  must(waited);
  co_return !driver.ring(0).wants_kick();
}

WORLD_TEST(Vhost, AnAdaptiveQueueLooksWhileItsGuestIsQuick) {
  if (!scene.is_simulated()) co_return scene.skip("times are exact in a simulation only");
  VhostDoor door(env, scene, {.adaptive_window = 1_ms});
  co_await door.open("mem:size=1M");
  Driver driver(env, *env::sharing(env), {.has_event_index = false});
  must(driver.prepare());
  const Result<void> connected = co_await driver.connect(door.address, {});
  must(connected);
  const bool at_first = co_await looks_after_reads(env, driver, 10_us);
  EXPECT_TRUE(at_first);
  const bool while_slow = co_await looks_after_reads(env, driver, 20_ms);
  EXPECT_FALSE(while_slow) << "looking found nothing, so it sleeps at once";
  const bool again = co_await looks_after_reads(env, driver, 10_us);
  EXPECT_TRUE(again) << "kicks came sooner than looking would have ended";
  co_await driver.close();
  co_await door.close();
}

WORLD_TEST(Vhost, WritesAreDurableWhenTheCacheIsOff) {
  VhostDoor door(env, scene);
  co_await door.open("mem:size=1M");
  Driver driver(env, *env::sharing(env), {});
  must(driver.prepare());
  const Result<void> connected = co_await driver.connect(door.address, {});
  must(connected);
  EXPECT_EQ(driver.config().writeback, 1);
  const Result<void> set = co_await driver.set_writeback(false, {});
  must(set);
  const Result<door::vhost_user::BlkConfig> config = co_await driver.read_config({});
  EXPECT_EQ(must(config).writeback, 0);
  co_await driver.close();
  co_await door.close();
}

WORLD_TEST(Vhost, AResizeIsInTheConfiguration) {
  VhostDoor door(env, scene);
  co_await door.open("mem:size=1M");
  Driver driver(env, *env::sharing(env), {});
  must(driver.prepare());
  const Result<void> connected = co_await driver.connect(door.address, {});
  must(connected);
  const Result<void> resized = co_await door.server().resize("disk", 2 << 20);
  must(resized);
  const Result<door::vhost_user::BlkConfig> config = co_await driver.read_config({});
  EXPECT_EQ(must(config).capacity, (2u << 20) / 512);
  const Content data = pattern(4096, 4);
  co_await expect_ok(driver.write(4088, data, {}));
  const Result<void> odd = co_await door.server().resize("disk", 1000);
  EXPECT_EQ(odd.error(), Errc::kInvalid);
  const Result<void> none = co_await door.server().resize("other", 1 << 20);
  EXPECT_EQ(none.error(), Errc::kNotFound);
  co_await driver.close();
  co_await door.close();
}

WORLD_TEST(Vhost, AFrontEndThatVanishesMakesRoomForTheNext) {
  VhostDoor door(env, scene);
  co_await door.open("mem:size=1M");
  const Content data = pattern(4096, 5);
  for (int i = 0; i < 3; ++i) {
    Driver driver(env, *env::sharing(env), kLayouts[i]);
    must(driver.prepare());
    const Result<void> connected = co_await driver.connect(door.address, {});
    must(connected);
    if (i == 0) co_await expect_ok(driver.write(0, data, {}));
    const Content found = co_await read(driver, 0, 4096);
    EXPECT_EQ(found, data);
    driver.hang_up();
    co_await driver.close();
  }
  co_await door.close();
}

WORLD_TEST(Vhost, ADriveThatIsRemovedFinishesItsRequestsAndComesBack) {
  VhostDoor door(env, scene);
  const Content data = pattern(4096, 7);
  Driver driver(env, *env::sharing(env), kLayouts[0]);
  must(driver.prepare());
  for (int i = 0; i < 3; ++i) {
    co_await door.open("mem:size=1M");
    const Result<void> connected = co_await driver.connect(door.address, {});
    must(connected);
    co_await expect_ok(driver.write(8, data, {}));
    const Result<void> removed = co_await door.server().remove("disk", env.now() + 10_s);
    must(removed);
    co_await driver.until_gone({});
    const Result<void> again = co_await driver.connect(door.address, {});
    EXPECT_FALSE(again.has_value());
    const Result<void> twice = co_await door.server().remove("disk", env.now());
    EXPECT_EQ(twice.error(), Errc::kNotFound);
    co_await door.put_away();
  }
  co_await driver.close();
  co_await door.server().close();
}

WORLD_TEST(Vhost, AnotherServerGoesOnWithTheSameQueues) {
  const env::DiskOptions disk = scene.disk("vhost", 1 << 20);
  const std::string spec = "file:" + disk.path + ",size=1M,direct=" + (disk.direct ? "on" : "off");
  uint64_t number = 0;
  for (const DriverOptions& layout : {kLayouts[0], kLayouts[2]}) {
    Driver driver(env, *env::sharing(env), layout);
    must(driver.prepare());
    const Content data = pattern(4096, 6);
    for (uint64_t i = 0; i < 40; ++i) {
      VhostDoor door(env, scene, {}, ++number);
      co_await door.open(spec);
      const Result<void> connected = co_await driver.connect(door.address, {});
      must(connected);
      for (uint64_t j = 0; j <= i % 5; ++j) co_await expect_ok(driver.write(8 * i, data, {}));
      const Content found = co_await read(driver, 8 * i, 4096);
      EXPECT_EQ(found, data);
      co_await door.server().drain(env.now() + 1_s);
      co_await door.close();
    }
    co_await driver.close();
  }
}

WORLD_TEST(Vhost, ABrokenQueueRestsAndTheOthersGoOn) {
  uint64_t number = 0;
  for (const DriverOptions& layout : {kLayouts[0], kLayouts[2]}) {
    std::string said;
    VhostDoor door(env, scene, {.log = [&said](std::string_view text) { said = text; }}, ++number);
    co_await door.open("mem:size=1M");
    DriverOptions two = layout;
    two.queues = 2;
    Driver driver(env, *env::sharing(env), two);
    must(driver.prepare());
    const Result<void> connected = co_await driver.connect(door.address, {});
    must(connected);
    Content data = pattern(4096, 9);
    co_await expect_ok(driver.write(0, data, {}, 1));
    // More is available than there can be; or a chain that goes on for ever.
    const door::vhost_user::DriverRingPlace& place = driver.ring(0).place();
    const MutableBytes memory = driver.memory();
    if (layout.is_packed) {
      for (size_t i = 0; i < two.queue_size; ++i) {
        constexpr uint16_t kFlags =
            door::vhost_user::kDescriptorNext | door::vhost_user::kDescriptorAvailable;
        store(memory.subspan(place.descriptors + i * 16 + 14), kFlags);
      }
    } else {
      store(memory.subspan(place.driver + 2), uint16_t{30000});
    }
    driver.kick(0);
    for (int i = 0; i < 20; ++i) co_await expect_ok(driver.write(8, data, {}, 1));
    const Content found = co_await read_on(driver, 1, 8, 4096);
    EXPECT_EQ(found, data);
    const Result<void> left = co_await driver.leave({});
    must(left);
    EXPECT_NE(said.find("is broken"), said.npos) << said;
    co_await driver.close();
    co_await door.close();
  }
}

WORLD_TEST(Vhost, MemoryComesAndGoesUnderRequests) {
  VhostDoor door(env, scene);
  co_await door.open("mem:size=1M");
  Driver driver(env, *env::sharing(env), {});
  must(driver.prepare());
  const Result<void> connected = co_await driver.connect(door.address, {});
  must(connected);
  env::Descriptor more = must(env::sharing(env)->make_shared_memory(8192));
  std::array<std::byte, 40> payload{};
  store(
      MutableBytes(payload).subspan(8),
      door::vhost_user::MemoryRegion{
          .guest_address = 1ull << 40, .size = 8192, .user_address = 1ull << 41, .mmap_offset = 0});
  const Content data = pattern(65536, 10);
  for (int i = 0; i < 5; ++i) {
    Task<void> writing = expect_ok(driver.write(0, data, {}));
    const Result<uint64_t> added =
        co_await driver.send(door::vhost_user::Request::kAddMemReg, payload, &more, {});
    EXPECT_EQ(must(added), 0u);
    const Result<uint64_t> twice =
        co_await driver.send(door::vhost_user::Request::kAddMemReg, payload, &more, {});
    EXPECT_EQ(must(twice), 1u) << "it is there already";
    const Result<uint64_t> gone =
        co_await driver.send(door::vhost_user::Request::kRemMemReg, payload, nullptr, {});
    EXPECT_EQ(must(gone), 0u);
    co_await writing;
  }
  const Result<uint64_t> none =
      co_await driver.send(door::vhost_user::Request::kRemMemReg, payload, nullptr, {});
  EXPECT_EQ(must(none), 1u) << "there is no such region";
  const Content found = co_await read(driver, 0, data.size());
  EXPECT_EQ(found, data);
  co_await driver.close();
  co_await door.close();
}

WORLD_TEST(Vhost, ADeviceThatIsResetStartsAnew) {
  VhostDoor door(env, scene);
  co_await door.open("mem:size=1M");
  for (int i = 0; i < 2; ++i) {
    Driver driver(env, *env::sharing(env), kLayouts[2 * i]);
    must(driver.prepare());
    const Result<void> connected = co_await driver.connect(door.address, {});
    must(connected);
    const Content data = pattern(4096, 11);
    co_await expect_ok(driver.write(0, data, {}));
    const auto how =
        i == 0 ? door::vhost_user::Request::kResetDevice : door::vhost_user::Request::kSetStatus;
    const std::array<std::byte, 8> zero{};
    const Result<uint64_t> reset =
        co_await driver.send(how, i == 0 ? Bytes() : Bytes(zero), nullptr, {});
    EXPECT_EQ(must(reset), 0u);
    driver.kick(0);
    const Result<door::vhost_user::BlkConfig> config = co_await driver.read_config({});
    EXPECT_EQ(must(config).capacity, 2048u);
    co_await driver.close();
  }
  co_await door.close();
}

WORLD_TEST(Vhost, WhatIsNoMessageEndsTheSession) {
  std::string said;
  VhostDoor door(env, scene, {.log = [&said](std::string_view text) { said = text; }});
  co_await door.open("mem:size=1M");
  Driver driver(env, *env::sharing(env), {});
  must(driver.prepare());
  const Result<void> connected = co_await driver.connect(door.address, {});
  must(connected);
  const Content data(4000);
  const Result<uint64_t> answer =
      co_await driver.send(door::vhost_user::Request::kGetFeatures, data, nullptr, {});
  EXPECT_FALSE(answer.has_value());
  const Result<void> again = co_await driver.connect(door.address, {});
  must(again);
  EXPECT_NE(said.find("disk was left"), said.npos) << said;
  const std::array<std::byte, 8> strange = {std::byte{0xff}, std::byte{0xff}, std::byte{0xff}};
  const Result<uint64_t> refused =
      co_await driver.send(door::vhost_user::Request::kSetVringNum, strange, nullptr, {});
  EXPECT_EQ(must(refused), 1u) << "a queue that there is not";
  co_await expect_ok(driver.call(BlkType::kFlush, 0, {}, {}, {}));
  co_await driver.close();
  co_await door.close();
}

template <class T>
Bytes bytes_of_value(const T& value) {
  return std::as_bytes(std::span<const T, 1>(&value, 1));
}

// How many pages of data the log has, which begins anew.
size_t pages_in(const env::SharedMemory& log) {
  constexpr size_t kDataPages = (4ull << 30) / door::vhost_user::DirtyLog::kPage / 8;
  size_t count = 0;
  for (std::byte& bits : log.bytes().subspan(kDataPages)) {
    count += static_cast<size_t>(std::popcount(std::to_integer<unsigned>(bits)));
    bits = std::byte{0};
  }
  return count;
}

WORLD_TEST(Vhost, PagesThatTheDeviceWritesAreLogged) {
  env::Sharing& sharing = *env::sharing(env);
  VhostDoor door(env, scene);
  co_await door.open("mem:size=1M");
  Driver driver(env, sharing, {});
  must(driver.prepare());
  const Result<void> connected = co_await driver.connect(door.address, {});
  must(connected);
  const env::Descriptor hold = must(sharing.make_shared_memory(256 << 10));
  const auto log = must(sharing.map_shared(hold, {.size = 256 << 10}));
  const door::vhost_user::LogArea area{.size = 256 << 10, .offset = 0};
  const Result<uint64_t> given =
      co_await driver.send(door::vhost_user::Request::kSetLogBase, bytes_of_value(area), &hold, {});
  EXPECT_EQ(must(given), 0u);
  Content data(16384);
  co_await expect_ok(driver.read(0, data, {}));
  EXPECT_EQ(pages_in(*log), 0u) << "nobody has asked for it";
  const uint64_t features = driver.features() | door::vhost_user::kLogAll;
  const Result<uint64_t> set = co_await driver.send(door::vhost_user::Request::kSetFeatures,
                                                    bytes_of_value(features), nullptr, {});
  EXPECT_EQ(must(set), 0u);
  co_await expect_ok(driver.read(0, data, {}));
  EXPECT_EQ(pages_in(*log), 5u) << "the data, and the page with the status";
  co_await expect_ok(driver.write(0, data, {}));
  EXPECT_EQ(pages_in(*log), 1u);
  co_await driver.close();
  co_await door.close();
}

// The server's own channel, on which it says that the configuration has changed.
WORLD_TEST(Vhost, AResizeIsToldOnTheServersChannel) {
  env::Sharing& sharing = *env::sharing(env);
  auto ends = sharing.make_local_pair();
  if (!ends) {
    EXPECT_EQ(ends.error(), Errc::kUnsupported);
    co_return scene.skip("streams cannot be handed on in this world");
  }
  VhostDoor door(env, scene);
  co_await door.open("mem:size=1M");
  Driver driver(env, sharing, {});
  must(driver.prepare());
  const Result<void> connected = co_await driver.connect(door.address, {});
  must(connected);
  const auto ours = must(sharing.open_local(std::move(ends->first)));
  const Result<uint64_t> given =
      co_await driver.send(door::vhost_user::Request::kSetBackendReqFd, {}, &ends->second, {});
  EXPECT_EQ(must(given), 0u);
  const Result<uint64_t> twice =
      co_await driver.send(door::vhost_user::Request::kSetBackendReqFd, {}, &ends->second, {});
  EXPECT_EQ(must(twice), 1u);
  const Result<void> resized = co_await door.server().resize("disk", 2 << 20);
  must(resized);
  std::array<std::byte, sizeof(door::vhost_user::MessageHeader)> told{};
  const Result<env::Received> got = co_await ours->read(told, {});
  EXPECT_EQ(must(got).bytes, told.size());
  const auto header = load<door::vhost_user::MessageHeader>(told);
  EXPECT_EQ(header.request, static_cast<uint32_t>(door::vhost_user::BackendRequest::kConfigChange));
  EXPECT_EQ(header.size, 0u);
  const Result<door::vhost_user::BlkConfig> config = co_await driver.read_config({});
  EXPECT_EQ(must(config).capacity, (2u << 20) / 512);
  co_await driver.close();
  co_await door.close();
}

}  // namespace
}  // namespace cairn::door_tests
