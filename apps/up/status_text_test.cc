// SPDX-License-Identifier: Apache-2.0
#include "apps/up/status_text.h"

#include <gtest/gtest.h>

namespace cairn::apps {
namespace {

using server::Json;

TEST(StatusText, SaysAgesInTwoUnits) {
  EXPECT_EQ(age_text(0), "0 s");
  EXPECT_EQ(age_text(59), "59 s");
  EXPECT_EQ(age_text(60), "1 min");
  EXPECT_EQ(age_text(200), "3 min 20 s");
  EXPECT_EQ(age_text(7500), "2 h 5 min");
  EXPECT_EQ(age_text(90000), "1 d 1 h");
}

TEST(StatusText, SaysOfEachReasonSinceWhenHowFarAndWhatToRun) {
  const Json status = {{"health", "degraded"},
                       {"reasons",
                        {{{"health", "degraded"},
                          {"kind", "drive"},
                          {"subject", "d2"},
                          {"what", "it is lost: 8 extents \x1b[31m"},
                          {"since_s", 64U},
                          {"percent", 20U},
                          {"left_s", 16U},
                          {"action", "cairn pool list"}}}},
                       {"at", {{"nbd", {"127.0.0.1:10809"}}}},
                       {"drives", Json::array()},
                       {"volumes", Json::array()}};
  const std::string text = up_status_text(status);
  EXPECT_TRUE(
      text.starts_with("degraded\n"
                       "  degraded: drive d2: it is lost: 8 extents \\x1b[31m\n"
                       "    for 1 min 4 s, 20% done, 16 s left\n"
                       "    cairn pool list\n"
                       "\nDRIVE"))
      << text;
  EXPECT_NE(text.find("NBD   127.0.0.1:10809\n"), std::string::npos) << text;
  EXPECT_EQ(up_reason_text(status["reasons"][0]),
            "degraded: drive d2: it is lost: 8 extents \\x1b[31m (for 1 min 4 s, 20% done, 16 s "
            "left)");
}

TEST(StatusText, IsOneWordFirst) {
  const std::string text = up_status_text({{"health", "ok"}, {"reasons", Json::array()}});
  EXPECT_TRUE(text.starts_with("ok\n\nDRIVE")) << text;
}

}  // namespace
}  // namespace cairn::apps
