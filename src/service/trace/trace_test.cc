// SPDX-License-Identifier: Apache-2.0
#include "service/trace/trace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "drive/replay.h"
#include "task/deadline.h"
#include "testing/sim_test.h"
#include "testing/stack/stacks.h"
#include "trace/reader.h"
#include "trace/search.h"

namespace cairn::drive {
namespace {

std::string text_of(sim::Cluster& cluster, const std::string& file) {
  sim::Medium& disk = cluster.node("host").disk(file);
  std::vector<std::byte> bytes(disk.size());
  disk.peek(0, bytes);
  return std::string(as_text(bytes));
}

std::vector<trace::Record> records_of(const std::string& text) {
  std::vector<trace::Record> records;
  trace::Outcome<trace::Reader> reader =
      trace::Reader::open(std::make_unique<trace::TextSource>(text), {});
  EXPECT_TRUE(reader);
  while (reader) {
    const auto next = reader->next();
    if (!next || !*next) break;
    records.push_back(**next);
  }
  return records;
}

task::Task<void> read_often(env::Env& env, Drive& drive, int times) {
  std::vector<std::byte> memory(8192);
  for (int i = 0; i < times; ++i) {
    const Result<void> read = co_await drive.read(Lba(static_cast<uint64_t>(i % 100)), memory);
    EXPECT_TRUE(read);
    const Result<void> slept = co_await task::sleep_for(env, 100_us, {});
    EXPECT_TRUE(slept);
  }
}

task::Task<void> record_some(env::Env& env) {
  SourceLeaves leaves;
  std::unique_ptr<Drive> drive =
      co_await must_open(env, "trace(limit(mem:size=1M, iops=1000, burst_ms=0), to=t)", leaves);
  const std::vector<std::byte> data = blocks_of(1, 1);
  const Result<void> written = co_await drive->write(Lba(3), data);
  EXPECT_TRUE(written);
  const Result<void> flushed = co_await drive->flush();
  EXPECT_TRUE(flushed);
  co_await read_often(env, *drive, 1000);  // more than a chunk of the file
  const auto rotated = co_await drive->tell({"rotate"});
  EXPECT_EQ(rotated.value_or(""), "recording to t.1");
  co_await read_often(env, *drive, 1);
  const auto stopped = co_await drive->tell({"stop"});
  EXPECT_EQ(stopped.value_or(""), "t.1 is whole");
  co_await read_often(env, *drive, 1);
  const auto wrong = co_await drive->tell({"pause"});
  EXPECT_FALSE(wrong);
  EXPECT_EQ(fact(*drive, "recorded"), 1003U);
  EXPECT_EQ(fact(*drive, "dropped"), 0U);
  co_await drive->close();
}

TEST(Trace, RecordsEveryRequestAndIsRead) {
  sim::Cluster cluster;
  run_in_sim(cluster, [](env::Env& env) { return record_some(env); });
  const std::string text = text_of(cluster, "t");
  EXPECT_NE(text.find(",flush,0,0,"), std::string::npos);
  const std::vector<trace::Record> records = records_of(text);
  ASSERT_EQ(records.size(), 1001U);
  EXPECT_TRUE(records[0].write);
  EXPECT_EQ(records[0].offset, 3U * 4096);
  EXPECT_EQ(records[1].bytes, 8192U);
  EXPECT_EQ(records[102].arrival - records[101].arrival,
            1'000'000);  // the limit, to the nanosecond
  EXPECT_EQ(records_of(text_of(cluster, "t.1")).size(), 1U);
}

size_t blank_lines_of(std::string_view text) {
  size_t blank = 0;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (line.find_first_not_of(' ') == line.npos) ++blank;
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
  return blank;
}

TEST(Trace, AStoppedFileEndsBehindItsLastLine) {
  sim::Cluster cluster;
  run_in_sim(cluster, [](env::Env& env) { return record_some(env); });
  const std::string several = text_of(cluster, "t");
  EXPECT_TRUE(several.ends_with('\n'));
  EXPECT_EQ(several.find('\0'), std::string::npos);
  EXPECT_LE(blank_lines_of(several), several.size() / 16384 + 1);  // one for each write at most
  const std::string one = text_of(cluster, "t.1");
  EXPECT_EQ(one.size(), 512U);
  EXPECT_EQ(blank_lines_of(one), 1U);
}

// `left` is what a process that is killed after 1000 reads leaves.
task::Task<void> record_and_look(env::Env& env, sim::Cluster& cluster, std::string& left) {
  SourceLeaves leaves;
  std::unique_ptr<Drive> drive = co_await must_open(env, "trace(mem:size=1M, to=t)", leaves);
  co_await read_often(env, *drive, 1000);
  left = text_of(cluster, "t");
  co_await drive->close();
}

TEST(Trace, AFileThatWasNotStoppedIsRead) {
  sim::Cluster cluster;
  std::string left;
  run_in_sim(cluster, [&](env::Env& env) { return record_and_look(env, cluster, left); });
  const size_t whole = records_of(text_of(cluster, "t")).size();
  EXPECT_EQ(whole, 1000U);
  const size_t read = records_of(left).size();
  EXPECT_GT(read, whole / 2);
  EXPECT_LT(read, whole);  // the last lines were in memory
}

SIM_TEST(Trace, AFileThatFailsFailsNoRequest) {
  SourceLeaves leaves;
  std::unique_ptr<Drive> drive = co_await must_open(env, "trace(mem:size=1M, to=t)", leaves);
  cluster.node("host").disk("t").full();
  co_await read_often(env, *drive, 1000);
  EXPECT_EQ(fact(*drive, "file_errors"), 1U);
  EXPECT_EQ(fact(*drive, "recording"), 0U);
  const auto told = co_await drive->tell({"start"});
  EXPECT_FALSE(told);
  cluster.node("host").disk("t").heal();
  cluster.node("host").disk("t").full(false);
  const auto again = co_await drive->tell({"start"});
  EXPECT_EQ(again.value_or(""), "recording to t.1");
  co_await drive->close();
}

// Three reads 1 ms apart on a drive that lets one pass every 2 ms.
task::Task<void> replay_three(env::Env& env, double speed, ReplayResult& result) {
  SourceLeaves leaves;
  std::unique_ptr<Drive> drive =
      co_await must_open(env, "limit(mem:size=1M, iops=500, burst_ms=0)", leaves);
  int next = 0;
  ReplaySource source = [&next]() -> std::optional<trace::Record> {
    if (next == 3) return std::nullopt;
    const int i = next++;
    return trace::Record{
        .arrival = i * 1'000'000, .offset = 1_MiB * 7 + 512, .bytes = 512, .write = i == 2};
  };
  const Result<ReplayResult> done =
      co_await replay(env, *drive, source, {.speed = speed}, env.stop_token());
  EXPECT_TRUE(done);
  if (done) result = *done;
  co_await drive->close();
}

TEST(Replay, TakesTheTimeThatTheTraceAndTheDriveTake) {
  ReplayResult result;
  run_in_sim([&result](env::Env& env) { return replay_three(env, 1, result); });
  EXPECT_EQ(result.took, 4_ms);
  EXPECT_EQ(result.reads, 2U);
  EXPECT_EQ(result.read_ns.min(), 0U);
  EXPECT_EQ(result.read_ns.max(), 1'000'000U);  // came at 1 ms, passed at 2 ms
  EXPECT_EQ(result.write_ns.max(), 2'000'000U);
  run_in_sim([&result](env::Env& env) { return replay_three(env, 0.5, result); });
  EXPECT_EQ(result.took, 4_ms);
  EXPECT_EQ(result.read_ns.max(), 0U);
}

task::Task<void> replay_search(env::Env& env, ReplayResult& result) {
  SourceLeaves leaves;
  std::unique_ptr<Drive> drive = co_await must_open(env, "slice(mem:size=16M)", leaves);
  trace::Search search({.space = drive->geometry().bytes()});
  ReplaySource source = [&search]() -> std::optional<trace::Record> { return search.next(); };
  const Result<ReplayResult> done =
      co_await replay(env, *drive, source, {.speed = 0, .requests = 20'000}, env.stop_token());
  EXPECT_TRUE(done);
  if (done) result = *done;
  co_await drive->close();
}

TEST(Replay, RunsDrawnRequestsOfAnySize) {
  ReplayResult result;
  run_in_sim([&result](env::Env& env) { return replay_search(env, result); });
  EXPECT_EQ(result.reads, 20'000U);
  EXPECT_EQ(result.errors, 0U);
  EXPECT_NEAR(static_cast<double>(result.bytes) / 20'000, 36 * 1024, 2000);
}

}  // namespace
}  // namespace cairn::drive
