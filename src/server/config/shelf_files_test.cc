// SPDX-License-Identifier: Apache-2.0
#include "server/config/shelf_files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace cairn::server {
namespace {

namespace fs = std::filesystem;

class ShelfFiles : public testing::Test {
 protected:
  ShelfFiles() : folder_(fs::temp_directory_path() / ("shelf-" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
  }
  ~ShelfFiles() override { fs::remove_all(folder_); }
  std::string make(const std::string& name, const std::string& data) {
    const fs::path path = folder_ / name;
    std::ofstream(path) << data;
    if (data.empty()) fs::resize_file(path, 1 << 20);
    return path.string();
  }
  fs::path folder_;
};

constexpr const char* kBlank = "00000000-0000-4000-8000-000000000001";
constexpr const char* kNeeded = "00000000-0000-4000-8000-000000000002";
constexpr const char* kData = "00000000-0000-4000-8000-000000000003";

TEST_F(ShelfFiles, OnlyWhatNeverHeldAnythingIsSwept) {
  const std::string blank = make(kBlank, "");
  const std::string needed = make(kNeeded, "");
  const std::string data = make(kData, "somebody's");
  const std::string other = make("notes", "");
  const Attempt<std::vector<StrayFile>> left = sweep_shelf(folder_.string(), {kNeeded});
  ASSERT_TRUE(left) << left.error().text;
  ASSERT_EQ(left->size(), 1u);
  EXPECT_EQ(left->front().path, data);
  EXPECT_GE(left->front().bytes, 512u) << "what it takes is not to be given away";
  EXPECT_FALSE(fs::exists(blank));
  for (const std::string& each : {needed, data, other}) EXPECT_TRUE(fs::exists(each)) << each;
}

TEST_F(ShelfFiles, AFileIsRemovedOnceAndOneThatStaysIsNamed) {
  const std::string file = make(kData, "somebody's");
  EXPECT_TRUE(remove_shelf_file(file));
  EXPECT_FALSE(fs::exists(file));
  EXPECT_TRUE(remove_shelf_file(file)) << "it is gone, whoever removed it";
  fs::create_directories(folder_ / kNeeded / "full");
  const Attempt<void> stays = remove_shelf_file((folder_ / kNeeded).string());
  ASSERT_FALSE(stays);
  EXPECT_NE(stays.error().text.find(kNeeded), std::string::npos) << stays.error().text;
}

TEST_F(ShelfFiles, AFolderIsMadeAndOneThatCannotBeIsNamed) {
  EXPECT_TRUE(sweep_shelf((folder_ / "new").string(), {}));
  EXPECT_TRUE(fs::is_directory(folder_ / "new"));
  const std::string file = make("file", "x");
  const Attempt<std::vector<StrayFile>> refused = sweep_shelf(file + "/in", {});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().text.find("may write to"), std::string::npos) << refused.error().text;
}

}  // namespace
}  // namespace cairn::server
