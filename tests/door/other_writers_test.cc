// SPDX-License-Identifier: Apache-2.0
// A drive that others write too, through another door: parts of a block that a client writes do not
// bring back what the block held before.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "door/door.h"
#include "task/when_all.h"

namespace cairn::door_tests {
namespace {

WORLD_TEST_SUITE(NbdOtherWriters);

constexpr uint32_t kBlock = 4096;

Task<void> write_block(drive::Drive& drive, uint8_t value) {
  const Content block(kBlock, std::byte{value});
  const Result<void> written = co_await drive.write(Lba(1), block);
  must(written);
}

// Of block 0 the end, of block 1 the first bytes; or the middle of block 1 alone.
Task<void> write_part(NbdClient& client, uint8_t value) {
  const uint64_t offset = value % 2 == 0 ? kBlock - 50 : kBlock + 10;
  const Content part(100, std::byte{value});
  const Result<Answer> done = co_await client.call({Command::kWrite, offset, 100, 0}, part);
  EXPECT_EQ(must(done).error, 0u);
}

// `is_known`: from the beginning, else the other door comes later.
Task<void> write_among_others(env::Env& env, Scene& scene, bool is_known) {
  Door door(env);
  const env::DiskOptions disk = scene.disk("nbd", 1 << 20);
  co_await door.add({.name = "disk", .description = "", .has_other_writers = is_known},
                    {.kind = drive::Spec::Kind::kFile,
                     .path = disk.path,
                     .size = 1 << 20,
                     .direct = disk.direct});
  co_await door.open(scene.any_port());
  NbdClient client(env);
  co_await sure(client.arrive(door.address, "disk", true));
  if (!is_known) {
    const Result<void> told = co_await door.server().expect_other_writers("disk");
    must(told);
    const Result<void> none = co_await door.server().expect_other_writers("other");
    EXPECT_EQ(none.error(), Errc::kNotFound);
  }
  std::unique_ptr<drive::Drive> drive = must(door.source(0).open(env));
  for (uint8_t round = 1; round < 100; ++round) {
    std::vector<Task<void>> both;
    both.push_back(write_part(client, round));
    both.push_back(write_block(*drive, round));
    co_await task::when_all(std::move(both));
    Content block(kBlock);
    const Result<void> read = co_await drive->read(Lba(1), block);
    must(read);
    const Content expected(kBlock, std::byte{round});
    EXPECT_TRUE(block == expected) << int{round};
  }
  Content first(kBlock);
  const Result<void> read = co_await drive->read(Lba(0), first);
  must(read);
  EXPECT_TRUE(
      std::all_of(first.begin(), first.end() - 50, [](std::byte b) { return b == std::byte{0}; }));
  EXPECT_TRUE(
      std::all_of(first.end() - 50, first.end(), [](std::byte b) { return b == std::byte{98}; }));
  client.hang_up();
  co_await drive->close();
  co_await door.close();
}

WORLD_TEST(NbdOtherWriters, APartOfABlockBringsNothingBack) {
  co_await write_among_others(env, scene, true);
}

WORLD_TEST(NbdOtherWriters, TheOtherDoorMayComeLater) {
  co_await write_among_others(env, scene, false);
}

}  // namespace
}  // namespace cairn::door_tests
