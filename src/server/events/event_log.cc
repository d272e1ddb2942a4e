// SPDX-License-Identifier: Apache-2.0
#include "server/events/event_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "server/control/health_json.h"
#include "stack/health_watch.h"
#include "task/deadline.h"
#include "task/either.h"

namespace cairn::server {

namespace {

// What is kept is written anew when it is so many times as long as it needs to be.
constexpr size_t kSlack = 2;
// A higher one in a file was not counted up to, and would leave no room for those to come.
constexpr uint64_t kIdFoundMax = kEventIdMax / 2;

}  // namespace

EventLog::EventLog(env::Env& env, EventLogOptions options)
    : env_(env),
      options_(std::move(options)),
      name_(options_.keeper != nullptr ? "kept" : fmt::format("{}", env.wall_now().ns)),
      turns_(options_.burst),
      turned_(env.now()) {
  if (options_.keeper != nullptr) load();
}

// A line that is no event, or whose id is not higher than those before, is left out; the last one
// may have been torn by a crash.
void EventLog::load() {
  const std::string found = options_.keeper->found();
  kept_bytes_ = found.size();
  size_t bad = 0;
  for (std::string_view rest = found; !rest.empty();) {
    const size_t end = rest.find('\n');
    std::optional<Event> event = decode_event(rest.substr(0, end));
    const bool is_whole = end != std::string_view::npos;
    rest.remove_prefix(is_whole ? end + 1 : rest.size());
    if (is_whole && event && event->id > last_ && event->id <= kIdFoundMax) {
      last_ = event->id;
      const size_t bytes = encode_event(*event).size() + 1;
      events_.push_back({std::move(*event), bytes});
      bytes_ += bytes;
    } else {
      is_torn_ = true;
      bad += is_whole ? 1 : 0;
    }
  }
  trim();
  if (bad == 0) return;
  tell({.severity = drive::Health::kDegraded,
        .kind = "log",
        .subject = "events",
        .code = "events_damaged",
        .what = fmt::format("{} lines of what was kept of events are damaged, and left out", bad)});
}

void EventLog::trim() {
  while (events_.size() > options_.count_max || bytes_ > options_.bytes_max) {
    if (events_.size() <= 1) break;
    bytes_ -= events_.front().bytes;
    events_.pop_front();
  }
}

bool EventLog::has_turn() {
  const Time now = env_.now();
  turns_ =
      std::min<double>(options_.burst, turns_ + (now - turned_).seconds() * options_.per_second);
  turned_ = now;
  if (turns_ < 1) return false;
  turns_ -= 1;
  return true;
}

void EventLog::tell_of_flood() {
  if (flood_ == 0) return;
  const uint64_t flood = std::exchange(flood_, 0);
  add({.severity = drive::Health::kDegraded,
       .kind = "log",
       .subject = "events",
       .code = "events_dropped",
       .what = fmt::format("{} changes came too fast to be told one by one", flood),
       .action = "cairn status"},
      /*is_logged=*/true);
}

void EventLog::tell(Event event, bool is_logged) {
  if (!has_turn()) {
    ++dropped_;
    ++flood_;
    return;
  }
  tell_of_flood();
  add(std::move(event), is_logged);
}

void EventLog::add(Event event, bool is_logged) {
  event.id = last_ + 1;
  event.time = env_.wall_now();
  event.role = options_.role;
  fit(event);
  last_ = event.id;
  const std::string line = encode_event(event);
  if (is_logged && options_.log) {
    options_.log(level_of(event.severity),
                 fmt::format("{} {}", drive::text(event.time), event_line(event)));
  }
  events_.push_back({std::move(event), line.size() + 1});
  bytes_ += line.size() + 1;
  trim();
  if (options_.keeper != nullptr) keep(line);
  if (listener_ != nullptr) listener_->add(line);
  moved_.set();
  moved_.reset();
}

std::string EventLog::lines() const {
  std::string text;
  for (const Kept& each : events_) text += encode_event(each.event) + "\n";
  return text;
}

void EventLog::keep(std::string_view line) {
  Attempt<void> kept;
  if (is_torn_ || kept_bytes_ + line.size() + 1 > kSlack * options_.bytes_max) {
    const std::string all = lines();
    kept = options_.keeper->replace(all);
    is_torn_ = !kept;
    if (kept) kept_bytes_ = all.size();
  } else {
    kept = options_.keeper->append(line);
    // A part of it may be there.
    is_torn_ = !kept;
    if (kept) kept_bytes_ += line.size() + 1;
  }
  if (!kept && !has_warned_ && options_.log) {
    options_.log(
        config::LogLevel::kWarn,
        fmt::format("events are in memory alone until they can be kept: {}", kept.error().text));
  }
  has_warned_ = !kept;
}

EventsFound EventLog::find(const EventsWanted& wanted) const {
  EventsFound found{.last = last_};
  for (const Kept& each : events_) {
    if (each.event.id <= wanted.after || each.event.time < wanted.since) continue;
    if (found.events.size() == wanted.count_max) {
      found.more = true;
      break;
    }
    found.events.push_back(each.event);
  }
  return found;
}

EventsWanted EventLog::newest(size_t count) const {
  if (events_.size() <= count) return {.count_max = count};
  return {.after = events_[events_.size() - count - 1].event.id, .count_max = count};
}

task::Task<void> EventLog::wait(uint64_t after, Time until, task::CancelToken token) {
  task::Either ended(closing_.token(), token);
  task::Deadline deadline(env_, until, ended.token());
  while (last_ <= after) {
    const Result<void> moved = co_await moved_.wait(deadline.token());
    if (!moved) break;
  }
}

}  // namespace cairn::server
