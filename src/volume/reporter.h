// SPDX-License-Identifier: Apache-2.0
// Reporter: tells the arbiter which legs of a volume lack writes, and lets flushes wait until it
// knows: a later holder would read those legs.
#pragma once

#include <functional>
#include <utility>

#include "base/error.h"
#include "base/units.h"
#include "env/env.h"
#include "task/cancel.h"
#include "task/gate.h"
#include "task/sync.h"
#include "task/task.h"
#include "volume/lease.h"
#include "volume/ordered_link.h"
#include "volume/table.h"

namespace cairn::volume {

// One core.
class Reporter {
 public:
  // What it stands on. All of it outlives it.
  struct Parts {
    env::Env& env;
    OrderedLink& link;
    Lease& lease;
    Table& table;  // knows what was not reported
    task::CancelSource& closing;
    task::Gate& gate;  // of what it does by itself
  };
  // `usable` says why nothing can be told any more.
  Reporter(Parts parts, Duration retry, std::function<Result<void>()> usable)
      : parts_(parts), retry_(retry), usable_(std::move(usable)) {}

  // The table has something to report.
  void start();
  // Until the arbiter knows all of it and believes no more of a leg than is true. Errors of
  // `usable`, or by the token.
  task::Task<Result<void>> known(task::CancelToken token);
  bool is_known() const { return !parts_.table.has_unreported() && !is_settling_; }

  // From here to settled() the arbiter may believe more of a leg than is true.
  void settle() { is_settling_ = true; }
  // False: it may do so until the volume is closed.
  void settled(bool is_so);
  bool is_settling() const { return is_settling_; }

  // Since when a report waits for an arbiter; never(): none does.
  Time waiting_since() const { return waiting_since_; }

 private:
  task::Task<void> report();
  void moved();

  const Parts parts_;
  const Duration retry_;
  const std::function<Result<void>()> usable_;
  bool is_reporting_ = false;
  bool is_settling_ = false;
  Time waiting_since_ = Time::never();
  task::Event moved_;
};

}  // namespace cairn::volume
