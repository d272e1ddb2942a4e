// SPDX-License-Identifier: Apache-2.0
#include "server/events/event_hook.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "task/deadline.h"

namespace cairn::server {

namespace {

constexpr Duration kLook = 50_ms;  // whether the command has ended
// How long one that was killed may take to go.
constexpr Duration kKilled = 1_s;

}  // namespace

void EventHook::add(std::string_view line) {
  waiting_.emplace_back(line);
  if (waiting_.size() > limits_.lines_max) {
    waiting_.pop_front();
    ++dropped_;
  }
  if (runs_ || closing_.requested()) return;
  runs_ = true;
  gate_.spawn(run());
}

task::Task<void> EventHook::close() {
  closing_.request();
  end_ = env_.now() + limits_.at_end;
  if (!waiting_.empty() && !runs_) {
    runs_ = true;
    gate_.spawn(run());
  }
  co_await gate_.close();
}

std::string EventHook::take_lines() {
  std::string lines;
  for (const std::string& each : waiting_) lines += each + "\n";
  waiting_.clear();
  return lines;
}

task::Task<void> EventHook::run() {
  while (!waiting_.empty() && env_.now() < end_) {
    co_await run_once();
    if (closing_.requested()) continue;
    [[maybe_unused]] const Result<void> slept =
        co_await task::sleep_for(env_, limits_.apart, closing_.token());
  }
  runs_ = false;
}

task::Task<void> EventHook::run_once() {
  const Attempt<void> started = runner_.start(take_lines());
  if (!started) {
    say_of_failure(started.error().text);
    co_return;
  }
  const Time until = env_.now() + limits_.timeout;
  std::optional<int> ended = runner_.ended();
  bool was_killed = false;
  Time gone = Time::never();
  while (!ended && env_.now() < gone) {
    if (!was_killed && env_.now() >= std::min(until, end_)) {
      runner_.kill();
      was_killed = true;
      gone = env_.now() + kKilled;
    }
    // Not by the token of closing: an end in order leaves it a moment.
    [[maybe_unused]] const Result<void> slept = co_await task::sleep_for(env_, kLook);
    ended = runner_.ended();
  }
  if (was_killed) {
    say_of_failure(fmt::format("it did not end within {} s, and was killed",
                               (closing_.requested() ? limits_.at_end : limits_.timeout) / 1_s));
  } else if (ended && *ended != 0) {
    say_of_failure(fmt::format("it ended with status {}", *ended));
  } else {
    has_failed_ = false;
  }
}

// Not an event: that would have the command run again.
void EventHook::say_of_failure(const std::string& what) {
  if (!has_failed_ && log_) {
    log_(config::LogLevel::kWarn,
         fmt::format("the command of --on-event failed: {}: try it by hand with the lines of "
                     "'cairn events --json'",
                     what));
  }
  has_failed_ = true;
}

}  // namespace cairn::server
