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
#include "stack/job_pace.h"
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

// One reason came, became better or worse, or is over.
struct HealthChange {
  std::string drive;
  Health severity = Health::kOk;  // of the news
  Health now = Health::kOk;       // of the whole drive
  bool is_over = false;
  bool is_new = false;  // it was not there before; else it is worse or better than it was
  HealthReason reason;
  // "mirror (layer 0), drive nvme-tcp://... (layer 0.1): leg lost: it is tried again every ...".
  std::string what;
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
  using Tell = std::function<void(const HealthChange&)>;

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
  struct Known {
    WatchedDrive drive;
    std::map<std::string, JobPace> paces;  // by layer and job
  };
  task::Task<void> run();
  void take_in(const std::string& drive, const StackHealth& now);
  void tell_changes(const std::string& drive, const StackHealth& before, const StackHealth& now);

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
