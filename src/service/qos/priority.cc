// SPDX-License-Identifier: Apache-2.0
#include "service/qos/priority.h"

#include <algorithm>
#include <utility>

#include "drive/filter_drive.h"

namespace cairn::drive {

namespace {

struct Shares {
  uint64_t depth = 0;
  uint64_t batch_depth = 0;
  uint64_t floor = 0;  // percent
  Duration quiet;
};

class PriorityDrive final : public FilterDrive {
 public:
  PriorityDrive(env::Env& env, std::unique_ptr<Drive> below, const Shares& shares)
      : FilterDrive(std::move(below)), env_(env), shares_(shares), wake_(*this) {}

 private:
  static bool is_batch(const Request& request) { return request.priority == Priority::kLow; }
  static uint64_t cost(const Request& request) { return std::max<uint64_t>(request.blocks, 1); }

  void start(DriveOp& op) override {
    if (is_batch(op.request)) {
      batch_.push_back(op);
    } else {
      usual_ += others() - usual_ / kMemory;
      interactive_.push_back(op);
    }
    serve();
  }
  void passed(const Request& request) override {
    --in_flight_;
    if (is_batch(request)) {
      --batch_in_flight_;
    } else {
      quiet_from_ = env_.now() + shares_.quiet;
    }
    serve();
  }
  void left() override { serve(); }

  // Interactive requests below.
  uint64_t others() const { return in_flight_ - batch_in_flight_; }

  // What batch must have been kept from to take a request of this size out of turn.
  uint64_t price(const Request& request) const { return (100 - shares_.floor) * cost(request); }

  // Batch waits for a trough, in which no more of the others are below than usual; but what it is
  // owed not longer than others must have been away to make a drive quiet.
  bool batch_goes_next() {
    DriveOp* first = batch_.front();
    if (first == nullptr) return false;
    const bool is_trough = others() * kMemory <= usual_;
    if (shares_.floor > 0 && owed_ >= price(first->request)) {
      const bool is_due = env_.now() >= owed_since_ + shares_.quiet;
      if (is_due || (is_trough && batch_in_flight_ <= shares_.batch_depth)) return true;
    }
    if (!interactive_.empty()) return false;
    if (others() == 0 && env_.now() >= quiet_from_) return true;
    return is_trough && batch_in_flight_ < shares_.batch_depth;
  }

  // A drive that completes at once calls back in here from pass(): the loop goes on for it.
  void serve() {
    if (std::exchange(is_serving_, true)) return;
    while (in_flight_ < shares_.depth) {
      const bool batch = batch_goes_next();
      DriveOp* next = batch ? batch_.pop_front() : interactive_.pop_front();
      if (next == nullptr) break;
      if (batch) {
        owed_ -= std::min(owed_, price(next->request));
        ++batch_in_flight_;
      } else if (DriveOp* waiting = batch_.front(); waiting != nullptr) {
        const bool was_owed = owed_ >= price(waiting->request);
        owed_ += shares_.floor * cost(next->request);
        if (!was_owed) owed_since_ = env_.now();
      }
      ++in_flight_;
      pass(*next);
    }
    if (batch_.empty()) {
      owed_ = 0;
    } else if (others() == 0 && env_.now() < quiet_from_ && !wake_.is_armed()) {
      env_.arm(wake_, quiet_from_);
    }
    is_serving_ = false;
  }

  // When the drive has been quiet for long enough.
  struct Wake : task::Timer {
    explicit Wake(PriorityDrive& owner) : Timer(&Wake::fired), drive(owner) {}
    static void fired(task::Timer& timer) { static_cast<Wake&>(timer).drive.serve(); }
    PriorityDrive& drive;
  };

  // So many interactive requests decide what is usual.
  static constexpr uint64_t kMemory = 1024;

  env::Env& env_;
  const Shares shares_;
  Wake wake_;
  List<DriveOp, DriveOp> interactive_;
  List<DriveOp, DriveOp> batch_;
  uint64_t in_flight_ = 0;
  uint64_t batch_in_flight_ = 0;
  uint64_t usual_ = 0;  // kMemory times the others that each of them found below, in the mean
  uint64_t owed_ = 0;   // to batch: percent times blocks
  Time owed_since_;     // when it became enough for the next of them
  Time quiet_from_;
  bool is_serving_ = false;
};

task::Task<Result<std::unique_ptr<Drive>>> open_priority(ServiceParts parts) {
  const Shares shares{
      .depth = parts.options.number("depth"),
      .batch_depth = parts.options.number("batch_depth"),
      .floor = parts.options.number("floor"),
      .quiet = Duration{static_cast<int64_t>(parts.options.number("quiet_ms")) * 1'000'000}};
  co_return std::make_unique<PriorityDrive>(parts.env, std::move(parts.below[0]), shares);
}

constexpr ServiceOption kOptions[] = {
    {.key = "depth",
     .default_value = "1024",
     .what = "requests below at once",
     .min = 1,
     .max = 65536},
    {.key = "batch_depth",
     .default_value = "2",
     .what = "of which batch, while others come; 0: its floor, no more",
     .max = 65536},
    {.key = "floor", .default_value = "10", .what = "percent that batch always gets", .max = 90},
    {.key = "quiet_ms",
     .default_value = "10",
     .what = "milliseconds without others until batch may fill the drive",
     .max = 60'000},
};

}  // namespace

constexpr Service kPriority{.name = "priority",
                            .what = "interactive requests before batch ones",
                            .example = "priority({}, floor=10)",
                            .is_filter = true,
                            .options = kOptions,
                            .open = open_priority};

}  // namespace cairn::drive
