// SPDX-License-Identifier: Apache-2.0
// DataShare: how much of its core's buffers the commands of one connection may have at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "fabric/target/options.h"
#include "task/cancel.h"
#include "task/sync.h"
#include "task/task.h"

namespace cairn::fabric {

// Every byte counts. Data of up to kTinyDataMax is bounded by the entries of the queue and waits
// for nothing; small and large data have a share each, so that neither waits for the other. A host
// that has proven nothing has the data of one command at a time.
class DataShare {
 public:
  // What a command has of it.
  struct Part {
    uint32_t units : 31 = 0;  // 0: nothing
    uint32_t is_large : 1 = 0;
  };

  bool is_proven() const { return is_proven_; }
  void set_proven(bool is_proven) { is_proven_ = is_proven; }

  // False: it has to wait its turn, with take(). The part is empty before.
  bool try_take(size_t bytes, Part& part) {
    CHECK(part.units == 0, "a command takes its share once");
    const Part wanted = part_of(bytes);
    if (wanted.units > 0 && !line_of(wanted).try_acquire(wanted.units)) return false;
    part = wanted;
    return true;
  }
  task::Task<Result<void>> take(size_t bytes, Part& part, task::CancelToken token) {
    const Part wanted = part_of(bytes);
    Result<void> turn;
    if (wanted.units > 0) turn = co_await line_of(wanted).acquire(wanted.units, token);
    if (turn) part = wanted;
    co_return turn;
  }
  // For two commands that belong together: both parts or none. kLimit: a host that has proven
  // nothing has no two.
  task::Task<Result<void>> take_pair(std::array<size_t, 2> bytes, Part& first, Part& second,
                                     task::CancelToken token) {
    if (!is_proven_) co_return fail(Errc::kLimit, "two commands of a host that has proven nothing");
    const Part one = part_of(bytes[0]);
    const Part other = part_of(bytes[1]);
    const uint32_t large = units_of(one, true) + units_of(other, true);
    const uint32_t small = units_of(one, false) + units_of(other, false);
    // In this order, always: no two pairs wait for each other. And small data waits for no large.
    Result<void> turn;
    if (large > 0) turn = co_await large_.acquire(large, token);
    if (!turn) co_return turn;
    if (small > 0) turn = co_await small_.acquire(small, token);
    if (!turn) {
      if (large > 0) large_.release(large);
      co_return turn;
    }
    first = one;
    second = other;
    co_return turn;
  }
  void give_back(Part& part) {
    const Part had = std::exchange(part, Part());
    if (had.units > 0) line_of(had).release(had.units);
  }

 private:
  Part part_of(size_t bytes) const {
    if (!is_proven_) return {.units = kSmallShare};
    if (bytes <= kTinyDataMax) return {};
    return {.units = static_cast<uint32_t>(bytes), .is_large = bytes > kSmallDataMax ? 1u : 0u};
  }
  static uint32_t units_of(const Part& part, bool of_large) {
    return (part.is_large != 0) == of_large ? part.units : 0;
  }
  task::Semaphore& line_of(const Part& part) { return part.is_large ? large_ : small_; }

  bool is_proven_ = false;
  task::Semaphore small_{kSmallShare};
  task::Semaphore large_{kLargeShare};
};

}  // namespace cairn::fabric
