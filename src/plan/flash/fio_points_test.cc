// SPDX-License-Identifier: Apache-2.0
#include "plan/flash/fio_points.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace cairn::plan {
namespace {

using nlohmann::json;

json side(double iops, double mean_ns) {
  return {{"iops", iops},
          {"clat_ns", {{"mean", mean_ns}, {"percentile", {{"99.000000", 2 * mean_ns}}}}}};
}

// A job as fio writes it: both sides are always there.
json job(const std::string& name, const json& options, int group = 0) {
  return {{"jobname", name},        {"groupid", group},          {"error", 0},
          {"job options", options}, {"read", side(1000, 80000)}, {"write", side(500, 20000)}};
}

std::string file(const json& jobs, const json& global = {{"direct", "1"}}) {
  return json{{"fio version", "fio-3.33"}, {"global options", global}, {"jobs", jobs}}.dump(2);
}

std::string file_of(const json& job, const json& global = {{"direct", "1"}}) {
  return file(json::array({job}), global);
}

FioPoint point_of(const json& options) {
  const auto found = parse_fio(file_of(job("a", options)));
  EXPECT_TRUE(found) << found.error().text;
  return found ? found->points.at(0) : FioPoint{};
}

void expect_refused(const std::string& text, const std::string& sentence) {
  const auto found = parse_fio(text);
  ASSERT_FALSE(found) << text;
  EXPECT_EQ(found.error().text, sentence);
}

void expect_job_refused(const json& options, const std::string& sentence) {
  expect_refused(file_of(job("a", options)), sentence);
}

TEST(FioPoints, AJobIsAPoint) {
  const FioPoint point = point_of({{"rw", "randread"},
                                   {"bs", "16k"},
                                   {"iodepth", "8"},
                                   {"numjobs", "4"},
                                   {"ioengine", "io_uring"},
                                   {"size", "2g"}});
  EXPECT_EQ(point.job, "a");
  EXPECT_FALSE(point.is_sequential());
  EXPECT_EQ(point.block_bytes, 16384u);
  EXPECT_EQ(point.depth, 32u);
  EXPECT_EQ(point.size_bytes, 2ULL << 30);
  ASSERT_TRUE(point.read);
  EXPECT_FALSE(point.write);
  EXPECT_EQ(point.read->iops, 1000);
  EXPECT_EQ(point.read->mean_ns, 80000);
  EXPECT_EQ(point.read->p99_ns, 160000);
  EXPECT_EQ(load_text(point), "randread 16 KiB x 32");
}

TEST(FioPoints, WhatAJobDoesNotSayIsFiosDefault) {
  const FioPoint point = point_of(json::object());
  EXPECT_TRUE(point.is_sequential());
  EXPECT_EQ(point.read_fraction, 1);
  EXPECT_EQ(point.block_bytes, 4096u);
  EXPECT_EQ(point.depth, 1u);
  EXPECT_EQ(point.size_bytes, 0u);
  EXPECT_EQ(point.size_part, 1);
}

TEST(FioPoints, GlobalOptionsCountUnlessTheJobHasItsOwn) {
  const auto found = parse_fio(file({job("a", {{"bs", "8k"}}, 0), job("b", json::object(), 1)},
                                    {{"bs", "64k"}, {"rw", "write"}, {"direct", "1"}}));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->points.at(0).block_bytes, 8192u);
  EXPECT_EQ(found->points.at(1).block_bytes, 65536u);
  EXPECT_TRUE(found->points.at(1).write);
  EXPECT_TRUE(found->doubts.empty());
}

TEST(FioPoints, MixesHaveBothSides) {
  const FioPoint seventy = point_of({{"rw", "randrw"}, {"rwmixread", "70"}});
  EXPECT_DOUBLE_EQ(seventy.read_fraction, 0.7);
  EXPECT_TRUE(seventy.read && seventy.write);
  EXPECT_EQ(load_text(seventy), "randrw 4 KiB x 1, 70% reads");
  EXPECT_DOUBLE_EQ(point_of({{"rw", "rw"}, {"rwmixwrite", "20"}}).read_fraction, 0.8);
  EXPECT_DOUBLE_EQ(point_of({{"rw", "readwrite"}}).read_fraction, 0.5);
  EXPECT_FALSE(point_of({{"rw", "rw"}, {"rwmixread", "100"}}).write);
}

TEST(FioPoints, BlockingEnginesHaveOneRequestInFlight) {
  EXPECT_EQ(point_of({{"iodepth", "32"}}).depth, 1u);
  EXPECT_EQ(point_of({{"iodepth", "32"}, {"ioengine", "sync"}, {"numjobs", "2"}}).depth, 2u);
  EXPECT_EQ(point_of({{"iodepth", "32"}, {"ioengine", "libaio"}}).depth, 32u);
}

TEST(FioPoints, ClonesAreOnePoint) {
  const json options = {{"numjobs", "2"}, {"rw", "randread"}};
  json slower = job("a", options);
  slower["read"] = side(3000, 40000);
  const auto found = parse_fio(file({job("a", options), slower}));
  ASSERT_TRUE(found) << found.error().text;
  ASSERT_EQ(found->points.size(), 1u);
  EXPECT_EQ(found->points[0].depth, 2u);
  EXPECT_EQ(found->points[0].read->iops, 4000);
  EXPECT_EQ(found->points[0].read->mean_ns, 50000);
}

TEST(FioPoints, SizesAreReadAsFioReadsThem) {
  EXPECT_EQ(point_of({{"bs", "4096"}}).block_bytes, 4096u);
  EXPECT_EQ(point_of({{"bs", "128KiB"}}).block_bytes, 131072u);
  EXPECT_EQ(point_of({{"bs", "1M"}}).block_bytes, 1U << 20);
  EXPECT_EQ(point_of({{"bs", "8k,4k"}, {"rw", "randwrite"}}).block_bytes, 4096u);
  EXPECT_EQ(point_of({{"bs", "8k,4k"}, {"rw", "randread"}}).block_bytes, 8192u);
  EXPECT_DOUBLE_EQ(point_of({{"size", "25%"}}).size_part, 0.25);
}

TEST(FioPoints, NotesBeforeTheJsonAreSkipped) {
  const std::string text =
      "note: both iodepth >= 1 and a {synchronous} engine\n" + file_of(job("a", json::object()));
  EXPECT_TRUE(parse_fio(text));
}

TEST(FioPoints, ALatencyInAllIsTakenWhenThereIsNoOther) {
  json one = job("a", json::object());
  one["read"] = {{"iops", 10}, {"lat_ns", {{"mean", 5000}}}};
  const auto found = parse_fio(file_of(one));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->points[0].read->mean_ns, 5000);
  EXPECT_EQ(found->points[0].read->p99_ns, 0);
}

TEST(FioPoints, ThePageCacheIsDoubted) {
  const auto found = parse_fio(file_of(job("a", json::object()), json::object()));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->doubts.at(0),
            "Job 'a' ran without direct=1: it measured the kernel's page cache too, not only the "
            "drive.");
}

TEST(FioPoints, FilesThatAreNoResultAreRefused) {
  const char* how = "; make it with fio --output-format=json";
  expect_refused("", fmt::format("is not JSON{}", how));
  expect_refused("[1]", fmt::format("is not JSON{}", how));
  expect_refused("{\"jobs\": [", fmt::format("is not JSON{}", how));
  expect_refused("{}", fmt::format("has no \"jobs\"{}", how));
  expect_refused(file(json::array()), fmt::format("has no \"jobs\"{}", how));
  expect_refused(file_of(1), "has something in \"jobs\" that is no job");
  expect_refused(file_of(json::object()), "has a job without \"jobname\"");
}

TEST(FioPoints, LoadsThatAreNoClosedLoopAreRefused) {
  expect_job_refused({{"rw", "trim"}},
                     "job 'a': rw is 'trim', which cannot be fitted; use read, write, randread, "
                     "randwrite, rw or randrw");
  expect_job_refused({{"rw", "randread:8"}},
                     "job 'a': rw is 'randread:8', which cannot be fitted; use read, write, "
                     "randread, randwrite, rw or randrw");
  expect_job_refused({{"bssplit", "4k/50:8k/50"}},
                     "job 'a': bssplit cannot be fitted: the requests of a point have one size; "
                     "measure each size in a job of its own");
  expect_job_refused({{"rate_iops", "100"}},
                     "job 'a': rate_iops cannot be fitted: a point runs as fast as the drive lets "
                     "it; leave it out");
  expect_job_refused({{"rw", "rw"}, {"bs", "4k,8k"}},
                     "job 'a': bs is '4k,8k'; reads and writes of a point have one size");
  expect_job_refused({{"ioengine", "null"}},
                     "job 'a': ioengine is 'null', which uses no drive; use io_uring");
  expect_refused(file({job("a", json::object()), job("b", json::object())}),
                 "job 'b': groupid says that it ran together with 'a'; put stonewall into each "
                 "job, so that they run one after another");
}

TEST(FioPoints, ValuesThatMakeNoSenseAreRefused) {
  for (const char* bs : {"0", "100", "4x", "", "4k,", "65m", "99999999999999999999"}) {
    expect_job_refused({{"bs", bs}},
                       fmt::format("job 'a': bs is '{}'; a request has a multiple of 512 bytes, "
                                   "at most 64 MiB",
                                   bs));
  }
  expect_job_refused({{"iodepth", "0"}},
                     "job 'a': iodepth is a whole number from 1 to 65535, not '0'");
  expect_job_refused({{"numjobs", "x"}},
                     "job 'a': numjobs is a whole number from 1 to 65535, not 'x'");
  expect_job_refused({{"rw", "rw"}, {"rwmixread", "101"}},
                     "job 'a': rwmixread is a whole number from 0 to 100, not '101'");
  expect_job_refused({{"iodepth", "60000"}, {"numjobs", "2"}, {"ioengine", "libaio"}},
                     "job 'a': iodepth times numjobs is above 65535");
  expect_job_refused({{"iodepth", "65000"}, {"bs", "1m"}, {"ioengine", "libaio"}},
                     "job 'a': iodepth times numjobs times bs is above 4 GiB in flight");
  expect_job_refused({{"size", "0%"}},
                     "job 'a': size is '0%'; give it in bytes (4g) or percent (100%)");
  expect_job_refused({{"rw", 3}}, "job 'a': rw is not a text, as fio writes options");
  expect_refused(file({job("a", {{"numjobs", "3"}}), job("a", {{"numjobs", "3"}})}),
                 "job 'a': numjobs is 3, but the file has 2 jobs of that name");
}

TEST(FioPoints, ResultsThatAreNotThereAreNamed) {
  json one = job("a", {{"rw", "write"}});
  one.erase("write");
  expect_refused(file_of(one), "job 'a': write is missing; it has the job's results");
  one["write"] = {{"iops", "many"}};
  expect_refused(file_of(one), "job 'a': write.iops is missing or no number");
  one["write"] = side(0, 0);
  expect_refused(file_of(one),
                 "job 'a': write.iops is 0: nothing was done; let the job run longer");
  one["write"] = {{"iops", 5}, {"clat", {{"mean", 5}}}};
  expect_refused(file_of(one),
                 "job 'a': write.clat_ns.mean is missing; fio 3 or newer writes it unless "
                 "latencies are disabled");
  one = job("a", json::object());
  one["error"] = 5;
  expect_refused(file_of(one), "job 'a': error is 5: the job failed; measure it again");
}

}  // namespace
}  // namespace cairn::plan
