// SPDX-License-Identifier: Apache-2.0
// EventReader: the events of processes that run, asked for at their control sockets.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/problem.h"
#include "base/units.h"
#include "env/env.h"
#include "server/events/event_format.h"
#include "task/cancel.h"
#include "task/task.h"

namespace cairn::server {

// On one core.
class EventReader {
 public:
  using Show = std::function<void(const Event&)>;
  // Of the processes at these sockets, those not older than `since`.
  EventReader(env::Env& env, std::vector<std::string> paths, WallTime since);

  // What there is, of all of them in the order of time. Sockets nobody listens at any more are
  // passed over. The Problem: nobody listens at any, or somebody does not answer as he should.
  task::Task<Attempt<std::vector<Event>>> read_all();
  // Then each new one as it comes, until the world is asked to end or nobody is left to be asked.
  task::Task<void> follow(Show show);

 private:
  struct Place {
    std::string path;
    std::string log;  // that `after` is of
    uint64_t after = 0;
    bool is_there = false;
  };
  // One answer; more: there are others. `wait`: for how long.
  struct Page {
    std::vector<Event> events;
    bool more = false;
  };
  task::Task<Attempt<Page>> ask(Place& place, Duration wait);
  task::Task<void> follow_one(Place& place, const Show& show);

  env::Env& env_;
  const WallTime since_;
  std::vector<Place> places_;
};

// For people: a line, and the command that helps on another. What others wrote is escaped.
std::string event_text(const Event& event);

}  // namespace cairn::server
