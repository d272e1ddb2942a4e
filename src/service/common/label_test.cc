// SPDX-License-Identifier: Apache-2.0
#include "service/common/label.h"

#include <gtest/gtest.h>

#include "testing/sim_test.h"
#include "testing/stack/stacks.h"

namespace cairn::drive {
namespace {

constexpr LabelKind kKind{.service = "thing", .version = 3};

Label some_label() {
  return {.id = {7, 8},
          .generation = 5,
          .blocks = 100,
          .block_size = 512,
          .body = std::vector<std::byte>(kLabelBodyMax, std::byte{9})};
}

std::vector<std::byte> encoded(const LabelKind& kind) {
  std::vector<std::byte> block(512);
  encode_label(kind, some_label(), block);
  return block;
}

Errc refusal(Bytes block) {
  const Result<Label> label = decode_label(kKind, block);
  return label ? Errc{} : label.error().code();
}

std::string why(const Result<void>& done) { return done ? "" : std::string(done.error().text()); }

TEST(Label, ComesBackAsItWas) {
  const Result<Label> label = decode_label(kKind, encoded(kKind));
  ASSERT_TRUE(label) << label.error().text();
  EXPECT_EQ(label->id, some_label().id);
  EXPECT_EQ(label->generation, 5u);
  EXPECT_EQ(label->blocks, 100u);
  EXPECT_EQ(label->body, some_label().body);
}

TEST(Label, IsRefusedByOthers) {
  EXPECT_EQ(refusal(encoded({.service = "thing", .version = 4})), Errc::kUnsupported);
  EXPECT_EQ(refusal(encoded({.service = "things", .version = 3})), Errc::kInvalid);
  EXPECT_EQ(refusal(encoded({.service = "thin", .version = 3})), Errc::kInvalid);
  EXPECT_EQ(refusal(std::vector<std::byte>(512)), Errc::kNotFound);
  EXPECT_EQ(refusal(std::vector<std::byte>(512, std::byte{1})), Errc::kInvalid);
}

TEST(Label, ShowsEveryDamagedByte) {
  const std::vector<std::byte> whole = encoded(kKind);
  for (size_t i = 0; i < whole.size(); ++i) {
    std::vector<std::byte> damaged = whole;
    damaged[i] ^= std::byte{0x20};
    EXPECT_NE(refusal(damaged), Errc{}) << "byte " << i;
  }
}

SIM_TEST(Label, OfABlankDriveIsNone) {
  SourceLeaves leaves;
  const std::unique_ptr<Drive> drive = co_await must_open(env, "mem:size=1M", leaves);
  const auto label = co_await read_label(env, *drive, kKind);
  CO_ASSERT_TRUE(label.has_value());
  EXPECT_FALSE(label->has_value());
  co_await drive->close();
}

SIM_TEST(Label, NewestCountsAndATornOneDoesNot) {
  SourceLeaves leaves;
  const std::unique_ptr<Drive> drive = co_await must_open(env, "mem:size=1M", leaves);
  Label label = new_label(env, *drive);
  for (uint8_t body = 1; body <= 4; ++body) {
    label.body.assign(10, std::byte{body});
    EXPECT_TRUE((co_await write_label(env, *drive, kKind, label)).has_value());
    const auto read = co_await read_label(env, *drive, kKind);
    CO_ASSERT_TRUE(read.has_value() && read->has_value());
    EXPECT_EQ((*read)->body, label.body);
    EXPECT_EQ((*read)->generation, body);
  }
  // Generation 4 is in block 0: with it torn, generation 3 counts.
  std::vector<std::byte> block(4096);
  EXPECT_TRUE((co_await drive->read(Lba(0), block)).has_value());
  block[300] ^= std::byte{1};
  EXPECT_TRUE((co_await drive->write(Lba(0), block)).has_value());
  const auto read = co_await read_label(env, *drive, kKind);
  CO_ASSERT_TRUE(read.has_value() && read->has_value());
  EXPECT_EQ((*read)->generation, 3u);
  // With both torn it is damaged, not blank.
  EXPECT_TRUE((co_await drive->write(Lba(1), block)).has_value());
  const auto neither = co_await read_label(env, *drive, kKind);
  CO_ASSERT_TRUE(!neither.has_value());
  EXPECT_EQ(neither.error().code(), Errc::kCorrupt);
  co_await drive->close();
}

SIM_TEST(Label, IsOfTheLastWhoClaimedIt) {
  SourceLeaves leaves;
  const std::unique_ptr<Drive> drive = co_await must_open(env, "mem:size=1M", leaves);
  // As it was before there were writers.
  Label first = new_label(env, *drive);
  first.body.assign(10, std::byte{1});
  EXPECT_TRUE((co_await put_label(env, *drive, kKind, first)).has_value());
  Label second = first;
  Label third = first;

  EXPECT_TRUE((co_await claim_label(env, *drive, kKind, first)).has_value());
  EXPECT_TRUE((co_await write_label(env, *drive, kKind, first)).has_value());
  EXPECT_TRUE((co_await has_writer(env, *drive, first)).value_or(false));
  // One that was read before is not claimed any more.
  EXPECT_EQ(why(co_await claim_label(env, *drive, kKind, second)), changed_meanwhile().text());
  EXPECT_TRUE((co_await has_writer(env, *drive, first)).value_or(false));

  third = first;
  EXPECT_TRUE((co_await claim_label(env, *drive, kKind, third)).has_value());
  EXPECT_EQ(why(co_await write_label(env, *drive, kKind, first)), taken_over().text());
  EXPECT_TRUE((co_await write_label(env, *drive, kKind, third)).has_value());
  co_await drive->close();
}

SIM_TEST(Label, OfALargerDriveIsRefused) {
  SourceLeaves leaves;
  const std::unique_ptr<Drive> drive = co_await must_open(env, "mem:size=1M", leaves);
  Label label = new_label(env, *drive);
  EXPECT_TRUE((co_await write_label(env, *drive, kKind, label)).has_value());
  EXPECT_TRUE((co_await drive->resize(100)).has_value());
  const auto read = co_await read_label(env, *drive, kKind);
  CO_ASSERT_TRUE(!read.has_value());
  EXPECT_EQ(read.error().code(), Errc::kInvalid);
  co_await drive->close();
}

}  // namespace
}  // namespace cairn::drive
