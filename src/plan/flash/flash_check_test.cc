// SPDX-License-Identifier: Apache-2.0
#include "plan/flash/flash_check.h"

#include <gtest/gtest.h>

#include <fstream>

#include "plan/common/latency_summary.h"
#include "plan/common/trace_file.h"
#include "plan/flash/flash_profile.h"
#include "plan/flash/mqsim_config.h"

namespace cairn::plan {
namespace {

constexpr double kExact = 1e-9;

// Every number within its tolerance, and within `error` if that is less.
void expect_all_within(const std::string& file, double error = 1) {
  FlashCheckOptions options;
  options.reference_folder = CAIRN_REFERENCE_FOLDER;
  const auto found = check_flash_file(options.reference_folder + "/" + file, options);
  ASSERT_TRUE(found) << found.error().text;
  EXPECT_FALSE(found->empty());
  for (const Comparison& c : *found) {
    EXPECT_TRUE(c.ok() && c.error <= error)
        << c.case_name << " " << c.measure << ": " << c.ours << " against " << c.reference;
  }
}

TEST(FlashCheck, MicroCasesAreExactToTheNanosecond) { expect_all_within("d_micro_golden.json"); }

TEST(FlashCheck, EachRequestOfATraceIsExact) {
  expect_all_within("e_per_request_tableI_dram800x4_T100us_S4096_mix.csv");
}

TEST(FlashCheck, MeansAndTailsOfATraceAreTheReferences) {
  expect_all_within("a_tableI_dram800_first_1000.csv");
}

TEST(FlashCheck, ClosedLoopsAreTheReferences) { expect_all_within("b_closed_loop.csv", kExact); }

TEST(FlashCheck, CollectionIsTheReferences) { expect_all_within("c_gc_steady_state.csv", kExact); }

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
  ASSERT_FALSE(flash_profile_names().empty());
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

TEST(FlashProfile, WhatMakesNoDriveIsTold) {
  const std::pair<const char*, const char*> cases[] = {
      // Zero and too few of something.
      {"channels = 0", "line 1, column 1: channels must be from 1 to 64, not 0"},
      {"planes_per_die = 0", "line 1, column 1: planes_per_die must be from 1 to 8, not 0"},
      {"blocks_per_plane = 3", "blocks_per_plane must be from 16"},
      {"cache_bytes = \"1 KiB\"", "cache_bytes must hold at least one page"},
      {"page_bytes = \"700 B\"", "page_bytes must be a multiple of 512"},
      // Capacity below what the drive needs for itself, also when the other key did it.
      {"blocks_per_plane = 64\nover_provisioning = 0.05",
       "line 2, column 1: over_provisioning leaves 3.2 spare blocks per plane"},
      {"\nblocks_per_plane = 64",
       "line 2, column 1: with this blocks_per_plane over_provisioning leaves"},
      {"over_provisioning = 0.99", "over_provisioning must be from 0 to below 0.95"},
      // Units.
      {"page_bytes = 4096", "line 1, column 14: page_bytes needs a unit"},
      {"page = \"16\"", "line 1, column 8: page has no unit"},
      {"erase = \"fast\"", "erase is a number of at least 0 with a unit"},
      {"erase = \"-5 ms\"", "erase is a number of at least 0 with a unit"},
      {"read = [\"5 us\", 6]", "read needs a unit"},
      {"read = []", "read lists one to four times"},
      // Types.
      {"channels = \"8\"", "channels is a whole number"},
      {"channels = 2.5", "channels is a whole number"},
      {"channels = [1]", "channels is a whole number"},
      {"copyback = 1", "line 1, column 12: copyback is true or false"},
      {"cache_protected = \"no\"", "cache_protected is true or false"},
      {"gc_policy = \"best\"", "gc_policy is one of"},
      {"spread = \"CCDP\"", "spread is \"dynamic\" or an order"},
      {"over_provisioning = nan", "over_provisioning is a number from 0 to 1"},
      {"[channels]\nx = 1", "channels is a whole number"},
      // Huge.
      {"channels = 99999999999", "channels is a whole number from 0 to 2147483647"},
      {"channels = 99999999999999999999999", "line 1"},
      {"erase = \"1e300 s\"", "erase is a number"},
      {"erase = \"1000 s\"", "erase_ns must be from 0 to 10 s"},
      {"page_bytes = \"1000000 GiB\"", "page_bytes is too large"},
      {"channels = 64\nchips_per_channel = 64\npages_per_block = 8192", "more than 2^32"},
      // Contradictions.
      {"dies_per_chip = 16\nplanes_per_die = 8", "dies_per_chip a chip can have at most 64"},
      {"compat = \"mqsim\"\ncopyback = true", "line 2, column 1: copyback must be false"},
      {"compat = \"mqsim\"\ncache_protected = false", "cache_protected must be true"},
      {"gc_threshold = 0.01\ngc_hard_threshold = 0.2",
       "line 2, column 1: gc_hard_threshold must be at most gc_threshold"},
      {"gc_threshold = 0.001", "line 1, column 1: with this gc_threshold gc_hard_threshold must"},
      {"channels = 1\nchannels = 2", "line 2"},
      // Names.
      {"chanels = 8", "there is no key 'chanels'"},
      {"= 3", "line 1"},
  };
  for (const auto& [profile, part] : cases) {
    const std::string problem = problem_of(profile);
    EXPECT_NE(problem.find(part), std::string::npos) << profile << "\ngives: " << problem;
    EXPECT_TRUE(problem.starts_with("line ")) << problem;
  }
}

TEST(FlashProfile, FileOfABadProfileIsNamed) {
  const std::string path = testing::TempDir() + "bad_profile.toml";
  std::ofstream(path) << "\n\ndies_per_chip = 0\n";
  const auto profile = load_flash_profile(path);
  ASSERT_FALSE(profile);
  EXPECT_NE(profile.error().text.find(path), std::string::npos) << profile.error().text;
  EXPECT_NE(profile.error().text.find("line 3, column 1: dies_per_chip"), std::string::npos);
}

TEST(MqsimConfig, CopybackIsKnownAndRefused) {
  EXPECT_TRUE(parameters_from_mqsim({{"Use_Copyback_for_GC", "false"}}));
  const auto refused = parameters_from_mqsim({{"Use_Copyback_for_GC", "true"}});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().text.find("Use_Copyback_for_GC can only be false"), std::string::npos);
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
}  // namespace cairn::plan
