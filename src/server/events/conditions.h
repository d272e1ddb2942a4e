// SPDX-License-Identifier: Apache-2.0
// Conditions: what is not as it should be in a process, now and since when, and an event for each
// change. Whoever looks says all that there is; what is not said any more is over.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "drive/drive.h"
#include "env/env.h"
#include "server/control/control_format.h"
#include "server/events/event_log.h"
#include "stack/job_pace.h"

namespace cairn::server {

// The same one as before when code, kind, subject and place are the same.
struct Condition {
  drive::Health health = drive::Health::kDegraded;  // kOk: worth knowing, and nothing is wrong
  std::string code;                                 // "replicas_missing"
  std::string kind;                                 // of the subject: "drive", "volume", "process"
  std::string subject;                              // by name
  std::string place;                                // where in a stack: "0.1"; empty: nowhere
  std::string what;
  std::string action;                 // the command that says more, or helps
  std::optional<uint64_t> left;       // of what is mended, in units of any kind
  std::optional<uint64_t> percent;    // done, where whoever mends knows it
  std::optional<Duration> time_left;  // the same
  bool is_told = false;               // somebody else makes an event of it
};

struct KnownCondition {
  Condition now;
  Time since;
};

// On one core.
class Conditions {
 public:
  // `log` outlives it; null: nobody is told. A whole that has a name is well or not, too, and that
  // is an event of its own.
  Conditions(env::Env& env, EventLog* log, std::string kind = "", std::string whole = "")
      : env_(env), log_(log), kind_(std::move(kind)), whole_(std::move(whole)) {}

  // The worst first, and otherwise in the order in which they were said; with percent and time left
  // where `left` is known.
  const std::vector<KnownCondition>& take_in(std::vector<Condition> all);
  const std::vector<KnownCondition>& now() const { return now_; }
  // Of the worst; kOk: there is none.
  drive::Health worst() const {
    return now_.empty() ? drive::Health::kOk : now_.front().now.health;
  }
  // Without a word: nobody looks any more.
  void forget();

 private:
  struct Known {
    Condition last;
    Time since;
    uint64_t most = 0;  // that was left
    drive::JobPace pace;
    bool is_there = true;
  };
  void follow(Known& known, Condition& now) const;
  void tell(const Condition& about, Event::State state) const;
  void tell_of_whole(drive::Health before) const;
  drive::Health health_of(const Condition& about) const;

  env::Env& env_;
  EventLog* const log_;
  const std::string kind_;
  const std::string whole_;
  std::map<std::string, Known> known_;
  std::vector<KnownCondition> now_;
};

// "health", "code", "kind", "subject", "what", "since" (RFC 3339), "since_s", "percent", "left_s"
// and "action".
Json condition_json(env::Env& env, const KnownCondition& condition);

}  // namespace cairn::server
