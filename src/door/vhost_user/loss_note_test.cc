// SPDX-License-Identifier: Apache-2.0
#include "door/vhost_user/loss_note.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>

namespace cairn::door::vhost_user {
namespace {

// A drive that tells an incarnation and does nothing.
class Telling final : public drive::Drive {
 public:
  const drive::Geometry& geometry() const override { return geometry_; }
  drive::Incarnation incarnation() const override { return now; }
  drive::Incarnation now{.medium = 3, .opening = 5, .local_opening = 7};

 private:
  void start(drive::DriveOp& op) override { op.complete({}); }
  void cancel(drive::DriveOp&) override {}
  drive::Geometry geometry_;
};

constexpr uint64_t kServer = 11;
constexpr uint64_t kNext = 13;

struct Memory {
  alignas(64) std::array<std::byte, sizeof(LossRecord)> bytes{};
};

bool flush(LossNote& note, const Result<void>& done = {}) {
  return note.flushed(note.mark(), done).has_value();
}

// What the next server finds, whose drive tells that.
bool is_lost_for(Memory memory, const drive::Incarnation& now) {
  Telling drive;
  drive.now = now;
  LossNote note(drive, kNext);
  const bool is_lost = note.attach(memory.bytes);
  EXPECT_EQ(flush(note), !is_lost);
  EXPECT_TRUE(flush(note)) << "a loss is told once";
  LossNote later(drive, kServer);
  EXPECT_FALSE(later.attach(memory.bytes)) << "and to no later server";
  return is_lost;
}

TEST(LossNote, IsOfTheOpeningInWhichTheFirstUnflushedWriteCompleted) {
  Memory memory;
  Telling drive;
  LossNote note(drive, kServer);
  EXPECT_FALSE(note.attach(memory.bytes));
  const drive::Incarnation same = drive.now;
  const drive::Incarnation other{.medium = 3, .opening = 6, .local_opening = 8};
  const drive::Incarnation unknown{.medium = 3, .opening = 5};
  EXPECT_FALSE(is_lost_for(memory, other)) << "nothing was written";
  note.changed();
  EXPECT_FALSE(is_lost_for(memory, same));
  EXPECT_TRUE(is_lost_for(memory, other));
  EXPECT_TRUE(is_lost_for(memory, unknown));
  // The drive below loses something and goes on; what was written before is in question.
  drive.now = other;
  note.changed();
  EXPECT_TRUE(is_lost_for(memory, other));
  EXPECT_TRUE(flush(note));
  note.changed();
  EXPECT_FALSE(is_lost_for(memory, other));
}

TEST(LossNote, AFlushCoversWhatCompletedBeforeItBegan) {
  Memory memory;
  Telling drive;
  LossNote note(drive, kServer);
  EXPECT_FALSE(note.attach(memory.bytes));
  const drive::Incarnation other{.medium = 3, .opening = 6, .local_opening = 8};
  note.changed();
  const LossNote::Mark mark = note.mark();
  note.changed();
  EXPECT_TRUE(note.flushed(mark, {}).has_value());
  EXPECT_TRUE(is_lost_for(memory, other));
  EXPECT_TRUE(flush(note));
  EXPECT_FALSE(is_lost_for(memory, other));
  // One that fails has told the guest.
  note.changed();
  EXPECT_FALSE(flush(note, fail(Errc::kIo, "the disk")));
  EXPECT_FALSE(is_lost_for(memory, other));
}

TEST(LossNote, ALossIsToldToAllWhoseFlushHadBegun) {
  Memory memory;
  Telling drive;
  LossNote note(drive, kServer);
  EXPECT_FALSE(note.attach(memory.bytes));
  note.changed();
  drive.now.local_opening = 8;
  LossNote next(drive, kNext);
  EXPECT_TRUE(next.attach(memory.bytes));
  const LossNote::Mark one = next.mark();
  const LossNote::Mark other = next.mark();
  EXPECT_FALSE(next.flushed(one, {}).has_value());
  EXPECT_FALSE(next.flushed(other, {}).has_value());
  EXPECT_TRUE(flush(next));
}

TEST(LossNote, ALossThatWasNotToldIsThereForTheServerAfterTheNext) {
  Memory memory;
  Telling drive;
  LossNote note(drive, kServer);
  EXPECT_FALSE(note.attach(memory.bytes));
  note.changed();
  drive.now.local_opening = 8;
  LossNote next(drive, kNext);
  EXPECT_TRUE(next.attach(memory.bytes));
  next.changed();
  EXPECT_TRUE(is_lost_for(memory, drive.now)) << "its own drive, but the guest was not told";
}

TEST(LossNote, AServerThatKeptRunningLostNothing) {
  Memory memory;
  Telling drive;
  LossNote note(drive, kServer);
  EXPECT_FALSE(note.attach(memory.bytes));
  note.changed();
  drive.now = {};
  LossNote again(drive, kServer);
  EXPECT_FALSE(again.attach(memory.bytes));
  EXPECT_TRUE(again.has_unflushed());
}

TEST(LossNote, ANewMediumLacksWhatWasFlushedToo) {
  Memory memory;
  Telling drive;
  LossNote note(drive, kServer);
  EXPECT_FALSE(note.attach(memory.bytes));
  note.changed();
  EXPECT_TRUE(flush(note));
  EXPECT_TRUE(is_lost_for(memory, {.medium = 5, .opening = 6, .local_opening = 8}));
  EXPECT_FALSE(is_lost_for(memory, {.medium = 4, .opening = 6, .local_opening = 8}))
      << "a name that may change while the contents stay";
  EXPECT_FALSE(is_lost_for(memory, {.medium = 5, .opening = 6, .local_opening = 7}));
}

TEST(LossNote, AFlushThatNobodyAskedForAndFailedIsToldByTheNext) {
  Memory memory;
  Telling drive;
  LossNote note(drive, kServer);
  EXPECT_FALSE(note.attach(memory.bytes));
  note.changed();
  note.flushed_unasked(note.mark(), fail(Errc::kIo, "the disk"));
  EXPECT_TRUE(is_lost_for(memory, drive.now));
}

TEST(LossNote, RemembersThatTheCacheIsOff) {
  Memory memory;
  Telling drive;
  LossNote note(drive, kServer);
  EXPECT_FALSE(note.attach(memory.bytes));
  note.set_through(true);
  LossNote next(drive, kNext);
  EXPECT_FALSE(next.attach(memory.bytes));
  EXPECT_TRUE(next.is_through());
  next.set_through(false);
  LossNote last(drive, kServer);
  EXPECT_FALSE(last.attach(memory.bytes));
  EXPECT_FALSE(last.is_through());
}

TEST(LossNote, KeepsTheOpeningOfWhatIsUnflushedWhenTheFrontEndComesAgain) {
  Memory memory;
  Telling drive;
  LossNote note(drive, kServer);
  EXPECT_FALSE(note.attach(memory.bytes));
  note.changed();
  drive.now.local_opening = 8;
  LossNote again(drive, kServer);
  EXPECT_FALSE(again.attach(memory.bytes));
  EXPECT_TRUE(is_lost_for(memory, drive.now));
}

TEST(LossNote, WhateverAFrontEndWritesThereHarmsNobody) {
  for (int value = 1; value < 256; ++value) {
    Memory memory;
    memory.bytes.fill(static_cast<std::byte>(value));
    Telling drive;
    is_lost_for(memory, drive.now);
    LossRecord record{.magic = kLossMagic,
                      .server = 1,
                      .medium = 2,
                      .local_opening = 3,
                      .state = static_cast<uint64_t>(value),
                      .reserved = {}};
    store(MutableBytes(memory.bytes), record);
    is_lost_for(memory, drive.now);
  }
}

}  // namespace
}  // namespace cairn::door::vhost_user
