// SPDX-License-Identifier: Apache-2.0
#include "service/integrity/encrypt.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "service/integrity/encrypt_format.h"
#include "testing/sim_test.h"
#include "testing/stack/files.h"
#include "testing/stack/stacks.h"

namespace cairn::drive {
namespace {

constexpr uint64_t kDataOffset = 128_KiB;

std::map<std::string, std::string> some_files() {
  return {{"a.key", testing_key(1)},
          {"b.key", testing_key(2)},
          {"short.key", "c2hvcnQ="},
          {"odd.key", "what?"}};
}

std::vector<std::byte> medium(sim::Cluster& cluster) {
  sim::Medium& disk = cluster.node("host").disk("d0");
  std::vector<std::byte> bytes(disk.size());
  disk.peek(0, bytes);
  return bytes;
}

TEST(Encrypt, ShowsTheMediumNoPlaintext) {
  sim::Cluster cluster;
  run_in_sim(cluster, [](env::Env& env) -> task::Task<void> {
    LeavesWithFiles leaves(some_files());
    auto drive = co_await must_open(env, "encrypt(file:d0,size=1M, key=a.key)", leaves);
    CO_ASSERT_TRUE(drive != nullptr);
    EXPECT_EQ(drive->geometry().bytes(), 1_MiB - kDataOffset);
    std::vector<std::byte> data(8 * 4096);
    for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>("plaintext"[i % 9]);
    const Result<void> written = co_await drive->write(Lba(3), data);
    EXPECT_TRUE(written);
    std::vector<std::byte> read(data.size());
    const Result<void> done = co_await drive->read(Lba(3), read);
    EXPECT_TRUE(done);
    EXPECT_EQ(read, data);
    co_await drive->close();
  });
  const std::vector<std::byte> bytes = medium(cluster);
  const Bytes word = as_bytes("plain");
  EXPECT_TRUE(std::ranges::search(bytes, word).empty());
  // Equal blocks are not equal there, and every byte value comes about as often as the others.
  const Bytes first = Bytes(bytes).subspan(kDataOffset + 3 * 4096UL, 4096);
  for (size_t i = 4; i < 11; ++i) {
    EXPECT_FALSE(std::ranges::equal(first, Bytes(bytes).subspan(kDataOffset + i * 4096, 4096)));
  }
  std::array<size_t, 256> counts{};
  for (const std::byte byte : Bytes(bytes).subspan(kDataOffset + 3 * 4096UL, 8 * 4096UL)) {
    ++counts[std::to_integer<size_t>(byte)];
  }
  EXPECT_GT(*std::ranges::min_element(counts), 64U);  // 128 expected, deviation 11
  EXPECT_LT(*std::ranges::max_element(counts), 192U);
}

SIM_TEST(Encrypt, BlocksNobodyWroteAreZeroes) {
  LeavesWithFiles leaves(some_files());
  auto drive = co_await must_open(env, "encrypt(mem:size=1M, key=a.key)", leaves);
  CO_ASSERT_TRUE(drive != nullptr);
  const std::vector<std::byte> ones = blocks_of(1, 3);
  const Result<void> written = co_await drive->write(Lba(0), ones);
  const Result<void> discarded = co_await drive->discard(Lba(1), 1);
  EXPECT_TRUE(written && discarded);
  std::vector<std::byte> read(4 * 4096);
  const Result<void> done = co_await drive->read(Lba(0), read);
  EXPECT_TRUE(done);
  for (const auto& [block, value] : {std::pair(0, 1), {1, 0}, {2, 1}, {3, 0}}) {
    EXPECT_EQ(read[static_cast<size_t>(block) * 4096 + 77], std::byte(value)) << block;
  }
  co_await drive->close();
}

TEST(Encrypt, SaysWhatIsWrongWithKeysAndWritesNothing) {
  sim::Cluster cluster;
  run_in_sim(cluster, [](env::Env& env) -> task::Task<void> {
    LeavesWithFiles leaves(some_files());
    auto drive = co_await must_open(env, "encrypt(file:d0,size=1M, key=a.key)", leaves);
    CO_ASSERT_TRUE(drive != nullptr);
    co_await drive->close();
  });
  const std::vector<std::byte> before = medium(cluster);
  run_in_sim(cluster, [](env::Env& env) -> task::Task<void> {
    const std::pair<const char*, const char*> cases[] = {
        {"encrypt(file:d0, key=b.key)", "the key is wrong"},
        {"encrypt(file:d0, key=short.key)", "64 bytes in base64"},
        {"encrypt(file:d0, key=odd.key)", "64 bytes in base64"},
        {"encrypt(file:d0, key=none)", "give it key=FILE"},
        {"encrypt(file:d0, key=c.key)", "there is no file 'c.key'"},
        {"encrypt(file:d0, key=a.key, old_key=c.key)", "there is no file 'c.key'"},
        {"encrypt(file:d0)", "for example encrypt(file:d0, key=drive.key)"},
        {"encrypt(slice(file:d0, length=512K), key=a.key)", "smaller than it was"},
        {"encrypt(mem:size=128K, key=a.key)", "too small"},
    };
    for (const auto& [stack, message] : cases) {
      LeavesWithFiles leaves(some_files());
      const std::string why = co_await why_not(env, stack, leaves);
      EXPECT_NE(why.find(message), std::string::npos) << stack << ": " << why;
    }
  });
  EXPECT_EQ(medium(cluster), before);
}

TEST(Encrypt, RefusesLabelsThatMakeNoSense) {
  Label label{.id = {1, 2}, .generation = 1, .blocks = 256, .block_size = 4096, .body = {}};
  EncryptState good{.data_offset = 32, .data_blocks = 224};
  const auto is_read = [&](const EncryptState& state) {
    label.body = encode_encrypt_body(state);
    return decode_encrypt_body(label).has_value();
  };
  EXPECT_TRUE(is_read(good));
  for (const auto& break_it :
       {+[](EncryptState& s) { s.data_offset = 31; }, +[](EncryptState& s) { s.data_blocks = 225; },
        +[](EncryptState& s) { s.rotated = 225; }, +[](EncryptState& s) { s.has_journal = true; },
        +[](EncryptState& s) {
          s.is_rotating = s.has_journal = true;
          s.rotated = 224;
        }}) {
    EncryptState bad = good;
    break_it(bad);
    EXPECT_FALSE(is_read(bad));
  }
  label.body.clear();
  EXPECT_FALSE(decode_encrypt_body(label));
}

task::Task<void> rotate_and_check(env::Env& env, std::vector<std::byte>& data) {
  LeavesWithFiles leaves(some_files());
  auto drive = co_await must_open(env, "encrypt(file:d0,size=1M, key=a.key)", leaves);
  CO_ASSERT_TRUE(drive != nullptr);
  const Result<void> written = co_await drive->write(Lba(10), data);
  EXPECT_TRUE(written);
  const auto no_file = co_await drive->tell({"rotate", "c.key"});
  EXPECT_EQ(no_file.error(), "there is no file 'c.key'");
  const auto no_key = co_await drive->tell({"rotate", "odd.key"});
  EXPECT_NE(no_key.error().find("holds no key"), std::string::npos);
  const auto same = co_await drive->tell({"rotate", "a.key"});
  EXPECT_NE(same.error().find("in use"), std::string::npos);
  const auto unknown = co_await drive->tell({"dance"});
  EXPECT_NE(unknown.error().find("rotate FILE"), std::string::npos);
  const auto told = co_await drive->tell({"rotate", "b.key"});
  EXPECT_TRUE(told) << told.error();
  EXPECT_EQ(fact(*drive, "rotating"), 1U);
  const auto again = co_await drive->tell({"rotate", "b.key"});
  EXPECT_NE(again.error().find("under way"), std::string::npos);
  std::vector<std::byte> read(data.size());
  while (fact(*drive, "rotating") == 1) {
    const Result<void> done = co_await drive->read(Lba(10), read);
    EXPECT_TRUE(done);
    EXPECT_EQ(read, data);
  }
  const Result<void> done = co_await drive->read(Lba(10), read);
  EXPECT_TRUE(done);
  EXPECT_EQ(read, data);
  EXPECT_EQ(fact(*drive, "blocks_rotated"), drive->geometry().blocks);
  co_await drive->close();
}

task::Task<void> read_with_the_new_key(env::Env& env, const std::vector<std::byte>& data) {
  LeavesWithFiles leaves(some_files());
  const std::string why = co_await why_not(env, "encrypt(file:d0, key=a.key)", leaves);
  EXPECT_NE(why.find("the key is wrong"), std::string::npos) << why;
  leaves.close();
  auto drive = co_await must_open(env, "encrypt(file:d0, key=b.key)", leaves);
  CO_ASSERT_TRUE(drive != nullptr);
  std::vector<std::byte> read(data.size());
  const Result<void> done = co_await drive->read(Lba(10), read);
  EXPECT_TRUE(done);
  EXPECT_EQ(read, data);
  const Result<void> unwritten = co_await drive->read(Lba(200), MutableBytes(read).first(4096));
  EXPECT_TRUE(unwritten);
  EXPECT_EQ(read[5], std::byte{0});
  co_await drive->close();
}

TEST(Encrypt, RotatesToANewKeyWhileInUse) {
  sim::Cluster cluster;
  std::vector<std::byte> data = blocks_of(7, 100);
  run_in_sim(cluster, [&data](env::Env& env) { return rotate_and_check(env, data); });
  run_in_sim(cluster, [&](env::Env& env) { return read_with_the_new_key(env, data); });
}

TEST(Encrypt, NeedsBothKeysUntilARotationIsDone) {
  sim::Cluster cluster;
  run_in_sim(cluster, [](env::Env& env) -> task::Task<void> {
    LeavesWithFiles leaves(some_files());
    // So slow that it is still at it when it is closed.
    auto drive = co_await must_open(env, "encrypt(file:d0,size=1M, key=a.key, rate=1)", leaves);
    CO_ASSERT_TRUE(drive != nullptr);
    co_await write_value(*drive, 100, 1);
    const auto told = co_await drive->tell({"rotate", "b.key"});
    EXPECT_TRUE(told);
    co_await drive->close();
  });
  const std::vector<std::byte> before = medium(cluster);
  run_in_sim(cluster, [](env::Env& env) -> task::Task<void> {
    const std::pair<const char*, const char*> cases[] = {
        {"encrypt(file:d0, key=a.key)", "key=NEW and this one as old_key=OLD"},
        {"encrypt(file:d0, key=b.key)", "give it that as old_key=OLD"},
        {"encrypt(file:d0, key=b.key, old_key=b.key)", "the old key is wrong"},
    };
    for (const auto& [stack, message] : cases) {
      LeavesWithFiles leaves(some_files());
      const std::string why = co_await why_not(env, stack, leaves);
      EXPECT_NE(why.find(message), std::string::npos) << stack << ": " << why;
    }
  });
  EXPECT_EQ(medium(cluster), before);
  run_in_sim(cluster, [](env::Env& env) -> task::Task<void> {
    LeavesWithFiles leaves(some_files());
    const std::string why =
        co_await why_not(env, "encrypt(file:d0, key=b.key, old_key=a.key)", leaves);
    EXPECT_EQ(why, "");
  });
}

}  // namespace
}  // namespace cairn::drive
