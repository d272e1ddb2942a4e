// SPDX-License-Identifier: Apache-2.0
#include "world/posix/file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "base/medium_id.h"

namespace cairn::posix {
namespace {

using Kind = env::DiskOp::Kind;

class Files : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(::mkdtemp(folder_.data()), nullptr);
    path_ = folder_ + "/d";
  }
  void TearDown() override {
    ::unlink(path_.c_str());
    ::rmdir(folder_.c_str());
  }
  Result<DiskFile> open(uint64_t size) {
    return open_disk_file({.path = path_, .size = size, .create = true, .direct = false});
  }
  std::string folder_ = "/tmp/cairn-file-XXXXXX";
  std::string path_;
};

TEST_F(Files, ADeletedFileIsNotDurable) {
  const Result<DiskFile> file = open(8192);
  ASSERT_TRUE(file);
  EXPECT_TRUE(check_access(*file, {.kind = Kind::kFlush}));
  ::unlink(path_.c_str());
  EXPECT_EQ(check_access(*file, {.kind = Kind::kFlush}).error(), Errc::kIo);
  EXPECT_TRUE(check_access(*file, {.kind = Kind::kRead})) << "what is there can be saved";
}

TEST_F(Files, IsTheSameMediumUntilItIsMadeAnew) {
  const uint64_t first = open(8192)->medium_id;
  EXPECT_NE(first, 0u);
  EXPECT_EQ(open(0)->medium_id, first);
  EXPECT_FALSE(is_medium_of_name(first)) << "it is the same after another start of the machine";
  // The old one is there until the new one has its number, so that they cannot share it.
  ASSERT_EQ(::rename(path_.c_str(), (path_ + ".old").c_str()), 0);
  EXPECT_NE(open(8192)->medium_id, first);
  ::unlink((path_ + ".old").c_str());
}

TEST_F(Files, AnotherSizeThanAskedForIsRefused) {
  ASSERT_TRUE(open(8192));
  EXPECT_EQ(open(16384).error(), Errc::kInvalid);
  EXPECT_EQ(open(4096).error(), Errc::kInvalid);
  EXPECT_EQ(open(0)->size, 8192u);
}

TEST_F(Files, OneOpenerHasItAlone) {
  const Result<DiskFile> first = open(8192);
  ASSERT_TRUE(first);
  EXPECT_EQ(open(8192).error(), Errc::kExists);
}

}  // namespace
}  // namespace cairn::posix
