// SPDX-License-Identifier: Apache-2.0
#include "base/metrics_text.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>

namespace cairn {
namespace {

using Type = MetricsText::Type;

TEST(MetricsText, WritesFamiliesAndSamples) {
  MetricsText text;
  text.family(Type::kCounter, "cairn_reads_total", "Reads that were served.");
  text.sample({{"nqn", "a"}, {"nsid", "1"}}, 7);
  text.sample({{"nqn", "b"}, {"nsid", "1"}}, UINT64_MAX);
  text.family(Type::kGauge, "cairn_connections", "Those that are open.");
  text.sample({}, 0);
  EXPECT_EQ(text.text(),
            "# HELP cairn_reads_total Reads that were served.\n"
            "# TYPE cairn_reads_total counter\n"
            "cairn_reads_total{nqn=\"a\",nsid=\"1\"} 7\n"
            "cairn_reads_total{nqn=\"b\",nsid=\"1\"} 18446744073709551615\n"
            "# HELP cairn_connections Those that are open.\n"
            "# TYPE cairn_connections gauge\n"
            "cairn_connections 0\n");
}

TEST(MetricsText, SumsTheBucketsOfAHistogramUp) {
  MetricsText text;
  text.family(Type::kHistogram, "cairn_size", "Sizes.");
  constexpr std::array<uint64_t, 2> kBounds = {1, 2};
  constexpr std::array<uint64_t, 3> kCounts = {5, 0, 3};
  text.histogram({{"side", "host"}}, kBounds, kCounts, 100);
  EXPECT_EQ(text.text(),
            "# HELP cairn_size Sizes.\n"
            "# TYPE cairn_size histogram\n"
            "cairn_size_bucket{side=\"host\",le=\"1\"} 5\n"
            "cairn_size_bucket{side=\"host\",le=\"2\"} 5\n"
            "cairn_size_bucket{side=\"host\",le=\"+Inf\"} 8\n"
            "cairn_size_sum{side=\"host\"} 100\n"
            "cairn_size_count{side=\"host\"} 8\n");
}

TEST(MetricsText, NoLabelCanBreakOut) {
  MetricsText text;
  text.family(Type::kGauge, "cairn_x", "Two\nlines and a \\.");
  text.sample({{"nqn", "a\"} 1\nb\\"}}, 1);
  EXPECT_EQ(text.text(),
            "# HELP cairn_x Two\\nlines and a \\\\.\n"
            "# TYPE cairn_x gauge\n"
            "cairn_x{nqn=\"a\\\"} 1\\nb\\\\\"} 1\n");
}

TEST(MetricsTextDeathTest, NamesFollowTheConventions) {
  MetricsText text;
  EXPECT_DEATH(text.family(Type::kCounter, "cairn_reads", ""), "counters");
  EXPECT_DEATH(text.family(Type::kGauge, "cairn_reads_total", ""), "counters");
  EXPECT_DEATH(text.family(Type::kGauge, "cairn reads", ""), "is_sound_name");
  text.family(Type::kGauge, "cairn_x", "");
  EXPECT_DEATH(text.family(Type::kGauge, "cairn_x", ""), "names_");
}

}  // namespace
}  // namespace cairn
