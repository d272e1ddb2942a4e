// SPDX-License-Identifier: Apache-2.0
#include "stack/scribbler.h"

#include "task/deadline.h"

namespace cairn::stack {

namespace {

constexpr size_t kWordsPerBlock = 16;  // overwritten at a time

class ScribbledLeaf final : public drive::FilterDrive {
 public:
  ScribbledLeaf(Scribbler& scribbler, std::unique_ptr<drive::Drive> below)
      : FilterDrive(std::move(below)), scribbler_(scribbler) {}

 private:
  void start(drive::DriveOp& op) override {
    scribbler_.leaf_begins(op);
    pass(op);
  }
  void passed(const drive::Request&) override { scribbler_.scribble(); }

  Scribbler& scribbler_;
};

}  // namespace

void Scribbler::scribble() {
  for (const Lent& lent : lent_) {
    for (size_t at = 0; at < lent.memory.size(); at += block_size_) {
      const uint64_t block = lent.first + at / block_size_;
      for (size_t i = 0; i < kWordsPerBlock; ++i) {
        const size_t word = rng_.below(block_size_ / sizeof(uint64_t)) * sizeof(uint64_t);
        store(lent.memory.subspan(at + word), lent.is_read ? kPoison : word_of(block, time_));
      }
    }
    ++time_;
  }
}

task::Task<void> Scribbler::keep_scribbling(env::Env& env, const bool& is_over) {
  while (!is_over) {
    scribble();
    const Result<void> slept = co_await task::sleep_for(env, 10_us);
    if (!slept) co_return;
  }
}

void Scribbler::leaf_begins(const drive::DriveOp& op) {
  for (const Lent& lent : lent_) {
    for (const MutableBytes piece : op.data()) {
      const bool is_inside = piece.data() >= lent.memory.data() &&
                             piece.data() < lent.memory.data() + lent.memory.size();
      has_leaf_read_into_it_ |= is_inside && lent.is_read;
    }
  }
  scribble();
}

task::Task<drive::Leaves::Leaf> ScribbledLeaves::open(env::Env& env, std::string text) {
  Leaf leaf = co_await inner_.open(env, std::move(text));
  if (!leaf) co_return leaf;
  const drive::Drive* inside = leaf->get();
  auto drive = std::make_unique<ScribbledLeaf>(scribbler_, std::move(*leaf));
  wrapped_[drive.get()] = inside;
  co_return std::move(drive);
}

void ScribbledLeaves::gone(const drive::Drive* drive) {
  const auto found = wrapped_.find(drive);
  if (found == wrapped_.end()) return inner_.gone(drive);
  inner_.gone(found->second);
  wrapped_.erase(found);
}

}  // namespace cairn::stack
