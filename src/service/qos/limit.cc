// SPDX-License-Identifier: Apache-2.0
#include "service/qos/limit.h"

#include <algorithm>
#include <utility>

#include "drive/filter_drive.h"
#include "service/common/token_bucket.h"
#include "task/timer.h"

namespace cairn::drive {

namespace {

struct Rates {
  uint64_t iops = 0;
  uint64_t bytes = 0;
  uint64_t burst_ms = 0;
};

uint64_t burst_of(uint64_t rate, uint64_t burst_ms) {
  return std::max<uint64_t>(rate / 1000 * burst_ms + rate % 1000 * burst_ms / 1000, 1);
}

class Limit final : public FilterDrive {
 public:
  Limit(env::Env& env, std::unique_ptr<Drive> below, const Rates& rates)
      : FilterDrive(std::move(below)),
        env_(env),
        requests_(rates.iops, burst_of(rates.iops, rates.burst_ms), env.now()),
        bytes_(rates.bytes, burst_of(rates.bytes, rates.burst_ms), env.now()),
        timer_(&Limit::on_time) {
    timer_.limit = this;
  }

 private:
  struct LimitTimer : task::Timer {
    using Timer::Timer;
    Limit* limit = nullptr;
  };

  void start(DriveOp& op) override {
    waiting_.push_back(op);
    serve();
  }
  void left() override { serve(); }
  static void on_time(task::Timer& timer) { static_cast<LimitTimer&>(timer).limit->serve(); }

  uint64_t cost(const Request& request) const {
    const bool moves_data =
        request.kind != Request::Kind::kDiscard && request.kind != Request::Kind::kWriteZeroes;
    return moves_data ? request.blocks * geometry().block_size : 0;
  }

  // Lets go, oldest first, what may; comes back when the next one may.
  void serve() {
    const Time now = env_.now();
    env_.disarm(timer_);
    while (DriveOp* first = waiting_.front()) {
      const uint64_t bytes = cost(first->request);
      const Time when = std::max(requests_.when(1, now), bytes_.when(bytes, now));
      if (when > now) return env_.arm(timer_, when);
      requests_.take(1, now);
      bytes_.take(bytes, now);
      waiting_.pop_front();
      pass(*first);
    }
  }

  env::Env& env_;
  TokenBucket requests_;
  TokenBucket bytes_;
  List<DriveOp, DriveOp> waiting_;
  LimitTimer timer_;
};

task::Task<Result<std::unique_ptr<Drive>>> open_limit(ServiceParts parts) {
  const Rates rates{.iops = parts.options.number("iops"),
                    .bytes = parts.options.number("bytes"),
                    .burst_ms = parts.options.number("burst_ms")};
  if (rates.iops == 0 && rates.bytes == 0) {
    co_return fail(Errc::kInvalid, "it limits nothing: give it iops, bytes or both");
  }
  co_return std::make_unique<Limit>(parts.env, std::move(parts.below[0]), rates);
}

constexpr uint64_t kRateMax = uint64_t{1} << 50;
constexpr ServiceOption kOptions[] = {
    {.key = "iops", .default_value = "0", .what = "requests per second; 0: any", .max = kRateMax},
    {.key = "bytes",
     .kind = ServiceOption::Kind::kSize,
     .default_value = "0",
     .what = "bytes per second; 0: any",
     .max = kRateMax},
    {.key = "burst_ms",
     .default_value = "100",
     .what = "after a pause, so many milliseconds' worth passes at once",
     .max = 60'000},
};

}  // namespace

constexpr Service kLimit{.name = "limit",
                         .what = "at most so many requests and bytes per second",
                         .example = "limit({}, iops=5000, bytes=200M)",
                         .is_filter = true,
                         .options = kOptions,
                         .open = open_limit};

}  // namespace cairn::drive
