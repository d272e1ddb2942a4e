// SPDX-License-Identifier: Apache-2.0
// EventHook: a command of the user's that is run when something changed, with the events as lines
// at its standard input. One runs at a time; those that come meanwhile are given to the next one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/problem.h"
#include "base/units.h"
#include "config/settings.h"
#include "env/env.h"
#include "server/events/event_log.h"
#include "task/cancel.h"
#include "task/gate.h"
#include "task/task.h"

namespace cairn::server {

// Runs the command. None of its calls waits.
class CommandRunner {
 public:
  virtual ~CommandRunner() = default;
  // With `input` to read. None runs at that time.
  virtual Attempt<void> start(std::string_view input) = 0;
  // How the one that was started ended: its exit status, 128 and more by a signal. None: it runs.
  virtual std::optional<int> ended() = 0;
  // It and what it started end now. ended() says when that is so.
  virtual void kill() = 0;
};

struct HookLimits {
  Duration apart = 1_s;     // between an end and the next start
  Duration timeout = 30_s;  // then it is killed
  Duration at_end = 2_s;    // for the last ones when the process ends
  size_t lines_max = 256;   // that wait; the oldest go
};

// On one core. Nothing of it holds anybody up: a command that hangs delays the next command alone.
class EventHook final : public EventListener {
 public:
  // They outlive it.
  EventHook(env::Env& env, CommandRunner& runner,
            std::function<void(config::LogLevel, std::string_view)> log,
            const HookLimits& limits = {})
      : env_(env), runner_(runner), log_(std::move(log)), limits_(limits) {}

  void add(std::string_view line) override;
  // Whoever still waits is given to a last command, which gets `at_end` and is killed then.
  task::Task<void> close();

  uint64_t dropped() const { return dropped_; }

 private:
  task::Task<void> run();
  task::Task<void> run_once();
  void say_of_failure(const std::string& what);
  std::string take_lines();

  env::Env& env_;
  CommandRunner& runner_;
  const std::function<void(config::LogLevel, std::string_view)> log_;
  const HookLimits limits_;
  std::deque<std::string> waiting_;
  uint64_t dropped_ = 0;
  bool runs_ = false;
  bool has_failed_ = false;
  Time end_ = Time::never();  // when nothing may run any more
  task::CancelSource closing_;
  task::Gate gate_;
};

}  // namespace cairn::server
