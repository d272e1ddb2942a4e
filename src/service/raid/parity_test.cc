// SPDX-License-Identifier: Apache-2.0
// What parity opens with, what it reads and mends. Load, losses and crashes are in tests/stack.
#include "service/raid/parity.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "base/rng.h"
#include "drive/filter_drive.h"
#include "service/raid/parity_code.h"
#include "stack/services.h"
#include "task/deadline.h"
#include "testing/stack/redundant.h"

namespace cairn::drive {
namespace {

constexpr size_t kBlock = 4096;

// The whole drive holds bytes drawn from a seed, and they are written or compared.
task::Task<void> fill(env::Env& env, std::string text, bool writes, std::string& wrong) {
  SourceLeaves leaves;
  Opened drive = co_await open_stack(env, text, leaves);
  wrong = drive ? "" : drive.error().text;
  if (!drive) co_return;
  Rng rng(5);
  const uint64_t step = 29;  // no multiple of anything
  std::vector<std::byte> expected(step * kBlock);
  std::vector<std::byte> found(step * kBlock);
  for (uint64_t at = 0; at < (*drive)->geometry().blocks; at += step) {
    const uint64_t count = std::min(step, (*drive)->geometry().blocks - at);
    rng.fill(expected);
    if (writes) {
      const Result<void> done =
          co_await (*drive)->write(Lba(at), Bytes(expected).first(count * kBlock));
      EXPECT_TRUE(done);
    } else {
      const MutableBytes piece = MutableBytes(found).first(count * kBlock);
      const Result<void> done = co_await (*drive)->read(Lba(at), piece);
      if (!done) wrong = done.error().text();
      if (!std::ranges::equal(piece, Bytes(expected).first(count * kBlock))) {
        wrong = fmt::format("blocks from {} on differ", at);
      }
    }
  }
  co_await (*drive)->close();
}

class Parity : public RedundantTest {
 protected:
  std::string fill_stack(std::string text, bool writes) {
    std::string wrong;
    run_in_sim(cluster_, [&](env::Env& env) { return fill(env, text, writes, wrong); });
    return wrong;
  }
  // The n-th drives of the stack, except those that are gone.
  static std::string stack_of(size_t legs, size_t parity, SymbolSet gone, std::string_view more) {
    std::string text = "parity(";
    for (size_t i = 0; i < legs; ++i) {
      text += (gone >> i & 1) != 0 ? fmt::format("file:gone{}, ", i)
                                   : fmt::format("file:d{},size=768K, ", i);
    }
    return text + fmt::format("parity={}, chunk=16K{})", parity, more);
  }
};

constexpr const char* kThree = "parity(file:a,size=1M, file:b,size=1M, file:c,size=1M)";

TEST_F(Parity, AnyLegsThatParityReplacesMayBeGone) {
  for (const auto& [legs, parity] :
       {std::pair<size_t, size_t>{2, 1}, {3, 1}, {4, 2}, {6, 2}, {5, 3}, {6, 4}}) {
    SCOPED_TRACE(fmt::format("{} legs, parity {}", legs, parity));
    for (size_t i = 0; i < legs; ++i) {
      if (disk(fmt::format("d{}", i)).exists()) {
        disk(fmt::format("d{}", i)).poke(0, std::vector<std::byte>(768_KiB));
      }
    }
    ASSERT_EQ(fill_stack(stack_of(legs, parity, 0, ""), true), "");
    std::vector<std::vector<std::byte>> before;
    for (size_t i = 0; i < legs; ++i) before.push_back(contents(fmt::format("d{}", i)));
    for (SymbolSet gone = 0; gone < SymbolSet{1} << legs; ++gone) {
      if (static_cast<size_t>(std::popcount(gone)) > parity) continue;
      EXPECT_EQ(fill_stack(stack_of(legs, parity, gone, ", degraded=yes"), false), "") << gone;
      for (size_t i = 0; i < legs; ++i) disk(fmt::format("d{}", i)).poke(0, before[i]);
    }
    const SymbolSet too_many = first_symbols(parity + 1);
    EXPECT_TRUE(says(use_stack(stack_of(legs, parity, too_many, ", degraded=yes")),
                     legs == parity + 1 ? "none of its drives" : "too few legs"));
  }
}

TEST_F(Parity, TwentyFourLegsWithoutFourOfThem) {
  ASSERT_EQ(fill_stack(stack_of(24, 4, 0, ""), true), "");
  EXPECT_EQ(fill_stack(stack_of(24, 4, 0x800401, ", degraded=yes"), false), "");
  EXPECT_EQ(fill_stack(stack_of(24, 4, 0x880401, ", degraded=yes"), false), "");
}

TEST_F(Parity, KnowsItsLegsInAnyOrder) {
  EXPECT_EQ(use_stack(kThree, 7), "");
  EXPECT_EQ(use_stack("parity(file:c, file:a, file:b)"), "");
  EXPECT_EQ(fill_stack("parity(file:b, file:c, file:a)", true), "");
  EXPECT_EQ(fill_stack(kThree, false), "");
}

TEST_F(Parity, AMissingLegIsRefusedUnlessToldAndCatchesUpLater) {
  EXPECT_EQ(use_stack(kThree, 7), "");
  EXPECT_TRUE(says(use_stack("parity(file:a, file:b, file:gone)"), "degraded=yes"));
  EXPECT_EQ(fill_stack("parity(file:a, file:gone, file:c, degraded=yes)", true), "");
  // Known to be stale, it may be missing; it does not make up for one that is good.
  EXPECT_EQ(fill_stack("parity(file:a, file:gone, file:c)", false), "");
  EXPECT_TRUE(says(use_stack("parity(file:a, file:b, file:gone, degraded=yes)"), "too few legs"));
  EXPECT_EQ(use_stack("parity(file:a, file:b, file:c)"), "");
  EXPECT_EQ(fill_stack("parity(file:gone, file:b, file:c, degraded=yes)", false), "");
}

TEST_F(Parity, LegsThatWentOnWithoutEachOtherAreSplitBrain) {
  const char* four =
      "parity(file:a,size=1M, file:b,size=1M, file:c,size=1M, file:d,size=1M, parity=2)";
  EXPECT_EQ(use_stack(four, 7), "");
  EXPECT_EQ(use_stack("parity(file:a, file:b, file:x, file:y, parity=2, degraded=yes)", 8), "");
  EXPECT_EQ(use_stack("parity(file:x, file:y, file:c, file:d, parity=2, degraded=yes)", 9), "");
  const auto a = contents("a");
  const auto d = contents("d");
  EXPECT_TRUE(says(use_stack("parity(file:a, file:b, file:c, file:d, parity=2)"), "split brain"));
  EXPECT_TRUE(says(use_stack("parity(file:a, file:b, file:c, file:d, parity=2, degraded=yes)"),
                   "split brain"));
  EXPECT_TRUE(contents("a") == a && contents("d") == d) << "nothing is written";
}

TEST_F(Parity, DrivesThatDoNotFitAreRefusedUntouched) {
  EXPECT_EQ(use_stack(kThree, 7), "");
  EXPECT_EQ(use_stack("parity(file:d,size=1M, file:e,size=1M, file:f,size=1M)", 7), "");
  EXPECT_EQ(use_stack("mirror(file:m,size=1M, file:n,size=1M)").find("cannot"), std::string::npos);
  const auto a = contents("a");
  const auto m = contents("m");
  EXPECT_TRUE(says(use_stack("parity(file:a, file:b, file:f)"), "different stacks"));
  EXPECT_TRUE(says(use_stack("parity(file:a, file:b, file:m)"), "something else"));
  EXPECT_TRUE(says(use_stack("parity(file:a, file:b, file:c, parity=2)"), "another parity"));
  EXPECT_TRUE(says(use_stack("parity(file:a, file:b, file:c, chunk=32K)"), "another chunk"));
  EXPECT_TRUE(says(use_stack("parity(file:a, file:b, file:c, file:g,size=1M)"), "spares=N"));
  EXPECT_TRUE(says(use_stack("parity(file:a, file:b, file:h,size=512K, degraded=yes)"), "smaller"));
  disk("k").create(1_MiB);
  disk("k").poke(0, contents("a"));
  EXPECT_TRUE(says(use_stack("parity(file:a, file:b, file:k)"), "copies of the same leg"));
  EXPECT_TRUE(says(use_stack("parity(file:p,size=256K, file:q,size=256K)"), "too small"));
  EXPECT_TRUE(says(use_stack("parity(mem:size=1M, mem:size=1M,block=512)"), "block sizes"));
  EXPECT_TRUE(says(use_stack("parity(mem:size=1M, mem:size=1M, parity=2)"), "one leg more"));
  EXPECT_TRUE(says(use_stack("parity(mem:size=1M, mem:size=1M, chunk=1000)"), "multiple"));
  EXPECT_TRUE(says(use_stack("parity(mem:size=1M, mem:size=1M, parity=5)"), "1 to 4"));
  EXPECT_TRUE(says(use_stack("parity(mem:size=1M, file:gone)"), "needs all its drives"));
  EXPECT_TRUE(contents("a") == a && contents("m") == m) << "nothing is written";
  EXPECT_EQ(use_stack(kThree), "") << "after all that";
}

TEST_F(Parity, ABlankDriveReplacesALegThatIsGone) {
  EXPECT_EQ(fill_stack(kThree, true), "");
  EXPECT_EQ(use_stack("parity(file:a, file:gone, file:c, file:d,size=1M, spares=1, degraded=yes, "
                      "retry_ms=1)"),
            "");
  EXPECT_EQ(fill_stack("parity(file:d, file:gone, file:c, degraded=yes)", false), "");
}

TEST_F(Parity, DamagedMetadataOfOneLegIsNoLossAndOfAllIsRefused) {
  EXPECT_EQ(fill_stack(kThree, true), "");
  disk("a").corrupt({.offset = 0, .length = kBlock}, 3);
  disk("b").corrupt({.offset = 2 * kBlock, .length = 64}, 3);
  EXPECT_EQ(fill_stack(kThree, false), "");
  for (const char* leg : {"a", "b", "c"}) {
    disk(leg).corrupt({.offset = 2 * kBlock, .length = 64}, 3);
    disk(leg).corrupt({.offset = 3 * kBlock, .length = 64}, 3);
  }
  EXPECT_TRUE(says(use_stack(kThree), "state of parity"));
  disk("a").corrupt({.offset = 0, .length = 2 * kBlock}, 9);
  EXPECT_TRUE(says(use_stack(kThree), "parity cannot be opened"));
}

// What a log holds is never believed beyond its checksums.
TEST_F(Parity, GarbageInLogsIsNoEntry) {
  EXPECT_EQ(fill_stack(kThree, true), "");
  Rng rng(1);
  for (const char* leg : {"a", "b", "c"}) {
    std::vector<std::byte> noise(128_KiB);
    rng.fill(noise);
    disk(leg).poke(64_KiB, noise);
    disk(leg).corrupt({.offset = 192_KiB, .length = 128_KiB}, 100);
  }
  EXPECT_EQ(fill_stack(kThree, false), "");
}

// Counts what reaches a leg.
struct Counts {
  uint64_t reads = 0;
  uint64_t writes = 0;
};
class CountingDrive final : public FilterDrive {
 public:
  CountingDrive(std::unique_ptr<Drive> below, Counts& counts)
      : FilterDrive(std::move(below)), counts_(counts) {}

 private:
  void start(DriveOp& op) override {
    if (op.request.kind == Request::Kind::kRead) ++counts_.reads;
    if (op.request.writes()) ++counts_.writes;
    pass(op);
  }
  Counts& counts_;
};

task::Task<void> count_reads(env::Env& env, Counts& counts, bool& is_done) {
  const Stack layer = *Stack::parse(
      "parity(mem:size=4M, mem:size=4M, mem:size=4M, mem:size=4M, mem:size=4M, mem:size=4M, "
      "parity=2)");
  SourceLeaves leaves;
  std::vector<std::unique_ptr<Drive>> below;
  for (const Stack& leaf : layer.below) {
    Leaves::Leaf drive = co_await leaves.open(env, leaf.name);
    CO_ASSERT_TRUE(drive);
    below.push_back(std::make_unique<CountingDrive>(std::move(*drive), counts));
  }
  ServiceParts parts{
      .env = env, .below = below, .options = *read_options(layer), .contents = {}, .files = leaves};
  Result<std::unique_ptr<Drive>> drive = co_await kParity.open(std::move(parts));
  CO_ASSERT_TRUE(drive);
  const std::vector<std::byte> data = blocks_of(7, 64);
  counts = {};
  Result<void> done = co_await (*drive)->write(Lba(64), data);
  EXPECT_TRUE(done);
  EXPECT_EQ(counts.reads, 0U) << "a whole stripe";
  EXPECT_EQ(counts.writes, 12U) << "6 legs, each into its log and into its place";
  counts = {};
  done = co_await (*drive)->write(Lba(64), Bytes(data).first(kBlock));
  EXPECT_EQ(counts.reads, 3U) << "one block: its old data and parity, or the rest of the row";
  counts = {};
  done = co_await (*drive)->write(Lba(64), Bytes(data).first(48 * kBlock));
  EXPECT_EQ(counts.reads, 1U) << "three of four chunks: the fourth";
  counts = {};
  done = co_await (*drive)->write_zeroes(Lba(0), 64 * 8);
  EXPECT_EQ(counts.reads, 0U);
  EXPECT_EQ(counts.writes, 12U) << "whole stripes of zeroes are one entry";
  std::vector<std::byte> found(64 * kBlock);
  done = co_await (*drive)->read(Lba(64), found);
  EXPECT_TRUE(done && found == blocks_of(0, 64));
  co_await (*drive)->close();
  is_done = true;
}

TEST(ParityWrites, ReadAsLittleAsTheyCan) {
  Counts counts;
  bool is_done = false;
  run_in_sim([&](env::Env& env) { return count_reads(env, counts, is_done); });
  EXPECT_TRUE(is_done);
}

// A drive of some stack, used from outside its core: jobs run there, one polling step later.
struct Session {
  Drive* drive = nullptr;
  bool is_over = false;
  std::vector<std::function<task::Task<void>(Drive&)>> jobs;
};
task::Task<void> serve(env::Env& env, std::string text, Session& session) {
  SourceLeaves leaves;
  std::unique_ptr<Drive> drive = co_await must_open(env, text, leaves);
  session.drive = drive.get();
  task::Gate gate;
  while (!session.is_over) {
    for (const auto& job : std::exchange(session.jobs, {})) gate.spawn(job(*drive));
    const Result<void> slept = co_await task::sleep_for(env, 100_us);
    if (!slept) break;
  }
  co_await gate.close();
  co_await drive->close();
}

// What became of a job; none: it runs.
using Done = std::optional<Result<void>>;
task::Task<void> submit(Drive& drive, Request request, MutableBytes memory, Done& done,
                        task::CancelToken token) {
  const Result<void> result = co_await drive.submit(request, {&memory, 1}, {}, token);
  done = result;
}
task::Task<void> tell(Drive& drive, std::string word, std::string& answer) {
  const auto told = co_await drive.tell({word});
  answer = told ? *told : "refused: " + told.error();
}

task::Task<void> request_stop(task::CancelSource& stop) {
  stop.request();
  co_return;
}

class ParitySession : public Parity {
 protected:
  void begin(std::string text) {
    node().start([this, text](env::Env& env) { return serve(env, text, session_); });
    ASSERT_TRUE(cluster_.run_until([&] { return session_.drive != nullptr; }, 10_s));
  }
  ~ParitySession() override {
    session_.is_over = true;
    EXPECT_TRUE(cluster_.run_until([&] { return !node().is_running(); }, 10_s));
  }
  sim::Node& node() { return cluster_.node("host"); }
  const Drive& drive() { return *session_.drive; }

  void start(Request request, MutableBytes memory, Done& done, task::CancelToken token = {}) {
    session_.jobs.push_back(
        [=, &done](Drive& drive) { return submit(drive, request, memory, done, token); });
  }
  Result<void> run(Request request, MutableBytes memory) {
    Done done;
    start(request, memory, done);
    EXPECT_TRUE(cluster_.run_until([&] { return done.has_value(); }, 1000_s));
    return *done;
  }
  Result<void> write(uint64_t lba, uint8_t value, uint64_t blocks = 1) {
    std::vector<std::byte> data = blocks_of(value, blocks);
    return run({.kind = Request::Kind::kWrite, .lba = Lba(lba), .blocks = blocks}, data);
  }
  // The first byte of a block; -1: it cannot be read.
  int read(uint64_t lba, uint8_t copy = 0) {
    std::vector<std::byte> data(kBlock);
    const Result<void> done = run({.copy = copy, .lba = Lba(lba), .blocks = 1}, data);
    return done ? std::to_integer<int>(data[0]) : -1;
  }
  std::string ask(std::string word) {
    std::string answer;
    session_.jobs.push_back([&](Drive& drive) { return tell(drive, word, answer); });
    EXPECT_TRUE(cluster_.run_until([&] { return !answer.empty(); }, 1000_s));
    return answer;
  }
  // Where row 0 lies on a leg of 1 MiB.
  static constexpr uint64_t kRowZero = 384_KiB;

  Session session_;
};

TEST_F(ParitySession, CopiesAreTheStoredBlockAndTheComputedOne) {
  begin(kThree);
  ASSERT_EQ(drive().geometry().copies, 2);
  ASSERT_TRUE(write(0, 7));
  ASSERT_TRUE(write(16, 8));
  disk("a").poke(kRowZero, blocks_of(9, 1));
  EXPECT_EQ(read(0, 1), 9) << "as it is stored";
  EXPECT_EQ(read(0, 2), 7) << "as the others say";
  EXPECT_EQ(read(0), 9);
  EXPECT_NE(read(16, 2), 8) << "computed from the damaged one";
  EXPECT_EQ(read(16, 1), 8);
  disk("b").fail_reads();
  EXPECT_EQ(read(16, 1), -1);
}

TEST_F(ParitySession, ScrubMakesParityAnewWhenItCannotTellWhatIsWrong) {
  begin(kThree);
  ASSERT_TRUE(write(0, 7, 32));
  EXPECT_TRUE(ask("scrub").ends_with("could not be read and were written back"));
  EXPECT_TRUE(says(ask("scrub"), " 0 did not match"));
  disk("c").poke(kRowZero + 3 * kBlock, blocks_of(1, 2));
  EXPECT_TRUE(says(ask("scrub"), " 2 did not match their parity (0 with one wrong block"));
  EXPECT_TRUE(says(ask("scrub"), " 0 did not match"));
  EXPECT_EQ(read(3, 2), 7);
}

TEST_F(ParitySession, ScrubFindsTheWrongBlockWithTwoParities) {
  begin("parity(file:a,size=1M, file:b,size=1M, file:c,size=1M, file:d,size=1M, parity=2)");
  ASSERT_TRUE(write(0, 7, 32));
  disk("a").poke(kRowZero + 3 * kBlock, blocks_of(1, 1));
  disk("d").poke(kRowZero + 5 * kBlock, blocks_of(1, 1));
  disk("b").latent_error(kRowZero + 64_KiB);
  EXPECT_TRUE(says(ask("scrub"), " 2 did not match their parity (2 with one wrong block"));
  EXPECT_TRUE(says(ask("scrub"),
                   " 0 did not match their parity (0 with one wrong block, mended; of the "
                   "rest the parity was made anew), 0 blocks"));
  EXPECT_EQ(read(3, 1), 7);
  EXPECT_EQ(read(3, 2), 7);
  EXPECT_TRUE(says(ask("scrub"), " rows compared"));
}

TEST_F(ParitySession, CommandsItDoesNotKnowAreRefused) {
  begin(kThree);
  EXPECT_EQ(ask("polish"), "refused: parity takes one command: scrub, or retry");
}

TEST_F(ParitySession, ACancelledWriteEndsSoonAndReadsOfItWait) {
  begin(kThree);
  ASSERT_TRUE(write(0, 7));
  disk("a").stall(10_s);
  task::CancelSource stop;
  std::vector<std::byte> data = blocks_of(8, 1);
  Done writing;
  start({.kind = Request::Kind::kWrite, .lba = Lba(0), .blocks = 1}, data, writing, stop.token());
  cluster_.run_for(1_ms);
  EXPECT_FALSE(writing.has_value());
  session_.jobs.push_back([&stop](Drive&) -> task::Task<void> { return request_stop(stop); });
  cluster_.run_for(200_us);
  ASSERT_TRUE(writing.has_value());
  EXPECT_FALSE(writing->has_value());
  const int seen = read(0);
  EXPECT_TRUE(seen == 7 || seen == 8);
  cluster_.run_for(20_s);
  EXPECT_EQ(read(0), seen);
}

TEST_F(ParitySession, WhoWantsTheRowsOfASlowWriteWaitsForIt) {
  begin(kThree);
  ASSERT_TRUE(write(0, 7));
  disk("a").stall(60_s);
  std::vector<std::byte> first = blocks_of(8, 1);
  std::vector<std::byte> second = blocks_of(9, 1);
  Done one;
  Done other;
  start({.kind = Request::Kind::kWrite, .lba = Lba(0), .blocks = 1}, first, one);
  cluster_.run_for(1_ms);
  start({.kind = Request::Kind::kWrite, .lba = Lba(0), .blocks = 1}, second, other);
  cluster_.run_for(50_s);
  EXPECT_FALSE(one.has_value());
  EXPECT_FALSE(other.has_value()) << "no leg has failed";
  cluster_.run_for(20_s);
  ASSERT_TRUE(one.has_value() && other.has_value());
  EXPECT_TRUE(one->has_value() && other->has_value());
  EXPECT_EQ(read(0), 9);
}

task::Task<void> time_copy(env::Env& env, Duration& took, size_t& max) {
  SourceLeaves leaves;
  std::unique_ptr<Drive> drive =
      co_await must_open(env, "parity(file:a, file:b, file:c, rate=1M, retry_ms=1)", leaves);
  const Time start = env.now();
  while (parity_status(*drive)->good < 3) {
    max = std::max(max, parity_status(*drive)->regions_to_copy);
    const Result<void> slept = co_await task::sleep_for(env, 1_ms);
    EXPECT_TRUE(slept);
  }
  took = env.now() - start;
  co_await drive->close();
}

TEST_F(Parity, CopyingKeepsToItsRateAndShowsItsProgress) {
  EXPECT_EQ(use_stack("parity(file:a,size=2432K, file:b,size=2432K, file:c,size=2432K)"), "");
  EXPECT_EQ(fill_stack("parity(file:a, file:b, file:gone, degraded=yes)", true), "");
  Duration took;
  size_t max = 0;
  run_in_sim(cluster_, [&](env::Env& env) { return time_copy(env, took, max); });
  EXPECT_EQ(max, 32U) << "regions of 64 KiB, of which one is being copied";
  EXPECT_GT(took, 1800_ms);
  EXPECT_LT(took, 2100_ms);
}

}  // namespace
}  // namespace cairn::drive
