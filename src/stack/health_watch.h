// SPDX-License-Identifier: Apache-2.0
// HealthWatch: looks at drives once a second, remembers how well they were, and tells each change.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "drive/health.h"
#include "env/env.h"
#include "task/cancel.h"
#include "task/gate.h"
#include "task/sync.h"
#include "task/task.h"

namespace cairn::drive {

// A drive and how it is now.
struct DriveHealth {
  std::string name;
  std::optional<StackHealth> now;  // none: it cannot be told just now
};

// A job as it has gone on so far.
struct WatchedJob {
  HealthJob job;
  uint64_t percent = 0;
  std::optional<Duration>
      left;  // at the rate of the last looks; none: it does not go on, or is new
};

struct WatchedDrive {
  StackHealth now;
  std::vector<WatchedJob> jobs;  // those of `now`
};

// Runs between start() and close(), on one core. Nothing wakes up while nobody has a drive to look
// at.
class HealthWatch {
 public:
  // Who has drives.
  class Owner {
   public:
    // All there are. A drive that is not among them any more is forgotten without a word.
    virtual task::Task<std::vector<DriveHealth>> look() = 0;

   protected:
    ~Owner() = default;
  };
  // How bad it is, and a line: when, which drive, which layer and leg, what is wrong, what to do.
  using Tell = std::function<void(Health, std::string_view)>;

  HealthWatch(env::Env& env, Owner& owner, Tell tell)
      : env_(env), owner_(owner), tell_(std::move(tell)) {}

  // There is something to look at from now on.
  void start();
  // Looks at once, and tells what changed; done when that is known.
  task::Task<void> look();
  task::Task<void> close();

  // As it was at the last look. Null: not looked at yet.
  const WatchedDrive* find(std::string_view drive) const;

  static constexpr Duration kEvery = 1_s;

 private:
  struct Progress {
    Time since;  // the look that the rate is measured from
    uint64_t done = 0;
    double bytes_per_second = 0;
  };
  struct Known {
    WatchedDrive drive;
    std::map<std::string, Progress> progress;  // by layer and job
  };
  task::Task<void> run();
  void take_in(const std::string& drive, const StackHealth& now);
  void tell_changes(const std::string& drive, const StackHealth& before, const StackHealth& now);
  static WatchedJob follow(const HealthJob& job, Progress& progress, Time now);

  env::Env& env_;
  Owner& owner_;
  Tell tell_;
  std::map<std::string, Known, std::less<>> known_;
  task::Semaphore turn_{1};
  task::CancelSource closing_;
  task::Gate gate_;
  size_t drives_ = 0;  // at the last look
  bool runs_ = false;
};

// "2026-11-16T11:02:03Z".
std::string text(WallTime time);

}  // namespace cairn::drive
