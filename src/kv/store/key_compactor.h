// SPDX-License-Identifier: Apache-2.0
// KeyCompactor: moves what lives at the head of the key log to its tail.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/error.h"
#include "kv/store/core.h"
#include "kv/store/segment_edit.h"
#include "task/task.h"

namespace cairn::kv::store {

// Works while the log is low, and once through all of it when expired keys may hold space that a
// change wants. The next window is read while this one is moved.
class KeyCompactor {
 public:
  explicit KeyCompactor(Core& core) : core_(core) {}
  // Until the store stops.
  task::Task<void> run();
  // Whether the log is low, or expired keys are to be looked for.
  bool has_work();
  // One window, now. False: there was nothing.
  task::Task<Result<bool>> step();

 private:
  struct Window {
    uint64_t begin = 0;
    drive::Scratch memory;
    std::optional<Error> failed;
  };
  struct Found {
    uint32_t segment = 0;
    SegmentTable::Chain chain;
  };
  struct Parsed {
    std::vector<Found> live;
    uint64_t buckets = 0;  // of those
    uint64_t end = 0;
  };
  task::Task<Window> read(uint64_t begin);
  Parsed parse(const Window& window);
  uint64_t give_up_bucket(uint64_t position);
  task::Task<Result<void>> move(const Window& window, const Parsed& parsed);
  task::Task<Result<void>> move_one(Found found);
  bool still_there(const Found& found) const {
    return core_.table.at(found.segment) == found.chain;
  }

  Core& core_;
  std::optional<Window> next_;
  uint64_t purge_until_ = 0;
  Time purge_again_{};  // not before
};

}  // namespace cairn::kv::store
