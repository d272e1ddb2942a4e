// SPDX-License-Identifier: Apache-2.0
#include "server/events/events_door.h"

#include <utility>

namespace cairn::server {

EventsDoor::EventsDoor(env::Env& env, const std::string& role, EventsDoorOptions options,
                       const std::function<void(config::LogLevel, std::string_view)>& log)
    : env_(env),
      options_(std::move(options)),
      log_(log),
      control_(env, [this](ControlRequest request) { return answer(std::move(request)); }) {
  if (options_.shared == nullptr) own_.emplace(env, role, options_.own, log);
}

task::Task<Attempt<void>> EventsDoor::listen() {
  if (!options_.control_path) co_return Attempt<void>();
  const Attempt<std::string> path = options_.control_path();
  if (!path) {
    // It can do its work all the same.
    if (log_) log_(config::LogLevel::kWarn, "nobody can ask for events: " + path.error().text);
    co_return Attempt<void>();
  }
  const Attempt<void> listening = co_await listen_at(env_, control_, *path);
  if (listening && options_.control_ready) options_.control_ready(*path);
  co_return listening;
}

void EventsDoor::tell_begun() {
  if (own_) own_->tell_begun();
}

void EventsDoor::tell_ending() {
  if (own_) own_->tell_ending();
}

task::Task<void> EventsDoor::close() {
  if (own_) own_->log().close();  // whoever waits for an event is answered
  co_await control_.close();
  if (own_) co_await own_->close();
}

task::Task<Attempt<Json>> EventsDoor::answer(ControlRequest request) {
  if (request.command != ControlRequest::Command::kEvents) {
    co_return refuse("this process is asked for events alone: a server, 'cairn serve', does more");
  }
  Attempt<Json> told = co_await answer_events(env_, log(), std::move(request));
  co_return told;
}

}  // namespace cairn::server
