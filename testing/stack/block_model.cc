// SPDX-License-Identifier: Apache-2.0
#include "testing/stack/block_model.h"

#include <algorithm>

namespace cairn::stack {

void BlockModel::forget(Block& block, size_t count) {
  block.history.erase(block.history.begin(), block.history.begin() + static_cast<ptrdiff_t>(count));
  block.current -= std::min(block.current, count);  // certainty may have been lost meanwhile
  block.forgotten += count;
}

void BlockModel::succeeded(size_t block, bool durable) {
  Block& one = blocks_[block];
  one.current = one.history.size() - 1;
  one.is_doubtful = false;
  if (durable) forget(one, one.current);
}

std::vector<uint64_t> BlockModel::flush_begins() const {
  std::vector<uint64_t> begun;
  begun.reserve(blocks_.size());
  for (const Block& block : blocks_) begun.push_back(block.forgotten + block.current);
  return begun;
}

void BlockModel::flush_done(const std::vector<uint64_t>& begun) {
  for (size_t i = 0; i < blocks_.size(); ++i) {
    Block& block = blocks_[i];
    if (begun[i] > block.forgotten) forget(block, begun[i] - block.forgotten);
  }
}

bool BlockModel::read(size_t block, uint64_t value, bool is_settled) {
  Block& one = blocks_[block];
  const auto from = one.history.begin() + static_cast<ptrdiff_t>(one.current);
  if (std::find(from, one.history.end(), value) == one.history.end()) return false;
  if (is_settled && !one.is_doubtful && !is_certain(block)) {
    // It is there as if written last; whether a crash takes it back is open.
    one.history.push_back(value);
    one.current = one.history.size() - 1;
  }
  return true;
}

bool BlockModel::may_have_lost(size_t block, uint64_t value) const {
  return std::ranges::find(blocks_[block].history, value) != blocks_[block].history.end();
}

bool BlockModel::is_certain(size_t block) const {
  const Block& one = blocks_[block];
  return one.current + 1 == one.history.size();
}

void BlockModel::lose_certainty() {
  for (Block& block : blocks_) {
    block.current = 0;
    block.is_doubtful = block.history.size() > 1;
  }
}

void BlockModel::killed() {
  for (Block& block : blocks_) {
    block.current = 0;
    block.is_doubtful = false;
  }
}

bool BlockModel::read_after_crash(size_t block, uint64_t value) {
  Block& one = blocks_[block];
  if (std::ranges::find(one.history, value) == one.history.end()) return false;
  one.history.push_back(value);
  one.current = one.history.size() - 1;
  one.is_doubtful = false;
  forget(one, one.current);
  return true;
}

}  // namespace cairn::stack
