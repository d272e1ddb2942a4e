// SPDX-License-Identifier: Apache-2.0
// Requests and their answers, in every world.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "door/door.h"
#include "env/io.h"
#include "testing/drive/seen_source.h"

namespace cairn::door_tests {
namespace {

WORLD_TEST_SUITE(NbdTransmission);

constexpr uint32_t kEinval = 22;
constexpr uint32_t kEnospc = 28;
constexpr uint32_t kEperm = 1;
constexpr uint32_t kEoverflow = 75;

Task<void> expect(NbdClient& client, Ask request, uint32_t error, Bytes payload = {}) {
  const Answer answer = co_await sure(client.call(request, payload));
  EXPECT_EQ(answer.error, error) << static_cast<uint16_t>(request.command) << " at "
                                 << request.offset;
}

WORLD_TEST(NbdTransmission, WhatIsWrittenIsRead) {
  Door door(env);
  co_await door.open(scene.any_port());
  for (const bool structured : {false, true}) {
    NbdClient client(env);
    co_await sure(client.arrive(door.address, "a", structured));
    struct Range {
      uint64_t offset;
      uint32_t length;
    };
    // Whole blocks, parts of one, across two, across pieces of a transfer, and nothing.
    for (const Range range : {Range{0, 4096},
                              {8192, 65536},
                              {5, 1},
                              {4000, 200},
                              {4095, 4098},
                              {1 << 20, 1 << 20},
                              {123, 700'001},
                              {99, 0},
                              {kSize - 1, 1}}) {
      const Content data = pattern(range.length, range.offset + 1);
      co_await expect(client, {Command::kWrite, range.offset, range.length, door::nbd::kFlagFua}, 0,
                      data);
      const Answer read =
          co_await sure(client.call({Command::kRead, range.offset, range.length, 0}));
      EXPECT_EQ(read.error, 0u);
      EXPECT_TRUE(read.data == data) << range.offset << " " << range.length;
    }
    client.hang_up();
  }
  co_await door.close();
}

WORLD_TEST(NbdTransmission, ZeroesAndTrimsKeepWhatIsAround) {
  Door door(env);
  co_await door.open(scene.any_port());
  NbdClient client(env);
  co_await sure(client.arrive(door.address, "small", true));
  Content expected = pattern(65536, 3);
  co_await expect(client, {Command::kWrite, 0, 65536, 0}, 0u, expected);
  const uint16_t flags[] = {0, door::nbd::kFlagNoHole,
                            door::nbd::kFlagFastZero | door::nbd::kFlagFua};
  const uint32_t offsets[] = {1000, 20'000, 40'960};
  const uint32_t lengths[] = {3000, 10, 1024};
  for (size_t i = 0; i < 3; ++i) {
    const Ask zero{Command::kWriteZeroes, offsets[i], lengths[i], flags[i]};
    co_await expect(client, zero, 0u);
    std::fill_n(expected.begin() + offsets[i], lengths[i], std::byte{0});
  }
  // A trim takes whole blocks only.
  co_await expect(client, {Command::kTrim, 50'000, 2000, door::nbd::kFlagFua}, 0u);
  std::fill(expected.begin() + 50'176, expected.begin() + 51'712, std::byte{0});
  co_await expect(client, {Command::kFlush, 0, 0, 0}, 0u);
  co_await expect(client, {Command::kCache, 0, 65536, 0}, 0u);
  const Answer read = co_await sure(client.call({Command::kRead, 0, 65536, door::nbd::kFlagDf}));
  EXPECT_TRUE(read.data == expected);
  EXPECT_EQ(read.chunks, 1u);
  client.hang_up();
  co_await door.close();
}

// One core, so that the test sees what its drive counts.
template <class World>
class NbdOneCore : public Conformance<World> {
  conformance::Setting setting() const override { return {.cores = 1}; }
};
TYPED_TEST_SUITE(NbdOneCore, Worlds, WorldNames);

// What a flush tells is for those who ask for one.
WORLD_TEST(NbdOneCore, DurableTrimsAndZeroesFlushNothing) {
  Door door(env);
  auto source = std::make_unique<drive::SeenSource>(
      must(drive::Source::make(env, drive::Spec::parse("mem:size=1M").value())));
  const drive::SeenSource::Counts& counts = source->counts();
  co_await door.add({.name = "seen"}, std::move(source));
  co_await door.open(scene.any_port());
  NbdClient client(env);
  co_await sure(client.arrive(door.address, "seen", true));
  co_await expect(client, {Command::kWrite, 0, 65536, 0}, 0u, pattern(65536, 3));
  co_await expect(client, {Command::kTrim, 0, 8192, door::nbd::kFlagFua}, 0u);
  co_await expect(client, {Command::kWriteZeroes, 8192, 8192, door::nbd::kFlagFua}, 0u);
  EXPECT_EQ(counts.flushes, 0);
  const Answer read = co_await sure(client.call({Command::kRead, 0, 16384, door::nbd::kFlagDf}));
  EXPECT_TRUE(read.data == Content(16384));
  co_await expect(client, {Command::kFlush, 0, 0, 0}, 0u);
  EXPECT_EQ(counts.flushes, 1);
  client.hang_up();
  co_await door.close();
}

WORLD_TEST(NbdTransmission, HolesAndStatusTellWhereZeroesAre) {
  Door door(env);
  co_await door.open(scene.any_port());
  NbdClient client(env);
  co_await sure(client.arrive(door.address, "a", true));
  const Content data = pattern(64 << 10, 9);
  co_await expect(client, {Command::kWrite, 128 << 10, 64 << 10, 0}, 0u, data);
  const Answer read = co_await sure(client.call({Command::kRead, 0, 256 << 10, 0}));
  EXPECT_EQ(read.holes, 2u);
  EXPECT_EQ(read.chunks, 3u);
  EXPECT_TRUE(std::equal(data.begin(), data.end(), read.data.begin() + (128 << 10)));
  const Answer status = co_await sure(client.call({Command::kBlockStatus, 0, 1 << 20, 0}));
  std::vector<std::pair<uint32_t, uint32_t>> extents;
  for (const door::nbd::StatusExtent& each : status.extents)
    extents.emplace_back(each.length, each.flags);
  EXPECT_EQ(extents, (std::vector<std::pair<uint32_t, uint32_t>>{
                         {128 << 10, 2}, {64 << 10, 0}, {832 << 10, 2}}));
  const Answer one =
      co_await sure(client.call({Command::kBlockStatus, 100, 1 << 20, door::nbd::kFlagReqOne}));
  EXPECT_EQ(one.extents.size(), 1u);
  EXPECT_EQ(uint32_t{one.extents[0].length}, (128u << 10) - 100);
  client.hang_up();
  co_await door.close();
}

WORLD_TEST(NbdTransmission, RequestsThatCannotBeServedAreAnswered) {
  Door door(env);
  co_await door.open(scene.any_port());
  for (const bool structured : {false, true}) {
    NbdClient client(env);
    co_await sure(client.arrive(door.address, "a", structured));
    const Content data(10);
    co_await expect(client, {Command::kRead, kSize, 1, 0}, kEinval);
    co_await expect(client, {Command::kRead, UINT64_MAX, 2, 0}, kEinval);
    co_await expect(client, {Command::kWrite, kSize - 5, 10, 0}, kEnospc, data);
    co_await expect(client, {Command::kWriteZeroes, kSize, 1, 0}, kEnospc);
    co_await expect(client, {Command::kTrim, 1, UINT32_MAX, 0}, kEinval);
    co_await expect(client, {Command::kRead, 0, 1, door::nbd::kFlagNoHole}, kEinval);
    co_await expect(client, {Command::kResize, 0, 1, 0}, kEinval);
    co_await expect(client, {static_cast<Command>(99), 0, 1, 0}, kEinval);
    co_await expect(client, {Command::kBlockStatus, 0, 0, 0}, kEinval);
    if (structured) {
      co_await expect(client, {Command::kRead, 0, 1 << 20, door::nbd::kFlagDf}, kEoverflow);
    }
    co_await expect(client, {Command::kRead, 0, 1, 0}, 0u);
    client.hang_up();
  }
  NbdClient reader(env);
  co_await sure(reader.arrive(door.address, "fixed", true));
  const Content data(10);
  co_await expect(reader, {Command::kWrite, 0, 10, 0}, kEperm, data);
  co_await expect(reader, {Command::kTrim, 0, 10, 0}, kEperm);
  co_await expect(reader, {Command::kRead, 0, 10, 0}, 0u);
  reader.hang_up();
  co_await door.close();
}

WORLD_TEST(NbdTransmission, GarbageEndsTheConnectionAndNothingElse) {
  Door door(env);
  co_await door.open(scene.any_port());
  NbdClient other(env);
  co_await sure(other.arrive(door.address, "a", true));
  for (const int way : {0, 1, 2, 3}) {
    NbdClient client(env);
    co_await sure(client.arrive(door.address, "a", true));
    if (way == 0) co_await sure(client.send(Content(28, std::byte{0x33})));
    const door::nbd::RequestHeader half{.command = 1, .cookie = 1, .offset = 0, .length = 4096};
    if (way == 1) co_await sure(client.send(door::nbd::bytes_of(half)));
    if (way == 2) co_await sure(client.send(door::nbd::bytes_of(half).first(20)));
    const door::nbd::RequestHeader huge{
        .command = 1, .cookie = 1, .offset = 0, .length = UINT32_MAX};
    if (way == 3) co_await sure(client.send(door::nbd::bytes_of(huge)));
    if (way == 1 || way == 2) must(client.stream().finish());
    const Result<Answer> end = co_await client.answer();
    EXPECT_FALSE(end.has_value()) << way;
    EXPECT_NE(outcome(end), "corrupt");
    co_await expect(other, {Command::kRead, 0, 4096, 0}, 0u);
  }
  other.hang_up();
  co_await door.close();
}

// Large replies and small ones, in whatever order they come, and none inside another.
WORLD_TEST(NbdTransmission, AllThatIsInFlightIsAnsweredBeforeGoodbye) {
  Door door(env);
  co_await door.open(scene.any_port());
  const Content data = pattern(1 << 20, 6);
  for (const bool structured : {false, true}) {
    NbdClient client(env);
    co_await sure(client.arrive(door.address, "a", structured));
    co_await expect(client, {Command::kWrite, 0, 1 << 20, 0}, 0, data);
    std::map<uint64_t, Ask> asked;
    for (uint64_t i = 0; i < 200; ++i) {
      const Ask ask{Command::kRead, i * 300, i % 20 == 0 ? 600'000u : 700u, 0};
      const uint64_t cookie = co_await sure(client.ask(ask));
      asked[cookie] = ask;
    }
    co_await sure(client.ask({Command::kDisconnect, 0, 0, 0}));
    Result<Answer> answer = co_await client.answer();
    while (answer) {
      const Ask& ask = asked[answer->cookie];
      const Bytes expected = Bytes(data).subspan(ask.offset, ask.length);
      EXPECT_TRUE(std::ranges::equal(answer->data, expected)) << ask.offset;
      asked.erase(answer->cookie);
      answer = co_await client.answer();
    }
    EXPECT_TRUE(asked.empty());
    EXPECT_NE(outcome(answer), "corrupt");
  }
  co_await door.close();
}

WORLD_TEST(NbdTransmission, DrainAnswersWhatItHasTaken) {
  Door door(env);
  co_await door.open(scene.any_port());
  NbdClient client(env);
  co_await sure(client.arrive(door.address, "a", false));
  co_await sure(client.ask({Command::kRead, 0, 1 << 20, 0}));
  Result<Answer> answer = co_await client.answer();
  EXPECT_TRUE(answer.has_value());
  Task<void> drained = door.server().drain(env.now() + 5_s);
  answer = co_await client.answer();
  EXPECT_EQ(outcome(answer), "closed");
  client.hang_up();
  co_await drained;
  co_await door.close();
}

WORLD_TEST(NbdTransmission, NewConnectionsAreToldTheNewSize) {
  Door door(env);
  co_await door.open(scene.any_port());
  NbdClient before(env);
  co_await sure(before.arrive(door.address, "a", true));
  co_await sure(door.server().resize("a", 2 * kSize));
  co_await expect(before, {Command::kRead, kSize, 4096, 0}, 0u);
  NbdClient after(env);
  const Told told = co_await sure(after.arrive(door.address, "a", true));
  EXPECT_EQ(told.size, 2 * kSize);
  co_await sure(door.server().resize("a", kSize / 2));
  co_await expect(before, {Command::kRead, kSize / 2, 4096, 0}, kEinval);
  Result<void> resized = co_await door.server().resize("a", 1000);
  EXPECT_EQ(outcome(resized), "invalid");
  resized = co_await door.server().resize("none", kSize);
  EXPECT_EQ(outcome(resized), "not_found");
  before.hang_up();
  after.hang_up();
  co_await door.close();
}

// A client that asks for much and takes nothing fills its own memory, not that of others.
WORLD_TEST(NbdTransmission, WhoDoesNotReadHoldsUpNobody) {
  Door door(env);
  co_await door.open(scene.any_port());
  NbdClient slow(env);
  co_await sure(slow.arrive(door.address, "a", false));
  for (int i = 0; i < 100; ++i) co_await sure(slow.ask({Command::kRead, 0, 1 << 20, 0}));
  NbdClient quick(env);
  co_await sure(quick.arrive(door.address, "a", true));
  const size_t used = env.buffers().in_use();
  for (uint64_t i = 0; i < 200; ++i) {
    co_await expect(quick, {Command::kRead, i * 4096, 65536, door::nbd::kFlagDf}, 0u);
  }
  EXPECT_EQ(env.buffers().in_use(), used);
  slow.hang_up();
  quick.hang_up();
  co_await door.close();
}

}  // namespace
}  // namespace cairn::door_tests
