// SPDX-License-Identifier: Apache-2.0
#include "apps/sim/flash_check.h"

#include <gtest/gtest.h>

#include "apps/sim/flash_profile.h"
#include "apps/sim/latency_summary.h"
#include "apps/sim/trace_file.h"

namespace cairn::apps {
namespace {

void expect_all_within(const std::string& file) {
  FlashCheckOptions options;
  options.reference_folder = CAIRN_REFERENCE_FOLDER;
  const auto found = check_flash_file(options.reference_folder + "/" + file, options);
  ASSERT_TRUE(found) << found.error().text;
  EXPECT_FALSE(found->empty());
  for (const Comparison& c : *found) {
    EXPECT_TRUE(c.ok()) << c.case_name << " " << c.measure << ": " << c.ours << " against "
                        << c.reference;
  }
}

TEST(FlashCheck, MicroCasesAreExactToTheNanosecond) { expect_all_within("d_micro_golden.json"); }

TEST(FlashCheck, EachRequestOfATraceIsExact) {
  expect_all_within("e_per_request_tableI_dram800x4_T100us_S4096_mix.csv");
}

TEST(FlashCheck, MeansAndTailsOfATraceAreTheReferences) {
  expect_all_within("a_tableI_dram800_first_1000.csv");
}

TEST(FlashCheck, FileOfAnotherKindIsRefused) {
  const auto found =
      check_flash_file(CAIRN_REFERENCE_FOLDER "/README.md", {.reference_folder = "."});
  EXPECT_FALSE(found);
}

std::string problem_of(const std::string& profile) {
  const auto parsed = parse_flash_profile(profile);
  return parsed ? "" : parsed.error().text;
}

TEST(FlashProfile, EveryProfileOfOursIsADrive) {
  for (const std::string& name : flash_profile_names()) {
    const auto profile = load_flash_profile(name);
    EXPECT_TRUE(profile) << name << ": " << profile.error().text;
  }
}

TEST(FlashProfile, ProblemsNameLineAndKey) {
  EXPECT_EQ(problem_of("channels = 4\ndies_per_chip = 0\n"),
            "line 2, column 1: dies_per_chip must be from 1 to 16, not 0");
  EXPECT_NE(problem_of("\nchanels = 4\n").find("line 2, column 1: there is no key 'chanels'"),
            std::string::npos);
  EXPECT_NE(problem_of("erase = 5\n").find("line 1, column 9: erase needs a unit"),
            std::string::npos);
  EXPECT_NE(problem_of("erase = \"5 h\"\n").find("its unit must be one of"), std::string::npos);
  EXPECT_NE(problem_of("over_provisioning = 0.0001\n").find("over_provisioning leaves"),
            std::string::npos);
  EXPECT_NE(problem_of("read = [\n").find("line"), std::string::npos);
}

TEST(TraceFile, RequestsCoverTheSectorsOfTheirBytes) {
  const flash::TimedRequest timed =
      timed_request({.arrival = 7, .offset = 1000, .bytes = 100, .write = true}, 3);
  EXPECT_EQ(timed.arrival, 7);
  EXPECT_EQ(timed.request.op, flash::Op::kWrite);
  EXPECT_EQ(timed.request.lba, 1u);
  EXPECT_EQ(timed.request.sectors, 2u);
  EXPECT_EQ(timed.request.cookie, 3u);
}

TEST(TraceFile, TimesOfTheReferenceAreKept) {
  const auto requests = parse_mqsim_trace("100 0 8 16 1\n300 0 24 8 0\n");
  ASSERT_TRUE(requests);
  EXPECT_EQ((*requests)[1].arrival, 300);
}

TEST(TraceFile, AFileThatIsNotThereIsTold) {
  const auto file = TraceFile::open("/proc/no/trace", {});
  ASSERT_FALSE(file);
  EXPECT_NE(file.error().text.find("/proc/no/trace"), std::string::npos);
}

TEST(LatencyTally, FoldsIntoAHistogramWhenThereAreMany) {
  LatencyTally tally;
  for (size_t i = 0; i < LatencyTally::kExactMax; ++i) tally.add(static_cast<int64_t>(i));
  const double exact = tally.summary().p50;
  tally.add(0);
  EXPECT_NEAR(tally.summary().p50, exact, exact / 60);
  EXPECT_EQ(tally.summary().max, LatencyTally::kExactMax - 1.0);
}

}  // namespace
}  // namespace cairn::apps
