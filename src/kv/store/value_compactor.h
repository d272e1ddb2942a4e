// SPDX-License-Identifier: Apache-2.0
// ValueCompactor: moves what lives at the head of the value log to its tail.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/error.h"
#include "kv/store/core.h"
#include "kv/store/segment_edit.h"
#include "task/sync.h"
#include "task/task.h"

namespace cairn::kv::store {

// Each record names its segment by its key. Those of a window are moved side by side, and the next
// window is read meanwhile. A value in pieces is moved piece by piece.
class ValueCompactor {
 public:
  explicit ValueCompactor(Core& core) : core_(core), movers_(core.options.movers_max) {}
  // Until the store stops.
  task::Task<void> run();
  bool has_work() const { return core_.value_space.is_low(); }
  // One window, now. False: there was nothing.
  task::Task<Result<bool>> step();

 private:
  struct Window {
    uint64_t begin = 0;
    Result<ValueWindow> read;
  };
  struct Found {
    uint64_t position = 0;
    Record record;
  };
  struct Parsed {
    std::vector<Found> records;
    uint64_t end = 0;
  };
  task::Task<Window> read(uint64_t begin);
  Parsed parse(const Window& window, uint64_t units) const;
  task::Task<Result<void>> move_all(const Parsed& parsed);
  task::Task<Result<void>> move_in_turn(const Found& found);
  task::Task<Result<void>> move(const Found& found);
  task::Task<Result<bool>> move_record(LockedSegment& segment, const Found& found,
                                       uint64_t fingerprint, bool is_durable);
  task::Task<Result<bool>> move_piece(LockedSegment& segment, const Found& found,
                                      const PieceOwner& owner, bool is_durable);
  task::Task<Result<uint64_t>> append(RecordHeader header, Bytes key, Bytes value, bool is_durable);

  Core& core_;
  task::Semaphore movers_;
  std::optional<Window> next_;
};

}  // namespace cairn::kv::store
