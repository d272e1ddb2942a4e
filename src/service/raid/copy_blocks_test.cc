// SPDX-License-Identifier: Apache-2.0
// Copies stay as thin as what they copy. Pools are counted below each service that copies.
#include "drive/copy_blocks.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stack/live_stack.h"
#include "testing/stack/files.h"
#include "testing/stack/redundant.h"

namespace cairn::drive {
namespace {

TEST(CopyRun, IsAUnitOfZeroesOrNot) {
  std::vector<std::byte> data(8 * 512);
  data[2 * 512 + 7] = std::byte{1};
  const CopyShape shape{.lba = 3, .unit = 4, .block_size = 512};
  const auto run = [&](uint64_t first) {
    const CopyRun found = copy_run_at(shape, data, first);
    return std::tuple(found.first, found.count, found.is_zero);
  };
  EXPECT_EQ(run(0), std::tuple(0, 1, true)) << "the end of a unit";
  EXPECT_EQ(run(1), std::tuple(1, 4, false)) << "a unit with one byte in it";
  EXPECT_EQ(run(5), std::tuple(5, 3, true)) << "the begin of a unit";
}

std::map<std::string, std::string> two_keys() {
  return {{"a.key", testing_key(1)}, {"b.key", testing_key(2)}};
}

// A pool of 7 MiB or so in chunks of 64K, for 1 GiB.
std::string pool(std::string_view name) {
  return fmt::format("thin(file:{},size=8M, chunk=64K, virtual=1G)", name);
}

// What a layer says of itself by that name.
task::Task<uint64_t> fact_of(LiveStack& live, std::string path, std::string_view name) {
  LayerInfo layer = co_await live.layers();
  for (size_t at = 2; at < path.size(); at += 2) {
    layer = LayerInfo(layer.below[static_cast<size_t>(path[at] - '0')]);
  }
  for (const auto& [fact, value] : layer.facts) {
    if (fact == name) co_return value;
  }
  ADD_FAILURE() << "no fact " << name << " of layer " << path << ", " << layer.name;
  co_return 0;
}

task::Task<void> wait_until(env::Env& env, LiveStack& live, std::string path, std::string_view name,
                            uint64_t value) {
  for (;;) {
    const uint64_t now = co_await fact_of(live, path, name);
    if (now == value) break;
    const Result<void> slept = co_await task::sleep_for(env, 1_ms);
    if (!slept) break;
  }
}

class ThinCopy : public testing::Test {
 protected:
  // Opens a stack, does something with it and closes it.
  template <class Body>
  void use(std::string text, Body body) {
    run_in_sim(cluster_, [&](env::Env& env) { return open_and_run(env, text, body); });
  }
  sim::Medium& disk(const std::string& path) { return cluster_.node("host").disk(path); }

  sim::Cluster cluster_;

 private:
  template <class Body>
  static task::Task<void> open_and_run(env::Env& env, std::string text, Body body) {
    LeavesWithFiles leaves(two_keys());
    const std::expected<Stack, StackError> stack = Stack::parse(text);
    CO_ASSERT_TRUE(stack.has_value());
    LiveOpened live = co_await open_live_stack(env, *stack, leaves);
    if (!live) {
      ADD_FAILURE() << live.error().show(text);
      co_return;
    }
    co_await body(env, **live);
    co_await (*live)->close();
  }
};

task::Task<void> settle_and_write(env::Env& env, LiveStack& live) {
  co_await until_settled(env, live);
  for (uint64_t i = 0; i < 16; ++i)
    co_await write_value(live, i * 1000, static_cast<uint8_t>(i + 1));
}
task::Task<void> settle_and_read(env::Env& env, LiveStack& live) {
  co_await until_settled(env, live);
  for (uint64_t i = 0; i < 16; ++i) {
    const int value = co_await read_value(live, i * 1000);
    EXPECT_EQ(value, static_cast<int>(i + 1));
    const int hole = co_await read_value(live, i * 1000 + 500);
    EXPECT_EQ(hole, 0);
  }
}

TEST_F(ThinCopy, ANewMirrorOfThinDrivesTakesNoSpace) {
  use(fmt::format("mirror({}, {})", pool("a"), pool("b")),
      [](env::Env& env, LiveStack& live) -> task::Task<void> {
        const uint64_t to_copy = co_await fact_of(live, "0", "regions_to_copy");
        EXPECT_EQ(to_copy, 0U);
        co_await settle_and_write(env, live);
        for (const char* leg : {"0.0", "0.1"}) {
          const uint64_t used = co_await fact_of(live, leg, "chunks_used");
          EXPECT_EQ(used, 17U) << "the label's, and one for each write";
        }
        const uint64_t good = co_await fact_of(live, "0", "legs_good");
        EXPECT_EQ(good, 2U);
      });
}

TEST_F(ThinCopy, ASpareOfAMirrorGetsWhatIsThere) {
  use(fmt::format("mirror({}, {})", pool("a"), pool("b")), settle_and_write);
  use(fmt::format("mirror({}, {}, {}, degraded=yes, spares=1, retry_ms=1)", pool("a"),
                  "thin(file:gone)", pool("c")),
      [](env::Env& env, LiveStack& live) -> task::Task<void> {
        co_await settle_and_read(env, live);
        const uint64_t used = co_await fact_of(live, "0.2", "chunks_used");
        EXPECT_EQ(used, 17U);
      });
  use(fmt::format("mirror({}, {}, degraded=yes)", "thin(file:gone)", pool("c")), settle_and_read);
}

// Memory does not tell its holes: they are found by what is read.
TEST_F(ThinCopy, ZeroesOfADriveThatKnowsNoHolesAreHolesElsewhere) {
  use("mirror(mem:size=64M, thin(file:b,size=8M, chunk=64K, virtual=64M))",
      [](env::Env& env, LiveStack& live) -> task::Task<void> {
        const uint64_t to_copy = co_await fact_of(live, "0", "regions_to_copy");
        EXPECT_GT(to_copy, 900U);
        co_await settle_and_write(env, live);
        const uint64_t used = co_await fact_of(live, "0.1", "chunks_used");
        EXPECT_EQ(used, 17U);
        const uint64_t good = co_await fact_of(live, "0", "legs_good");
        EXPECT_EQ(good, 2U);
      });
}

TEST_F(ThinCopy, ALegOfSparseFilesStaysSparse) {
  use("mirror(file:a,size=64M, file:b,size=64M)", settle_and_write);
  use("mirror(file:a, file:gone, file:c,size=64M, degraded=yes, spares=1, retry_ms=1)",
      settle_and_read);
  uint64_t held = 0;
  for (uint64_t at = 0; at < 64_MiB;) {
    const env::Disk::Extent data = disk("c").next_data(at);
    if (data.length == 0) break;
    held += data.length;
    at = data.offset + data.length;
  }
  EXPECT_LE(held, 64_KiB + 16 * 4096U) << "the head, and what was written";
}

TEST_F(ThinCopy, ARebuiltLegOfParityTakesWhatTheOthersDo) {
  use(fmt::format("parity({}, {}, {})", pool("a"), pool("b"), pool("c")), settle_and_write);
  use(fmt::format("parity({}, {}, {}, {}, degraded=yes, spares=1, retry_ms=1)", pool("a"),
                  pool("b"), "thin(file:gone)", pool("d")),
      [](env::Env& env, LiveStack& live) -> task::Task<void> {
        co_await settle_and_read(env, live);
        const uint64_t good = co_await fact_of(live, "0", "legs_good");
        EXPECT_EQ(good, 3U);
        const uint64_t used = co_await fact_of(live, "0.3", "chunks_used");
        EXPECT_LE(used, 24U);
      });
  use(fmt::format("parity({}, {}, {}, degraded=yes)", "thin(file:gone)", pool("b"), pool("d")),
      settle_and_read);
}

// What a version sees is copied before it is written, a chunk at a time.
TEST_F(ThinCopy, AChunkThatMovesTakesWhatIsInIt) {
  use("snapshot(thin(file:d,size=8M, chunk=16K), chunk=64K)",
      [](env::Env&, LiveStack& live) -> task::Task<void> {
        co_await write_value(live, 0, 1);
        const LiveStack::Told told = co_await live.tell("snapshot", {"take"});
        EXPECT_TRUE(told);
        const uint64_t before = co_await fact_of(live, "0.0", "chunks_used");
        co_await write_value(live, 1, 2);
        const uint64_t after = co_await fact_of(live, "0.0", "chunks_used");
        EXPECT_EQ(after, before + 1) << "of four";
        const int value = co_await read_value(live, 0);
        EXPECT_EQ(value, 1);
      });
}

task::Task<void> rotate_to_b(env::Env& env, LiveStack& live) {
  co_await settle_and_write(env, live);
  const uint64_t before = co_await fact_of(live, "0.0", "chunks_used");
  const LiveStack::Told told = co_await live.tell("encrypt", {"rotate", "b.key"});
  EXPECT_TRUE(told);
  co_await wait_until(env, live, "0", "rotating", 0);
  const uint64_t after = co_await fact_of(live, "0.0", "chunks_used");
  EXPECT_LE(after, before + 1) << "the journal";
}

TEST_F(ThinCopy, ARotationTakesNoSpaceButItsJournal) {
  use(fmt::format("encrypt({}, key=a.key)", pool("d")), rotate_to_b);
  use(fmt::format("encrypt({}, key=b.key)", pool("d")), settle_and_read);
}

// Writes until the pool is full.
task::Task<uint64_t> fill_pool(Drive& drive) {
  const std::vector<std::byte> data = blocks_of(7, 1);
  for (uint64_t chunk = 0;; ++chunk) {
    const Result<void> written = co_await drive.write(Lba(chunk * 16), data);
    if (!written) co_return chunk;
  }
}

task::Task<void> rotate_until_full(env::Env& env, LiveStack& live, uint64_t& chunks) {
  chunks = co_await fill_pool(live);
  const LiveStack::Told told = co_await live.tell("encrypt", {"rotate", "b.key"});
  EXPECT_TRUE(told);
  while (live.concerns().empty()) {
    const Result<void> slept = co_await task::sleep_for(env, 1_ms);
    CO_ASSERT_TRUE(slept.has_value());
  }
  EXPECT_EQ(live.concerns()[0].code, "rotation_full");
  EXPECT_EQ(live.concerns()[0].health, Health::kDegraded) << "all blocks can be used";
  EXPECT_NE(live.concerns()[0].what.find("make room below"), std::string::npos);
  const int value = co_await read_value(live, 0);
  EXPECT_EQ(value, 7);
}

task::Task<void> go_on_with_room(env::Env& env, LiveStack& live, uint64_t chunks) {
  const Result<void> discarded = co_await live.discard(Lba(16 * (chunks - 1)), 16);
  EXPECT_TRUE(discarded);
  co_await wait_until(env, live, "0", "rotating", 0);
  EXPECT_TRUE(live.concerns().empty());
  for (uint64_t chunk = 0; chunk < chunks; ++chunk) {
    const int value = co_await read_value(live, chunk * 16);
    EXPECT_EQ(value, chunk + 1 < chunks ? 7 : 0);
  }
}

TEST_F(ThinCopy, ARotationWaitsForRoomAndSaysSo) {
  uint64_t chunks = 0;
  const auto stop_full = [&](env::Env& env, LiveStack& live) {
    return rotate_until_full(env, live, chunks);
  };
  use(fmt::format("encrypt({}, key=a.key)", pool("d")), stop_full);
  const auto go_on = [&](env::Env& env, LiveStack& live) {
    return go_on_with_room(env, live, chunks);
  };
  use(fmt::format("encrypt({}, key=b.key, old_key=a.key)", pool("d")), go_on);
}

task::Task<void> wait_refused(env::Env& env, LiveStack& live) {
  co_await wait_until(env, live, "0", "window_refused", 1);
  CO_ASSERT_TRUE(!live.concerns().empty());
  EXPECT_EQ(live.concerns()[0].health, Health::kFailing);
}

task::Task<void> fill_and_rotate(env::Env& env, LiveStack& live) {
  for (uint64_t block = 0; block < live.geometry().blocks; ++block) {
    co_await write_value(live, block, static_cast<uint8_t>(block % 250 + 1));
  }
  LiveStack::Told told = co_await live.tell("snapshot", {"take"});
  EXPECT_TRUE(told);
  told = co_await live.tell("encrypt", {"rotate", "b.key"});
  EXPECT_TRUE(told);
  co_await wait_refused(env, live);
}

// Below a version every window needs a new place: the drive below is full in the middle of one.
TEST_F(ThinCopy, ARotationThatStoppedInAWindowOpensAgainAndGoesOn) {
  const std::string below = "snapshot(file:d,size=4M, chunk=16K, reserve=20)";
  use(fmt::format("encrypt({}, key=a.key)", below), fill_and_rotate);
  use(fmt::format("encrypt({}, key=b.key, old_key=a.key)", below), wait_refused);
  use(fmt::format("encrypt({}, key=b.key, old_key=a.key)", below),
      [](env::Env& env, LiveStack& live) -> task::Task<void> {
        const LiveStack::Told told = co_await live.tell("snapshot", {"remove", "1"});
        EXPECT_TRUE(told);
        co_await wait_until(env, live, "0", "rotating", 0);
        for (uint64_t block = 0; block < live.geometry().blocks; ++block) {
          const int value = co_await read_value(live, block);
          EXPECT_EQ(value, static_cast<int>(block % 250 + 1));
        }
      });
}

}  // namespace
}  // namespace cairn::drive
