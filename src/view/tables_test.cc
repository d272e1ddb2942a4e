// SPDX-License-Identifier: Apache-2.0
#include "view/tables.h"

#include <gtest/gtest.h>

namespace cairn::view {
namespace {

View two_drives() {
  View view{.controller = 1, .boxes = {{.name = "b1", .ports = 1, .drives = {"d3", "d7"}}}};
  const auto add = [&](uint16_t index, int32_t busy, bool is_congested) {
    ComponentView drive{.id = {BoxId(0), Kind::kDrive, index}, .recency = 1};
    drive.drive = DriveView{.rate = 100'000'000, .busy = busy, .is_congested = is_congested};
    drive.traffic[1].now = {.bytes_per_s = 12'340'000, .ops_per_s = 300};
    view.components.push_back(drive);
  };
  add(0, 200, false);
  add(1, 990, true);
  const size_t bucket = rtt_bucket(1_ms);
  for (const char* volume : {"vol2", "vol1"}) {
    view.flows.push_back({.client = "c",
                          .volume = volume,
                          .drive = 1,
                          .reads = {.bytes_per_s = 5'000'000, .ops_per_s = 100},
                          .rtts = {{static_cast<uint8_t>(bucket), 20}}});
  }
  view.flows.back().writes.bytes_per_s = 1'000'000;
  return view;
}

TEST(ViewTables, TheBusiestDriveComesFirst) {
  const std::string text = drives_text(two_drives());
  EXPECT_LT(text.find("b1/d7"), text.find("b1/d3"));
  EXPECT_NE(text.find("99%"), std::string::npos);
  EXPECT_NE(text.find("12.3"), std::string::npos);
  EXPECT_NE(text.find("congested"), std::string::npos);
  EXPECT_EQ(drives_text(two_drives(), 1).find("b1/d3"), std::string::npos);
  EXPECT_NE(drives_text({}).find("nobody"), std::string::npos);
}

TEST(ViewTables, AVolumeIsTheSumOfItsFlows) {
  const std::vector<VolumeTraffic> all = volumes_of(two_drives());
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].volume, "vol1");
  EXPECT_EQ(all[0].write_bytes_per_s, 1'000'000U);
  EXPECT_EQ(all[1].write_bytes_per_s, 0U);
  EXPECT_EQ(all[0].median, rtt_of_bucket(rtt_bucket(1_ms)));
  const std::string text = volumes_text(two_drives());
  EXPECT_LT(text.find("vol1"), text.find("vol2"));
}

}  // namespace
}  // namespace cairn::view
