// SPDX-License-Identifier: Apache-2.0
#include "volume/mega_vol.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "drive/blank.h"
#include "testing/stack/stacks.h"
#include "volume/medium_testing.h"
#include "volume/mega_vol_format.h"

namespace cairn::volume {
namespace {

using drive::run_in_sim;
using task::Task;

constexpr MegaVolPool kPool = {.uuid = {1, 2, 3}, .extent_bytes = kExtentBytesMin};

class MegaVolTest : public testing::Test {
 protected:
  MegaVolTest() : medium_(1_MiB, 7) {}
  // What making a member, or asking for it, says.
  Result<void> make(bool may_format = false) {
    Result<void> said;
    run_in_sim(cluster_, [&](env::Env& env) { return make(env, may_format, said); });
    return said;
  }
  Result<void> check(MegaVolPool pool = kPool) {
    Result<void> said;
    run_in_sim(cluster_, [&](env::Env& env) { return check(env, pool, said); });
    return said;
  }
  Task<void> make(env::Env& env, bool may_format, Result<void>& said) {
    medium_.add_host("arbiter");
    TestDrive drive(env, medium_, "arbiter");
    said = co_await make_mega_vol(env, drive, kPool, info_, may_format);
    co_await drive.close();
  }
  Task<void> check(env::Env& env, MegaVolPool pool, Result<void>& said) {
    medium_.add_host("client");
    TestDrive drive(env, medium_, "client");
    said = co_await check_mega_vol(env, drive, pool, info_);
    co_await drive.close();
  }
  Task<void> forget(env::Env& env) {
    medium_.add_host("arbiter");
    TestDrive drive(env, medium_, "arbiter");
    const Result<void> done = co_await forget_mega_vol(env, drive);
    EXPECT_TRUE(done);
    co_await drive.close();
  }
  void scribble(uint64_t block) {
    const std::vector<std::byte> data(TestMedium::kBlock, std::byte{0x5a});
    medium_.write(block, data);
  }

  sim::Cluster cluster_;
  TestMedium medium_;
  MegaVolInfo info_ = {.id = MegaVolId(5)};
};

TEST_F(MegaVolTest, ABlankDriveBecomesAMemberAndIsKnownAgain) {
  ASSERT_TRUE(make());
  EXPECT_EQ(info_.extents, 1_MiB / kExtentBytesMin);
  EXPECT_NE(info_.uuid, Uuid{});
  EXPECT_TRUE(check());
  medium_.lose_power();
  EXPECT_TRUE(check()) << "the label is durable";
}

TEST_F(MegaVolTest, ADriveWithDataIsTakenOnlyWhenToldSoAndThenCleared) {
  scribble(100);
  const Result<void> refused = make();
  ASSERT_FALSE(refused);
  EXPECT_TRUE(drive::is_not_blank(refused.error()));
  EXPECT_FALSE(medium_.is_zero(100));
  ASSERT_TRUE(make(true));
  EXPECT_TRUE(medium_.is_zero(100));
  EXPECT_TRUE(check());
}

TEST_F(MegaVolTest, AMemberIsNotTakenASecondTime) {
  ASSERT_TRUE(make());
  EXPECT_EQ(make(true).error().code(), Errc::kExists);
}

TEST_F(MegaVolTest, AnEmptiedDriveAndThoseOfOthersAreRefused) {
  ASSERT_TRUE(make());
  const MegaVolInfo mine = info_;
  EXPECT_EQ(check({.uuid = {9}, .extent_bytes = kExtentBytesMin}).error().code(), Errc::kMismatch);
  info_.uuid[0] ^= 1;
  EXPECT_EQ(check().error().code(), Errc::kMismatch) << "another drive";
  info_ = mine;
  info_.id = MegaVolId(6);
  EXPECT_EQ(check().error().code(), Errc::kMismatch) << "another number";
  info_ = mine;
  medium_.empty();
  const Result<void> emptied = check();
  EXPECT_EQ(emptied.error().code(), Errc::kNotFound);
  EXPECT_TRUE(is_other_drive(emptied.error()));
}

TEST_F(MegaVolTest, ADriveThatBecameSmallerIsRefused) {
  ASSERT_TRUE(make());
  TestMedium smaller(1_MiB - kExtentBytesMin, 7);
  std::vector<std::byte> block(TestMedium::kBlock);
  for (uint64_t at = 0; at < smaller.blocks(); ++at) {
    medium_.read(at, block);
    smaller.write(at, block);
  }
  medium_ = std::move(smaller);
  const Result<void> shrunk = check();
  ASSERT_FALSE(shrunk);
  EXPECT_EQ(shrunk.error().code(), Errc::kMismatch);
  EXPECT_TRUE(is_other_drive(shrunk.error()));
}

TEST_F(MegaVolTest, AForgottenMemberCanBeAddedAgain) {
  ASSERT_TRUE(make());
  run_in_sim(cluster_, [&](env::Env& env) { return forget(env); });
  EXPECT_EQ(check().error().code(), Errc::kNotFound);
  EXPECT_TRUE(make());
}

TEST_F(MegaVolTest, ADriveTooSmallForAnExtentIsRefused) {
  medium_ = TestMedium(kExtentBytesMin, 1);
  EXPECT_EQ(make().error().code(), Errc::kNoSpace);
}

TEST(MegaVolFormat, ALabelIsReadAsItWasWrittenAndNonsenseIsRefused) {
  const MegaVolLabel label = {
      .pool = {1, 2, 3, 4}, .extent_bytes = kExtentBytes, .extents = 77, .id = MegaVolId(9)};
  std::vector<std::byte> body = encode_mega_vol(label);
  EXPECT_EQ(*decode_mega_vol(body), label);
  EXPECT_EQ(load<uint32_t>(Bytes(body).subspan(24)), 77U);
  body[30] = std::byte{1};
  EXPECT_EQ(decode_mega_vol(body).error().code(), Errc::kCorrupt);
  body = encode_mega_vol(label);
  store(MutableBytes(body).subspan(16), uint64_t{12345});
  EXPECT_EQ(decode_mega_vol(body).error().code(), Errc::kCorrupt);
  body.pop_back();
  EXPECT_EQ(decode_mega_vol(body).error().code(), Errc::kCorrupt);
}

TEST(Names, AreShortAndOfPlainLetters) {
  for (const char* good : {"a", "vol0", "0", "a.b-c_D"}) EXPECT_TRUE(check_name(good)) << good;
  for (const char* bad : {"", "-a", ".a", "_a", "a b", "a/b", "\xc3\xa4"}) {
    EXPECT_EQ(check_name(bad).error().code(), Errc::kInvalid) << bad;
  }
  EXPECT_TRUE(check_name(std::string(64, 'a')));
  EXPECT_FALSE(check_name(std::string(65, 'a')));
}

}  // namespace
}  // namespace cairn::volume
