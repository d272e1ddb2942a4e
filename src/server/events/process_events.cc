// SPDX-License-Identifier: Apache-2.0
#include "server/events/process_events.h"

#include <algorithm>
#include <utility>

#include "server/events/event_file.h"
#include "world/posix/shell_command.h"

namespace cairn::server {

namespace {

// What is kept is read whole: it may be so long before it is written anew.
constexpr size_t kFileMax = 4 << 20;
constexpr size_t kPageMax = 256;

class ShellRunner final : public CommandRunner {
 public:
  explicit ShellRunner(std::string command) : text_(std::move(command)) {}
  Attempt<void> start(std::string_view input) override {
    const Result<void> started = command_.start(text_, input);
    if (!started) return refuse(started.error().text());
    return {};
  }
  std::optional<int> ended() override { return command_.ended(); }
  void kill() override { command_.kill(); }

 private:
  const std::string text_;
  posix::ShellCommand command_;
};

std::unique_ptr<EventKeeper> keeper_of(const EventOptions& options) {
  if (options.folder.empty()) return nullptr;
  return std::make_unique<EventFile>(options.folder + "/events.jsonl", kFileMax);
}

Event of_process(const std::string& role, const char* code, const char* what) {
  return {.kind = "process", .subject = role, .code = code, .what = what};
}

}  // namespace

ProcessEvents::ProcessEvents(env::Env& env, std::string role, const EventOptions& options,
                             std::function<void(config::LogLevel, std::string_view)> log)
    : keeper_(keeper_of(options)),
      log_(env, {.role = std::move(role), .log = log, .keeper = keeper_.get()}) {
  if (options.command.empty()) return;
  runner_ = std::make_unique<ShellRunner>(options.command);
  hook_.emplace(env, *runner_, std::move(log));
  log_.set_listener(&*hook_);
}

void ProcessEvents::tell_begun() {
  log_.tell(of_process(log_.role(), "started", "it can be used"), /*is_logged=*/false);
}

void ProcessEvents::tell_ending() {
  log_.tell(of_process(log_.role(), "ending", "it was told to end"), /*is_logged=*/false);
  log_.close();
}

task::Task<void> ProcessEvents::close() {
  log_.close();
  log_.set_listener(nullptr);
  if (hook_) co_await hook_->close();
}

Json events_json(const EventLog& log, const EventsWanted& wanted) {
  const EventsFound found = log.find(wanted);
  Json json = {{"schema_version", 1}, {"role", log.role()}, {"log", log.name()},
               {"last", found.last},  {"more", found.more}, {"events", Json::array()}};
  for (const Event& each : found.events) json["events"].push_back(event_json(each));
  return json;
}

task::Task<Attempt<Json>> answer_events(env::Env& env, EventLog& log, ControlRequest request) {
  const EventsWanted wanted{
      .after = request.after,
      .since = {static_cast<int64_t>(request.since_ms) * 1'000'000},
      .count_max = request.count == 0 ? kPageMax : std::min<size_t>(request.count, kPageMax)};
  if (request.wait_ms > 0 && !request.after_log.empty() && request.after_log == log.name()) {
    const Duration wait = Duration{static_cast<int64_t>(request.wait_ms) * 1'000'000};
    co_await log.wait(request.after, env.now() + std::min(wait, kEventsWaitMax));
  }
  // Ids of another log say nothing here.
  EventsWanted meant = wanted;
  if (!request.after_log.empty() && request.after_log != log.name()) meant.after = 0;
  co_return events_json(log, meant);
}

}  // namespace cairn::server
