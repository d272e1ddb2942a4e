// SPDX-License-Identifier: Apache-2.0
#include "server/events/event_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include "base/words.h"
#include "server/control/control_client.h"
#include "server/events/process_events.h"
#include "task/deadline.h"
#include "task/gate.h"

namespace cairn::server {

namespace {

// An answer that waits takes so much longer than one that does not.
constexpr Duration kAnswer = 10_s;
// Whoever says that there is more and gives nothing new is not asked for ever.
constexpr int kPagesMax = 10'000;
constexpr Duration kPause = 200_ms;

}  // namespace

EventReader::EventReader(env::Env& env, std::vector<std::string> paths, WallTime since)
    : env_(env), since_(since) {
  for (std::string& path : paths) places_.push_back({.path = std::move(path)});
}

task::Task<Attempt<EventReader::Page>> EventReader::ask(Place& place, Duration wait) {
  ControlRequest request{.command = ControlRequest::Command::kEvents};
  request.after = place.after;
  request.after_log = place.log;
  request.since_ms = static_cast<uint64_t>(std::max<int64_t>(since_.ns, 0)) / 1'000'000;
  request.wait_ms = static_cast<uint32_t>(wait / 1_ms);
  const Attempt<Json> told =
      co_await ask_server(env_, place.path, std::move(request), wait + kAnswer);
  if (!told) co_return std::unexpected(told.error());
  const std::string log = text_at(*told, "log");
  if (log != place.log) place.after = 0;
  place.log = log;
  Page page;
  for (const Json& each : list_at(*told, "events")) {
    std::optional<Event> event =
        decode_event(each.dump(-1, ' ', true, Json::error_handler_t::replace));
    if (!event || event->id <= place.after) {
      co_return refuse(fmt::format(
          "what {} answers makes no sense: look whether it is of this version ('cairn version')",
          in_quotes(place.path)));
    }
    place.after = event->id;
    page.events.push_back(std::move(*event));
  }
  page.more = flag_at(*told, "more") && !page.events.empty();
  co_return page;
}

task::Task<Attempt<std::vector<Event>>> EventReader::read_all() {
  std::vector<Event> all;
  Attempt<void> last = refuse(
      "no process of this user runs here that has events: start one with 'cairn up' or 'cairn "
      "serve', or name a control socket with --control PATH");
  bool has_answer = false;
  for (Place& place : places_) {
    Attempt<Page> page;
    for (int i = 0; i < kPagesMax; ++i) {
      page = co_await ask(place, {});
      if (!page) break;
      place.is_there = true;
      std::ranges::move(page->events, std::back_inserter(all));
      if (!page->more) break;
    }
    if (page) {
      has_answer = true;
    } else {
      last = std::unexpected(page.error());
    }
  }
  // One of several may just have ended.
  if (!has_answer) co_return std::unexpected(last.error());
  std::ranges::sort(all, [](const Event& a, const Event& b) {
    return std::tie(a.time, a.role, a.id) < std::tie(b.time, b.role, b.id);
  });
  co_return all;
}

task::Task<void> EventReader::follow_one(Place& place, const Show& show) {
  while (!env_.stop_token().requested()) {
    const Attempt<Page> page = co_await ask(place, kEventsWaitMax);
    if (!page) break;
    for (const Event& each : page->events) show(each);
    if (!page->events.empty()) continue;
    // One that ends answers at once.
    [[maybe_unused]] const Result<void> slept =
        co_await task::sleep_for(env_, kPause, env_.stop_token());
  }
}

task::Task<void> EventReader::follow(Show show) {
  task::Gate gate;
  for (Place& place : places_) {
    if (place.is_there) gate.spawn(follow_one(place, show));
  }
  co_await gate.close();
}

std::string event_text(const Event& event) {
  std::string text =
      fmt::format("{} {:7} {}: {}\n", time_text(event.time), severity_word(event.severity),
                  escaped(event.role), escaped(event_line(event)));
  if (!event.action.empty()) text += fmt::format("    {}\n", escaped(event.action));
  return text;
}

}  // namespace cairn::server
