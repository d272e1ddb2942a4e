// SPDX-License-Identifier: Apache-2.0
// EventLog: the events of a process. Each is told at one place, tell(), and from there goes to the
// log that people read, to whoever asks, to what is kept over restarts, and to a command: so none
// of them is forgotten.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>

#include "base/problem.h"
#include "base/units.h"
#include "config/settings.h"
#include "env/env.h"
#include "server/events/event_format.h"
#include "task/cancel.h"
#include "task/sync.h"
#include "task/task.h"

namespace cairn::server {

// Where events are kept over restarts. Lines are whole, and without their ends.
class EventKeeper {
 public:
  virtual ~EventKeeper() = default;
  // Whatever there was before, which may be damaged or written by somebody else.
  virtual std::string found() = 0;
  virtual Attempt<void> append(std::string_view line) = 0;
  // All of it becomes these lines, or nothing changes.
  virtual Attempt<void> replace(std::string_view lines) = 0;
};

// Who is told of each event, too.
class EventListener {
 public:
  virtual ~EventListener() = default;
  virtual void add(std::string_view line) = 0;
};

struct EventLogOptions {
  std::string role;  // of the process
  std::function<void(config::LogLevel, std::string_view)> log;
  EventKeeper* keeper = nullptr;  // none: in memory alone. Outlives the log
  size_t count_max = 4096;        // events; the oldest go
  size_t bytes_max = 1 << 20;     // of them as lines
  // A flood: so many at once, and then so many a second. What is more is counted, and not told.
  uint32_t burst = 200;
  uint32_t per_second = 20;
};

// What to look for.
struct EventsWanted {
  uint64_t after = 0;  // those with higher ids
  WallTime since;      // and not older than this
  size_t count_max = 256;
};

struct EventsFound {
  std::deque<Event> events;  // the oldest first
  uint64_t last = 0;         // id of the newest that the log has
  bool more = false;         // there are more of them after these
};

// On one core.
class EventLog {
 public:
  EventLog(env::Env& env, EventLogOptions options);

  // Its id, its time and its role are given here. `is_logged`: people are told as well.
  void tell(Event event, bool is_logged = true);
  // Told of each from now on; null: nobody. Outlives what comes.
  void set_listener(EventListener* listener) { listener_ = listener; }

  EventsFound find(const EventsWanted& wanted) const;
  // What finds the newest so many.
  EventsWanted newest(size_t count) const;
  // Done when there is an event with a higher id than this, at `until`, when the token is requested
  // or the log is closed.
  task::Task<void> wait(uint64_t after, Time until, task::CancelToken token = {});
  // Ends waiting. What is told afterwards is kept all the same.
  void close() { closing_.request(); }

  // Which log this is: ids of another one say nothing here. The same after a restart when it is
  // kept.
  const std::string& name() const { return name_; }
  const std::string& role() const { return options_.role; }
  uint64_t dropped() const { return dropped_; }  // of a flood

 private:
  struct Kept {
    Event event;
    size_t bytes = 0;  // of its line, with the end
  };
  void load();
  bool has_turn();
  void tell_of_flood();
  void add(Event event, bool is_logged);
  void keep(std::string_view line);
  std::string lines() const;
  void trim();

  env::Env& env_;
  const EventLogOptions options_;
  EventListener* listener_ = nullptr;
  std::string name_;
  std::deque<Kept> events_;
  size_t bytes_ = 0;       // of these
  size_t kept_bytes_ = 0;  // that the keeper has
  bool is_torn_ = false;   // what the keeper has is to be replaced
  bool has_warned_ = false;
  uint64_t last_ = 0;
  double turns_ = 0;
  Time turned_;
  uint64_t dropped_ = 0;
  uint64_t flood_ = 0;  // dropped since the last that was told
  task::Event moved_;
  task::CancelSource closing_;
};

}  // namespace cairn::server
