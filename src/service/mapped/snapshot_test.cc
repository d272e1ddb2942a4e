// SPDX-License-Identifier: Apache-2.0
#include "service/mapped/snapshot.h"

#include <gtest/gtest.h>

#include "drive/filter_drive.h"
#include "testing/sim_test.h"
#include "testing/stack/stacks.h"

namespace cairn::drive {
namespace {

task::Task<std::string> told(Drive& drive, std::vector<std::string> args) {
  const auto answer = co_await drive.tell(std::move(args));
  co_return answer ? *answer : "refused: " + answer.error();
}
// A view that opens, or a failed test.
std::unique_ptr<Drive> view_of(Drive& drive, std::string_view name) {
  Result<std::unique_ptr<Drive>> view = drive.open_view(name);
  if (!view) ADD_FAILURE() << view.error().text();
  return view ? std::move(*view) : nullptr;
}

constexpr const char* kStack = "snapshot(file:d,size=16M, chunk=32K)";

SIM_TEST(Snapshot, VersionsStayAsTheyWere) {
  SourceLeaves leaves;
  const auto drive = co_await must_open(env, kStack, leaves);
  co_await write_value(*drive, 10, 1, 20);
  EXPECT_EQ(co_await told(*drive, {"take"}), "version 1");
  co_await write_value(*drive, 12, 2);
  EXPECT_EQ(co_await told(*drive, {"take", "second"}), "version 2");
  EXPECT_TRUE((co_await drive->discard(Lba(0), 100)).has_value());
  co_await write_value(*drive, 11, 3);

  const auto first = view_of(*drive, "1");
  const auto second = view_of(*drive, "second");
  EXPECT_EQ(co_await read_value(*first, 12), 1);
  EXPECT_EQ(co_await read_value(*first, 9), 0);
  EXPECT_EQ(co_await read_value(*second, 12), 2);
  EXPECT_EQ(co_await read_value(*second, 13), 1);
  EXPECT_EQ(co_await read_value(*drive, 11), 3);
  EXPECT_EQ(co_await read_value(*drive, 12), 0);
  EXPECT_TRUE(drive->extent_at(Lba(16), 8).is_hole);
  EXPECT_FALSE(first->extent_at(Lba(16), 8).is_hole);
  EXPECT_EQ(fact(*drive, "views_open"), 2u);

  const std::vector<std::byte> data = blocks_of(9, 1);
  EXPECT_EQ((co_await first->write(Lba(12), data)).error().code(), Errc::kDenied);
  EXPECT_EQ((co_await first->discard(Lba(12), 1)).error().code(), Errc::kDenied);
  EXPECT_TRUE((co_await first->flush()).has_value());
  EXPECT_NE((co_await told(*drive, {"remove", "1"})).find("in use"), std::string::npos);
  EXPECT_EQ(co_await told(*drive, {"list"}), "version 1 (in use)\nversion 2 second (in use)");
  co_await first->close();
  co_await second->close();
  EXPECT_EQ(co_await told(*drive, {"remove", "1"}), "removed version 1");
  EXPECT_EQ(co_await told(*drive, {"list"}), "version 2 second");
  co_await drive->close();
}

// What comes to the drive below, by priority.
struct Seen {
  uint64_t low_reads = 0;
  uint64_t low_writes = 0;
  uint64_t other_reads = 0;
};
class SeenDrive final : public FilterDrive {
 public:
  SeenDrive(std::unique_ptr<Drive> below, Seen& seen)
      : FilterDrive(std::move(below)), seen_(seen) {}

 private:
  void start(DriveOp& op) override {
    const bool is_low = op.request.priority == Priority::kLow;
    const bool is_read = op.request.kind == Request::Kind::kRead;
    if (is_read) ++(is_low ? seen_.low_reads : seen_.other_reads);
    if (!is_read && is_low) ++seen_.low_writes;
    pass(op);
  }
  Seen& seen_;
};
class SeenLeaves final : public Leaves {
 public:
  explicit SeenLeaves(Seen& seen) : seen_(seen) {}

  task::Task<Leaf> open(env::Env& env, std::string text) override {
    Leaf leaf = co_await sources_.open(env, std::move(text));
    if (!leaf) co_return leaf;
    co_return std::make_unique<SeenDrive>(std::move(*leaf), seen_);
  }

 private:
  SourceLeaves sources_;
  Seen& seen_;
};

SIM_TEST(Snapshot, WhatABatchWriteCopiesIsBatchToo) {
  Seen seen;
  SeenLeaves leaves(seen);
  const auto drive = co_await must_open(env, kStack, leaves);
  co_await write_value(*drive, 0, 1, 8);
  EXPECT_EQ(co_await told(*drive, {"take"}), "version 1");
  seen = {};
  std::vector<std::byte> data = blocks_of(2, 1);
  const MutableBytes pieces[] = {data};
  const Request batch{
      .kind = Request::Kind::kWrite, .priority = Priority::kLow, .lba = Lba(3), .blocks = 1};
  const Result<void> done = co_await drive->submit(batch, pieces);
  EXPECT_TRUE(done.has_value());
  EXPECT_EQ(seen.low_reads, 2U);  // before and after the block
  EXPECT_EQ(seen.low_writes, 3U);
  EXPECT_EQ(seen.other_reads, 0U);
  co_await drive->close();
}

SIM_TEST(Snapshot, SpaceComesBackToWhatItWas) {
  SourceLeaves leaves;
  const auto drive = co_await must_open(env, kStack, leaves);
  co_await write_value(*drive, 0, 1, 200);
  EXPECT_TRUE((co_await drive->flush()).has_value());
  const uint64_t used = fact(*drive, "chunks_used");
  for (int version = 1; version <= 5; ++version) {
    const std::string number = std::to_string(version);
    EXPECT_EQ(co_await told(*drive, {"take"}), "version " + number);
    EXPECT_EQ(co_await told(*drive, {"clone", number, "c" + number}),
              "clone:c" + number + " of version " + number);
    co_await write_value(*drive, 0, static_cast<uint8_t>(version), 150);
    const auto clone = view_of(*drive, "clone:c" + number);
    co_await write_value(*clone, 100, 77, 50);
    co_await clone->close();
  }
  EXPECT_GT(fact(*drive, "chunks_used"), 4 * used);
  for (const int version : {3, 1, 5, 2, 4}) {
    const std::string number = std::to_string(version);
    EXPECT_NE((co_await told(*drive, {"remove", number})).find("clone stands"), std::string::npos);
    EXPECT_EQ(co_await told(*drive, {"remove", "clone:c" + number}), "removed clone:c" + number);
    EXPECT_EQ(co_await told(*drive, {"remove", number}), "removed version " + number);
  }
  EXPECT_EQ(fact(*drive, "chunks_used"), used);
  EXPECT_EQ(fact(*drive, "chunks_kept_for_versions"), 0u);
  // Nobody sees the chunks but the drive: they are written in place again.
  co_await write_value(*drive, 0, 9, 200);
  EXPECT_EQ(fact(*drive, "chunks_used"), used);
  co_await drive->close();
}

SIM_TEST(Snapshot, ClonesDivergeAndStayThroughReopening) {
  SourceLeaves leaves;
  auto drive = co_await must_open(env, kStack, leaves);
  co_await write_value(*drive, 0, 1, 64);
  EXPECT_EQ(co_await told(*drive, {"take"}), "version 1");
  EXPECT_EQ(co_await told(*drive, {"clone", "1", "a"}), "clone:a of version 1");
  EXPECT_EQ(co_await told(*drive, {"clone", "1", "b"}), "clone:b of version 1");
  const auto a = view_of(*drive, "clone:a");
  const auto b = view_of(*drive, "clone:b");
  EXPECT_EQ(drive->open_view("clone:a").error().code(), Errc::kExists);
  EXPECT_EQ(drive->open_view("clone:c").error().code(), Errc::kNotFound);
  co_await write_value(*a, 5, 2);
  EXPECT_TRUE((co_await b->discard(Lba(0), 64)).has_value());
  co_await write_value(*drive, 5, 3);
  EXPECT_NE((co_await told(*drive, {"remove", "clone:a"})).find("in use"), std::string::npos);
  co_await a->close();
  co_await b->close();
  co_await drive->close();
  drive = nullptr;
  leaves.close();

  drive = co_await must_open(env, kStack, leaves);
  const auto again_a = view_of(*drive, "clone:a");
  const auto again_b = view_of(*drive, "clone:b");
  const auto version = view_of(*drive, "1");
  EXPECT_EQ(co_await read_value(*again_a, 5), 2);
  EXPECT_EQ(co_await read_value(*again_a, 6), 1);
  EXPECT_EQ(co_await read_value(*again_b, 6), 0);
  EXPECT_EQ(co_await read_value(*version, 5), 1);
  EXPECT_EQ(co_await read_value(*drive, 5), 3);
  for (Drive* view : {again_a.get(), again_b.get(), version.get()}) co_await view->close();
  co_await drive->close();
}

SIM_TEST(Snapshot, RollsBack) {
  SourceLeaves leaves;
  const auto drive = co_await must_open(env, kStack, leaves);
  co_await write_value(*drive, 0, 1, 64);
  EXPECT_EQ(co_await told(*drive, {"take"}), "version 1");
  co_await write_value(*drive, 0, 2, 64);
  EXPECT_EQ(co_await told(*drive, {"take"}), "version 2");
  co_await write_value(*drive, 0, 3, 250);
  const auto later = view_of(*drive, "2");
  EXPECT_NE((co_await told(*drive, {"rollback", "1"})).find("in use"), std::string::npos);
  co_await later->close();
  EXPECT_EQ(co_await told(*drive, {"rollback", "1"}), "back at version 1");
  EXPECT_EQ(co_await read_value(*drive, 0), 1);
  EXPECT_EQ(co_await read_value(*drive, 200), 0);
  EXPECT_EQ(co_await told(*drive, {"list"}), "version 1");
  // The version stays what it is when the drive goes on.
  co_await write_value(*drive, 0, 4);
  const auto first = view_of(*drive, "1");
  EXPECT_EQ(co_await read_value(*first, 0), 1);
  co_await first->close();
  co_await drive->close();
}

SIM_TEST(Snapshot, FullDriveLosesNothingAndGoesOnWithoutAVersion) {
  SourceLeaves leaves;
  const auto drive = co_await must_open(env, "snapshot(file:d,size=2M, reserve=10)", leaves);
  const uint64_t blocks = drive->geometry().blocks;
  for (uint64_t block = 0; block < blocks; ++block) co_await write_value(*drive, block, 1);
  EXPECT_EQ(co_await told(*drive, {"take"}), "version 1");
  const std::vector<std::byte> data = blocks_of(2, 1);
  uint64_t written = 0;
  Result<void> done;
  while (done) {
    done = co_await drive->write(Lba(written), data);
    if (done) ++written;
  }
  EXPECT_EQ(done.error().code(), Errc::kNoSpace);
  EXPECT_GT(written, 0u);
  for (uint64_t block = 0; block < blocks; ++block) {
    EXPECT_EQ(co_await read_value(*drive, block), block < written ? 2 : 1);
  }
  EXPECT_EQ(co_await told(*drive, {"remove", "1"}), "removed version 1");
  co_await write_value(*drive, written, 2);
  co_await drive->close();
}

SIM_TEST(Snapshot, SaysWhatItCanBeTold) {
  SourceLeaves leaves;
  const auto drive = co_await must_open(env, kStack, leaves);
  EXPECT_NE((co_await told(*drive, {})).find("take [NAME]"), std::string::npos);
  EXPECT_NE((co_await told(*drive, {"clone", "1"})).find("take [NAME]"), std::string::npos);
  EXPECT_NE((co_await told(*drive, {"remove", "9"})).find("no such version"), std::string::npos);
  EXPECT_NE((co_await told(*drive, {"take", "a b"})).find("letters"), std::string::npos);
  EXPECT_EQ(co_await told(*drive, {"list"}), "no versions: take makes one");
  co_await drive->close();
}

}  // namespace
}  // namespace cairn::drive
