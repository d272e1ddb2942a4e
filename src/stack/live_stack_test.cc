// SPDX-License-Identifier: Apache-2.0
#include "stack/live_stack.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "service/common/service_drive.h"
#include "task/deadline.h"
#include "task/when_all.h"
#include "testing/sim_test.h"
#include "testing/stack/stacks.h"

namespace cairn::drive {
namespace {

using Kind = Request::Kind;

task::Task<std::unique_ptr<LiveStack>> open_live(env::Env& env, std::string text, Leaves& leaves) {
  std::expected<Stack, StackError> stack = Stack::parse(text);
  LiveOpened live = co_await open_live_stack(env, *stack, leaves);
  if (live) co_return std::move(*live);
  ADD_FAILURE() << live.error().show(text);
  co_return nullptr;
}

uint64_t count(const LayerInfo& layer, Kind kind) {
  return layer.figures.requests[static_cast<size_t>(kind)];
}

// Why an edit is refused; empty when it is not.
task::Task<std::string> why_no_edit(LiveStack& live, std::string text) {
  LiveStack::Edited edited = co_await live.edit(text);
  co_return edited ? "" : edited.error().text;
}

SIM_TEST(LiveStack, FiguresCountWhatCameToEachLayer) {
  SourceLeaves leaves;
  auto live =
      co_await open_live(env, "priority(stripe(mem:size=1M, mem:size=1M, chunk=4K))", leaves);
  CO_ASSERT_TRUE(live != nullptr);
  co_await write_value(*live, 0, 1, 8);
  co_await write_value(*live, 3, 2, 1);
  const int byte = co_await read_value(*live, 3);
  EXPECT_EQ(byte, 2);
  const Result<void> flushed = co_await live->flush();
  EXPECT_TRUE(flushed);
  const std::vector<std::byte> other = blocks_of(9, 1);
  const Result<void> compared = co_await live->compare(Lba(0), other);
  EXPECT_FALSE(compared);

  const LayerInfo top = co_await live->layers();
  const LayerInfo& stripe = top.below[0];
  EXPECT_EQ(top.name, "priority");
  EXPECT_EQ(stripe.path, "0.0");
  EXPECT_EQ(stripe.below[1].path, "0.0.1");
  EXPECT_EQ(stripe.below[1].name, "mem:size=1M");
  for (const LayerInfo* layer : {&top, &stripe}) {
    EXPECT_EQ(count(*layer, Kind::kWrite), 2U);
    EXPECT_EQ(count(*layer, Kind::kRead), 1U);
    EXPECT_EQ(count(*layer, Kind::kFlush), 1U);
    EXPECT_EQ(count(*layer, Kind::kCompare), 1U);
    EXPECT_EQ(layer->figures.written_bytes, 9U * 4096);
    EXPECT_EQ(layer->figures.read_bytes, 4096U);
    EXPECT_EQ(layer->figures.errors, 0U) << "a mismatch is no error";
    EXPECT_EQ(layer->figures.in_flight, 0U);
  }
  EXPECT_EQ(count(stripe.below[0], Kind::kWrite), 1U);
  EXPECT_EQ(count(stripe.below[1], Kind::kWrite), 2U);
  EXPECT_EQ(stripe.below[0].figures.written_bytes + stripe.below[1].figures.written_bytes,
            9U * 4096);
  co_await live->close();
}

SIM_TEST(LiveStack, EditsKeepLayersThatAreInBothStacks) {
  SourceLeaves leaves;
  auto live = co_await open_live(env, "limit(mem:size=1M, iops=500)", leaves);
  CO_ASSERT_TRUE(live != nullptr);
  co_await write_value(*live, 7, 5, 1);
  std::string why = co_await why_no_edit(*live, "priority(slice(mem:size=1M))");
  EXPECT_EQ(why, "");
  int byte = co_await read_value(*live, 7);
  EXPECT_EQ(byte, 5) << "memory that was closed would be gone";
  EXPECT_EQ(live->stack().text(), "priority(slice(mem:size=1M))");
  const LayerInfo top = co_await live->layers();
  EXPECT_EQ(count(top, Kind::kRead), 1U) << "a new layer begins at nothing";
  EXPECT_EQ(count(top.below[0].below[0], Kind::kWrite), 1U) << "one that stays keeps its figures";

  why = co_await why_no_edit(*live, "mem:size=1M");
  EXPECT_EQ(why, "");
  why = co_await why_no_edit(*live, "slice(priority(mem:size=1M), offset=0)");
  EXPECT_EQ(why, "");
  byte = co_await read_value(*live, 7);
  EXPECT_EQ(byte, 5);
  co_await live->close();
}

SIM_TEST(LiveStack, FiltersComeAndGoBelowServicesThatStay) {
  SourceLeaves leaves;
  auto live = co_await open_live(env, "stripe(priority(mem:size=1M), mem:size=1M)", leaves);
  CO_ASSERT_TRUE(live != nullptr);
  co_await write_value(*live, 0, 3, 40);
  const Drive* stripe = &without_joint(*live);
  const std::string why = co_await why_no_edit(*live, "stripe(mem:size=1M, priority(mem:size=1M))");
  EXPECT_EQ(why, "");
  EXPECT_EQ(&without_joint(*live), stripe) << "filters come and go below it";
  const int byte = co_await read_value(*live, 39);
  EXPECT_EQ(byte, 3);
  co_await live->close();
}

task::Task<void> write_and_read(Drive& drive, uint8_t worker, size_t times, int& wrong) {
  for (size_t i = 0; i < times; ++i) {
    const uint64_t block = uint64_t{worker} * 64 + i % 60;
    co_await write_value(drive, block, worker, 4);
    const int byte = co_await read_value(drive, block + 3);
    wrong += byte != worker;
  }
}

SIM_TEST(LiveStack, FiguresAddUpThroughAHundredEdits) {
  SourceLeaves leaves;
  const std::string core = "stripe(file:a,size=1M, file:b,size=1M, chunk=16K)";
  auto live = co_await open_live(env, core, leaves);
  CO_ASSERT_TRUE(live != nullptr);
  constexpr size_t kTimes = 100;
  int wrong = 0;
  std::vector<task::Task<void>> workers;
  for (uint8_t i = 1; i <= 4; ++i) workers.push_back(write_and_read(*live, i, kTimes, wrong));
  for (int round = 0; round < 20; ++round) {
    for (const char* shape : {"priority({})", "limit(priority({}), iops=90000)", "{}",
                              "priority(limit({}, iops=80000))", "limit({}, iops=70000)"}) {
      const std::string why = co_await why_no_edit(*live, fmt::format(fmt::runtime(shape), core));
      EXPECT_EQ(why, "");
    }
  }
  co_await task::when_all(std::move(workers));
  EXPECT_EQ(wrong, 0);
  const LayerInfo top = co_await live->layers();
  const LayerInfo& stripe = top.below[0];
  EXPECT_EQ(stripe.name, "stripe") << "which was in all of these stacks";
  EXPECT_EQ(count(stripe, Kind::kWrite), 4 * kTimes);
  EXPECT_EQ(count(stripe, Kind::kRead), 4 * kTimes);
  EXPECT_EQ(stripe.figures.done(), 8 * kTimes);
  EXPECT_EQ(stripe.figures.written_bytes, 4 * kTimes * 4 * 4096);
  EXPECT_EQ(stripe.figures.read_bytes, 4 * kTimes * 4096);
  EXPECT_EQ(stripe.figures.errors, 0U);
  EXPECT_EQ(stripe.below[0].figures.written_bytes + stripe.below[1].figures.written_bytes,
            stripe.figures.written_bytes);
  co_await live->close();
}

SIM_TEST(LiveStack, BadEditsAreRefusedAndTheOldStackGoesOn) {
  SourceLeaves leaves;
  const std::string text = "stripe(file:a,size=1M, file:b,size=1M)";
  auto live = co_await open_live(env, text, leaves);
  CO_ASSERT_TRUE(live != nullptr);
  co_await write_value(*live, 0, 3, 16);
  co_await write_value(*live, 16, 4, 16);
  const auto both = [](std::string options) {
    return fmt::format("(file:a,size=1M, file:b,size=1M{})", options);
  };
  struct Bad {
    std::string text;
    std::string why;
    size_t place;
  };
  const std::vector<Bad> all = {
      {"limit(colour=red)", "limit stands on 1 drive", 0},
      {"slice(stripe" + both("") + ", length=1M)", "its size would change from 512 to 256", 0},
      {"limit(file:none)", "file:none", 6},
      {"stripe(file:b,size=1M, file:a,size=1M)", "block 0 holds something else", 0},
      {"concat" + both(""), "holds something else", 0},
      {"mirror" + both(""), "mirror cannot be opened", 0},
      {"limit(mirror" + both("") + ")", "mirror cannot be opened", 6},
      {"mem:size=2M", "block 0 holds something else", 0},
      {"mem:size=2M,block=512", "blocks would be of 512 bytes instead of 4096", 0},
      {"limit(", "", 0}};
  for (const Bad& bad : all) {
    LiveStack::Edited edited = co_await live->edit(bad.text);
    CO_ASSERT_TRUE(!edited);
    EXPECT_NE(edited.error().text.find(bad.why), std::string::npos)
        << bad.text << ": " << edited.error().text;
    if (!bad.why.empty()) EXPECT_EQ(edited.error().place, bad.place) << bad.text;
    EXPECT_EQ(live->stack().text(), text);
    const int first = co_await read_value(*live, 15);
    const int second = co_await read_value(*live, 16);
    EXPECT_EQ(first, 3) << bad.text;
    EXPECT_EQ(second, 4) << bad.text;
  }
  co_await live->close();
}

SIM_TEST(LiveStack, AnEditThatIsRefusedHasWrittenNothing) {
  SourceLeaves leaves;
  auto live = co_await open_live(env, "slice(file:a,size=1M)", leaves);
  CO_ASSERT_TRUE(live != nullptr);
  co_await write_value(*live, 200, 5, 1);  // where a mirror keeps its label nothing is written
  const std::string why = co_await why_no_edit(*live, "mirror(file:a,size=1M, file:b,size=1M)");
  EXPECT_NE(why.find("data at byte 819200, which would be lost"), std::string::npos) << why;
  for (uint64_t block = 0; block < 256; ++block) {
    const int byte = co_await read_value(*live, block);
    EXPECT_EQ(byte, block == 200 ? 5 : 0) << block;
  }
  co_await live->close();
  live.reset();
  auto mirror = co_await open_live(env, "slice(file:b)", leaves);
  CO_ASSERT_TRUE(mirror != nullptr);
  const int byte = co_await read_value(*mirror, 0);
  EXPECT_EQ(byte, 0) << "nor is the new drive written to";
  co_await mirror->close();
}

task::Task<void> waits(Drive& drive, uint64_t block, task::CancelToken token, Result<void>& done,
                       bool& ended) {
  std::vector<std::byte> data(4096);
  done = co_await drive.read(Lba(block), data, token);
  ended = true;
}

SIM_TEST(Joint, HeldRequestsWaitAreCancelledOrGoToTheNewLayer) {
  SourceLeaves leaves;
  OpenLayer one{.drive = co_await must_open(env, "mem:size=1M", leaves)};
  OpenLayer other{.drive = co_await must_open(env, "mem:size=1M", leaves)};
  Joint joint(env, one);
  co_await write_value(*other.drive, 2, 8, 1);
  Result<void> held = co_await joint.hold({});
  EXPECT_TRUE(held);
  task::CancelSource cancel;
  std::vector<Result<void>> done(2);
  bool ended[2] = {};
  task::Task<void> first = waits(joint, 2, cancel.token(), done[0], ended[0]);
  task::Task<void> second = waits(joint, 2, {}, done[1], ended[1]);
  EXPECT_FALSE(ended[0] || ended[1]);
  EXPECT_TRUE(joint.lend(Lba(0), 1).empty());
  cancel.request();
  co_await std::move(first);
  EXPECT_EQ(done[0].error(), Errc::kCancelled);
  EXPECT_FALSE(ended[1]) << "the other one goes on waiting";
  joint.lead_to(&other);
  joint.release();
  co_await std::move(second);
  EXPECT_TRUE(done[1]);
  EXPECT_EQ(one.figures.at(env.now()).done(), 0U);
  EXPECT_EQ(other.figures.at(env.now()).done(), 1U);
  const int byte = co_await read_value(joint, 2);
  EXPECT_EQ(byte, 8);

  held = co_await joint.hold({});
  joint.lead_to(nullptr);
  joint.release();
  std::vector<std::byte> data(4096);
  const Result<void> answered = co_await joint.read(Lba(0), data);
  EXPECT_EQ(answered.error(), Errc::kClosed);
  co_await one.drive->close();
  co_await other.drive->close();
}

// Leaves that can be made to fail, and that have something to show beside themselves.
class OddLeaves final : public Leaves {
 public:
  bool is_tripped = false;  // every drive fails what it is asked
  bool fails_a_flush = false;
  uint64_t losses = 0;  // of every drive
  task::Task<Leaf> open(env::Env& env, std::string text) override {
    Leaf leaf = co_await sources_.open(env, "mem:size=1M");
    if (leaf) leaf = std::make_unique<Odd>(std::move(*leaf), *this, text == "trip:");
    co_return leaf;
  }

 private:
  class Odd final : public ServiceDrive {
   public:
    Odd(std::unique_ptr<Drive> drive, OddLeaves& leaves, bool trips)
        : ServiceDrive(only(std::move(drive))), leaves_(leaves), trips_(trips) {
      geometry_ = below().geometry();
    }
    task::Task<std::expected<std::string, std::string>> tell(
        std::vector<std::string> args) override {
      co_return "heard " + args[0];
    }
    Incarnation incarnation() const override {
      Incarnation now = ServiceDrive::incarnation();
      now.opening += 2 * leaves_.losses;
      return now;
    }
    Result<std::unique_ptr<Drive>> open_view(std::string_view name) override {
      if (name != "yesterday") return fail(Errc::kNotFound, "no such view");
      return std::make_unique<Seen>(below().geometry());
    }

   private:
    // A drive of zeroes.
    class Seen final : public ServiceDrive {
     public:
      explicit Seen(const Geometry& shape) : ServiceDrive({}) { geometry_ = shape; }

     private:
      task::Task<Result<void>> run(DriveOp&) override { co_return Result<void>(); }
    };
    static std::vector<std::unique_ptr<Drive>> only(std::unique_ptr<Drive> drive) {
      std::vector<std::unique_ptr<Drive>> one;
      one.push_back(std::move(drive));
      return one;
    }
    task::Task<Result<void>> run(DriveOp& op) override {
      const bool flushes = op.request.kind == Kind::kFlush;
      if (flushes && std::exchange(leaves_.fails_a_flush, false)) co_return fail(Errc::kIo, "lost");
      if (trips_ && !flushes) leaves_.is_tripped = true;
      if (leaves_.is_tripped) co_return fail(Errc::kIo, "tripped");
      const Result<void> done =
          co_await below().submit(op.request, op.data(), op.second(), op.token());
      co_return done;
    }
    OddLeaves& leaves_;
    const bool trips_;
  };
  SourceLeaves sources_;
};

SIM_TEST(LiveStack, WhatDoesNotOpenAgainAnswersErrorsUntilItIsEdited) {
  OddLeaves leaves;
  auto live = co_await open_live(env, "priority(mirror(odd:a, odd:b))", leaves);
  CO_ASSERT_TRUE(live != nullptr);
  co_await write_value(*live, 5, 6, 1);
  // Opening the new mirror asks the leaf that trips all others, the old mirror's too.
  std::string why = co_await why_no_edit(*live, "priority(mirror(odd:a, priority(odd:b), trip:))");
  EXPECT_NE(why.find("mirror cannot be opened"), std::string::npos) << why;
  std::vector<std::byte> data(4096);
  const Result<void> read = co_await live->read(Lba(5), data);
  EXPECT_EQ(read.error(), Errc::kClosed);
  EXPECT_NE(read.error().text().find("edit the stack"), std::string::npos);
  LayerInfo top = co_await live->layers();
  EXPECT_NE(top.problem, "");
  EXPECT_EQ(live->geometry().blocks, 240U) << "as before";

  leaves.is_tripped = false;
  why = co_await why_no_edit(*live, "priority(mirror(odd:a, odd:b))");
  EXPECT_EQ(why, "");
  const int byte = co_await read_value(*live, 5);
  EXPECT_EQ(byte, 6) << "its drives waited for this";
  top = co_await live->layers();
  EXPECT_EQ(top.problem, "");
  co_await live->close();
}

SIM_TEST(LiveStack, EditsAreNoOtherIncarnationAndLossesAre) {
  OddLeaves leaves;
  auto live = co_await open_live(env, "slice(odd:a)", leaves);
  CO_ASSERT_TRUE(live != nullptr);
  const Incarnation before = live->incarnation();
  for (const char* stack : {"slice(odd:b)", "priority(slice(odd:b))", "mirror(odd:b)", "odd:c"}) {
    const std::string why = co_await why_no_edit(*live, stack);
    EXPECT_EQ(live->incarnation(), before) << stack << why;
  }
  ++leaves.losses;
  const Incarnation after = live->incarnation();
  EXPECT_NE(after.opening, before.opening);
  EXPECT_EQ(after.medium, before.medium);
  EXPECT_EQ(live->incarnation(), after);
  const std::string why = co_await why_no_edit(*live, "slice(odd:d)");
  EXPECT_EQ(why, "");
  EXPECT_EQ(live->incarnation(), after);
  co_await live->close();
}

SIM_TEST(LiveStack, AFlushThatFailedForAnEditIsTold) {
  OddLeaves leaves;
  auto live = co_await open_live(env, "slice(odd:a)", leaves);
  CO_ASSERT_TRUE(live != nullptr);
  leaves.fails_a_flush = true;
  const std::string why = co_await why_no_edit(*live, "priority(slice(odd:a))");
  EXPECT_NE(why.find("cannot be flushed"), std::string::npos) << why;
  Result<void> flushed = co_await live->flush();
  EXPECT_FALSE(flushed) << "whoever wrote before must hear of it";
  flushed = co_await live->flush();
  EXPECT_TRUE(flushed);
  co_await live->close();
}

SIM_TEST(LiveStack, CommandsGoToTheLayerThatIsNamed) {
  OddLeaves leaves;
  auto live = co_await open_live(env, "priority(concat(odd:a, odd:b))", leaves);
  CO_ASSERT_TRUE(live != nullptr);
  const auto tell = [&](std::string layer) { return live->tell(std::move(layer), {"hello"}); };
  LiveStack::Told said = co_await tell("0.0.1");
  EXPECT_EQ(said.value_or(""), "heard hello");
  said = co_await tell("odd:a");
  EXPECT_EQ(said.value_or(""), "heard hello");
  said = co_await tell("concat");
  EXPECT_EQ(said.error(), "this layer takes no commands");
  said = co_await tell("mirror");
  EXPECT_NE(said.error().find("there is no layer 'mirror'"), std::string::npos);
  const std::string why = co_await why_no_edit(*live, "priority(priority(concat(odd:a, odd:b)))");
  EXPECT_EQ(why, "");
  said = co_await tell("priority");
  EXPECT_EQ(said.error(), "2 layers are called 'priority': name one by its path, 0 0.0");
  co_await live->close();
}

// What a rollback of the layer comes to, after a block was changed since the version.
task::Task<std::string> roll_back(env::Env& env, std::string text) {
  SourceLeaves leaves;
  auto live = co_await open_live(env, text, leaves);
  if (live == nullptr) co_return "not open";
  co_await write_value(*live, 5, 1);
  LiveStack::Told said = co_await live->tell("snapshot", {"take"});
  EXPECT_TRUE(said) << said.error();
  co_await write_value(*live, 5, 2);
  said = co_await live->tell("snapshot", {"rollback", "1"});
  const int value = co_await read_value(*live, 5);
  EXPECT_EQ(value, said ? 1 : 2);
  co_await live->close();
  co_return said ? *said : said.error();
}

SIM_TEST(LiveStack, ContentsDoNotChangeUnderLayersThatKeepSomethingOfThem) {
  std::string said =
      co_await roll_back(env, "limit(trace(snapshot(mem:size=4M), to=t), iops=1000)");
  EXPECT_EQ(said, "back at version 1") << "filters keep nothing";
  said = co_await roll_back(env, "limit(cache(snapshot(mem:size=4M)), iops=1000)");
  EXPECT_EQ(said,
            "rollback changes what snapshot holds under cache, which would go on with what was "
            "there before: end this, serve 'snapshot(mem:size=4M)' alone, say it there, and then "
            "serve the whole again");
  for (const char* text : {"thin(snapshot(mem:size=4M))", "compress(snapshot(mem:size=4M))",
                           "checksum(snapshot(mem:size=4M))", "atomic(snapshot(mem:size=4M))",
                           "mirror(snapshot(mem:size=4M), mem:size=4M)",
                           "cache(thin(mem:size=4M), snapshot(mem:size=4M))"}) {
    said = co_await roll_back(env, text);
    EXPECT_NE(said.find("serve the whole again"), std::string::npos) << text << ": " << said;
  }
}

SIM_TEST(LiveStack, ALayerWithAnOpenViewIsNotClosed) {
  OddLeaves leaves;
  auto live = co_await open_live(env, "priority(odd:a)", leaves);
  CO_ASSERT_TRUE(live != nullptr);
  Result<std::unique_ptr<Drive>> view = live->open_view("yesterday");
  CO_ASSERT_TRUE(view);
  std::string why = co_await why_no_edit(*live, "odd:b");
  EXPECT_EQ(why, "odd:a would be closed, and a view of it is open: close that first");
  why = co_await why_no_edit(*live, "odd:a");
  EXPECT_EQ(why, "") << "its layer stays";
  co_await (*view)->close();
  view->reset();
  why = co_await why_no_edit(*live, "odd:b");
  EXPECT_EQ(why, "");
  view = live->open_view("tomorrow");
  EXPECT_EQ(view.error(), Errc::kNotFound);
  co_await live->close();
}

}  // namespace
}  // namespace cairn::drive
