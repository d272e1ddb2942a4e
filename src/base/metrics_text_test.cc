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

TEST(MetricsText, HasTimesInSeconds) {
  MetricsText text;
  text.family(Type::kGauge, "cairn_left_seconds", "Left.");
  text.seconds({}, 1'500_ms);
  text.seconds({{"of", "b"}}, Duration{1});
  text.seconds({{"of", "c"}}, 70_s);
  text.family(Type::kGauge, "cairn_done_ratio", "Done.");
  text.ratio({}, 1, 4);
  text.ratio({{"of", "nothing"}}, 0, 0);
  EXPECT_EQ(text.text(),
            "# HELP cairn_left_seconds Left.\n"
            "# TYPE cairn_left_seconds gauge\n"
            "cairn_left_seconds 1.5\n"
            "cairn_left_seconds{of=\"b\"} 0.000000001\n"
            "cairn_left_seconds{of=\"c\"} 70\n"
            "# HELP cairn_done_ratio Done.\n"
            "# TYPE cairn_done_ratio gauge\n"
            "cairn_done_ratio 0.25\n"
            "cairn_done_ratio{of=\"nothing\"} 1\n");
}

TEST(MetricsText, PutsATimeIntoTheFirstBucketThatHoldsIt) {
  LatencyBuckets latency;
  for (const Duration took : {0_us, 50_us, Duration{50'001}, 5_s, 6_s}) latency.record(took);
  EXPECT_EQ(latency.counts.front(), 2U);
  EXPECT_EQ(latency.counts[1], 1U);
  EXPECT_EQ(latency.counts.back(), 1U);
  MetricsText text;
  text.family(Type::kHistogram, "cairn_took_seconds", "Took.");
  text.histogram({{"of", "a"}}, latency);
  for (const char* line : {"cairn_took_seconds_bucket{of=\"a\",le=\"0.00005\"} 2\n",
                           "cairn_took_seconds_bucket{of=\"a\",le=\"0.0001\"} 3\n",
                           "cairn_took_seconds_bucket{of=\"a\",le=\"5\"} 4\n",
                           "cairn_took_seconds_bucket{of=\"a\",le=\"+Inf\"} 5\n",
                           "cairn_took_seconds_sum{of=\"a\"} 11.000100001\n",
                           "cairn_took_seconds_count{of=\"a\"} 5\n"}) {
    EXPECT_NE(text.text().find(line), std::string::npos) << line << text.text();
  }
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
