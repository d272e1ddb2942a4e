// SPDX-License-Identifier: Apache-2.0
// Tags: numbers for what a model works on, and who waits for it.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace cairn::sim {

// A tag is taken before the model is asked and free again when the model is done with it, also when
// nobody waits any more.
template <class Waiter>
class Tags {
 public:
  uint64_t take() {
    if (free_.empty()) {
      waiting_.push_back(nullptr);
      return waiting_.size() - 1;
    }
    const uint64_t tag = free_.back();
    free_.pop_back();
    return tag;
  }
  void wait(uint64_t tag, Waiter& waiter) { waiting_[tag] = &waiter; }
  void forget(uint64_t tag) { waiting_[tag] = nullptr; }
  // The model is done with it. Who waits; null: nobody.
  Waiter* give_back(uint64_t tag) {
    free_.push_back(tag);
    return std::exchange(waiting_[tag], nullptr);
  }

 private:
  std::vector<Waiter*> waiting_;  // by tag
  std::vector<uint64_t> free_;
};

}  // namespace cairn::sim
