// SPDX-License-Identifier: Apache-2.0
// Scheduler: in which order a client's requests go to the drives of boxes (Flint, section 4.5 and
// Algorithm 2). No I/O: the caller passes the time and sends the requests that it returns.
//
// A request's rank is its cost minus the time that it has waited; the lowest goes first. So small
// requests go before large ones, reads before slow writes, and requests for fast drives before
// those for congested ones. Requests of a stream keep their order.
//
// Cost and congestion are times and have a largest value each, so that the rank is a deadline: when
// the request came, plus its cost, plus its drive's congestion. From that follows the bound:
//
//   While a drive accepts requests, none for it goes before another that came kAgingBound earlier.
//
// While a drive accepts none, no request for it is returned, not even a small one: otherwise
// requests that need much room would wait as long as small ones arrive.
//
// In a steady state nothing is allocated.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "share/types.h"

namespace cairn::share {

struct Pending {
  StreamId stream;
  uint64_t tag = 0;  // the owner's
  DriveId drive;
  IoType type = IoType::kRead;
  uint32_t bytes = 0;
};

class Scheduler {
 public:
  static constexpr Duration kCostMax = 10_ms;
  static constexpr Duration kCongestionMax = 10_ms;
  static constexpr Duration kAgingBound = kCostMax + kCongestionMax;
  static constexpr size_t kPendingMax = 65536;
  // A KiB of a read, for a stream with all of a drive.
  static constexpr Duration kCostOfKiB = 1_us;

  // kLimit: kPendingMax wait already. Times do not go back.
  Result<void> enqueue(const Pending& request, Time now);
  // The next one, if there is one whose drive takes it: `takes(request)` is asked at most once for
  // each drive, and has the request's room when it says yes.
  template <class Takes>
  std::optional<Pending> dequeue(Takes takes) {
    order_drives();
    for (const Best& best : best_) {
      if (takes(front_of(*best.drive))) return take(*best.drive);
    }
    return std::nullopt;
  }

  // Removes a waiting request that its owner has cancelled. False: it does not wait.
  bool remove(StreamId stream, uint64_t tag);

  // A stream's part of the drives, in thousandths: its requests cost so much more. From the next
  // one on; 1 to 1000.
  void set_share(StreamId stream, uint32_t permille);
  // What a drive is said to do with writes, for the next requests.
  void set_write_cost(DriveId drive, uint32_t write_cost_x10);
  // How much longer than usual requests wait in the drive, kCongestionMax at most: the ranks of
  // requests that wait here rise by that.
  void set_congestion(DriveId drive, Duration delay);

  size_t size() const { return size_; }

 private:
  struct Entry {
    Pending request;
    int64_t rank = 0;      // without its drive's congestion
    uint64_t arrival = 0;  // of equal ranks the first one goes first
  };
  // First in, first out, in memory that is kept.
  class Queue {
   public:
    bool empty() const { return first_ == entries_.size(); }
    const Entry& front() const { return entries_[first_]; }
    void push(const Entry& entry);
    void pop();
    // False: there is none.
    bool remove(uint64_t tag);

   private:
    std::vector<Entry> entries_;
    size_t first_ = 0;
  };
  struct Stream {
    Queue waiting;
    uint32_t share_permille = 1000;
  };
  struct Head {
    int64_t rank = 0;
    uint64_t arrival = 0;
    StreamId stream;
    friend auto operator<=>(const Head&, const Head&) = default;
  };
  struct Drive {
    std::vector<Head> heads;  // the first requests of streams, the next one last
    uint32_t write_cost_x10 = 10;
    Duration congestion{};
  };
  struct Best {
    int64_t rank = 0;
    uint64_t arrival = 0;
    Drive* drive = nullptr;
  };

  void order_drives();
  const Pending& front_of(const Drive& drive) const;
  Pending take(Drive& drive);
  void put_head(StreamId stream, const Entry& entry);

  std::map<StreamId, Stream> streams_;
  std::map<DriveId, Drive> drives_;
  std::vector<Best> best_;  // kept for its memory
  size_t size_ = 0;
  uint64_t arrivals_ = 0;
};

}  // namespace cairn::share
