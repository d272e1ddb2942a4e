// SPDX-License-Identifier: Apache-2.0
// A mirror's marks: a region is written on a leg only after a mark that survives a crash.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <utility>

#include "drive/filter_drive.h"
#include "service/raid/mirror_format.h"
#include "task/deadline.h"
#include "testing/stack/redundant.h"

namespace cairn::drive {
namespace {

// A leg that compares each write of data with the marks that no crash can take from it.
class WatchedLeg final : public FilterDrive {
 public:
  WatchedLeg(std::unique_ptr<Drive> below, int& unmarked)
      : FilterDrive(std::move(below)), unmarked_(unmarked) {}

 private:
  void start(DriveOp& op) override {
    if (op.request.kind == Request::Kind::kWrite) look(op.request, op.data()[0]);
    pass(op);
  }

  void look(const Request& request, Bytes data) {
    const uint64_t block = request.lba.value();
    if (block < kMirrorBitmapBlock) {
      const Result<MirrorLabel> label = decode_label(data);
      if (label) label_ = *label;
    } else if (!label_) {
      return;
    } else if (block == kMirrorBitmapBlock) {
      const Result<RegionSet> marks = decode_bitmap(*label_, data);
      ASSERT_TRUE(marks.has_value());
      if (request.durable) marks_ = *marks;
    } else if (block >= label_->data_offset) {
      const uint64_t region = (block - label_->data_offset) / label_->region_blocks;
      if (!marks_ || !marks_->has(region)) ++unmarked_;
    }
  }

  std::optional<MirrorLabel> label_;
  std::optional<RegionSet> marks_;
  int& unmarked_;
};

class WatchedLeaves final : public SourceLeaves {
 public:
  task::Task<Leaf> open(env::Env& env, std::string text) override {
    Leaf leaf = co_await SourceLeaves::open(env, std::move(text));
    if (leaf) leaf = std::make_unique<WatchedLeg>(std::move(*leaf), unmarked);
    co_return leaf;
  }
  int unmarked = 0;  // writes of data to regions without a mark
};

// Marks are taken off in a write that a crash may undo. A region that is written at that moment is
// in the same write, and needs another one that lasts.
SIM_TEST(MirrorMarks, OneThatComesWhileOthersAreTakenOffIsDurableBeforeData) {
  WatchedLeaves leaves;
  std::unique_ptr<Drive> drive =
      co_await must_open(env, "mirror(file:a,size=1M, file:b,size=1M)", leaves);
  CO_ASSERT_TRUE(drive != nullptr);
  co_await until_settled(env, *drive);
  Result<void> slept = co_await task::sleep_for(env, 5_s);  // and nothing is marked
  leaves.unmarked = 0;
  // The sweep comes two seconds after the first write; the second one is tried at each moment of
  // it.
  for (Duration offset; offset < 1500_us; offset = offset + 5_us) {
    const Time began = env.now();
    co_await write_value(*drive, 0, 1);
    slept = co_await task::sleep_until(env, began + 2_s + offset);
    EXPECT_TRUE(slept.has_value());
    co_await write_value(*drive, 200, 2);
    slept = co_await task::sleep_for(env, 5_s);
    EXPECT_TRUE(slept.has_value());
  }
  EXPECT_EQ(leaves.unmarked, 0);
  co_await drive->close();
}

}  // namespace
}  // namespace cairn::drive
