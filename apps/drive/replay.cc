// SPDX-License-Identifier: Apache-2.0
// `cairn drive replay`: the requests of a trace on any stack, and how long they took.
#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <utility>

#include "apps/common/command.h"
#include "apps/common/output.h"
#include "base/words.h"
#include "config/json_text.h"
#include "drive/replay.h"
#include "plan/common/trace_file.h"
#include "server/open/open_stack.h"
#include "trace/search.h"
#include "world/machine/world.h"

namespace cairn::apps {

namespace {

constexpr uint64_t kSearchRequests = 100'000;

// Requests of a file, or drawn ones; keeps what was wrong with the file.
class Requests {
 public:
  static Attempt<Requests> open(const std::string& name, const std::string& format) {
    Requests requests;
    if (name == "search") return requests;
    Attempt<plan::TraceFile> file = plan::TraceFile::open(name, {.format = format});
    if (!file) return std::unexpected(file.error());
    requests.file_.emplace(std::move(*file));
    return requests;
  }
  bool is_drawn() const { return !file_; }
  // Before the first next() of drawn requests.
  void draw_from(uint64_t space) { search_.emplace(trace::SearchOptions{.space = space}); }
  std::optional<trace::Record> next() {
    if (search_) return search_->next();
    Attempt<std::optional<trace::Record>> record = file_->next();
    if (record) return *record;
    problem_ = record.error();
    return std::nullopt;
  }
  const std::optional<Problem>& problem() const { return problem_; }

 private:
  std::optional<plan::TraceFile> file_;
  std::optional<trace::Search> search_;
  std::optional<Problem> problem_;
};

task::Task<void> replay_in(env::Env& env, server::StackPlan& plan, Requests& requests,
                           drive::ReplayOptions options, Attempt<drive::ReplayResult>& outcome) {
  Attempt<std::unique_ptr<drive::Drive>> drive = co_await plan.open(env);
  if (!drive) {
    outcome = std::unexpected(drive.error());
    co_return;
  }
  if (requests.is_drawn()) requests.draw_from((*drive)->geometry().bytes());
  drive::ReplaySource source = [&requests] { return requests.next(); };
  Result<drive::ReplayResult> result =
      co_await drive::replay(env, **drive, source, options, env.stop_token());
  if (result) {
    outcome = std::move(*result);
  } else {
    outcome = refuse(result.error().text());
  }
  co_await (*drive)->close();
  drive->reset();
  plan.close();
}

nlohmann::ordered_json latencies(const Histogram& ns) {
  return {{"count", ns.count()},
          {"p50_us", static_cast<double>(ns.p50()) / 1000},
          {"p99_us", static_cast<double>(ns.p99()) / 1000},
          {"p999_us", static_cast<double>(ns.p999()) / 1000},
          {"max_us", static_cast<double>(ns.max()) / 1000}};
}

// The clock of a core stands still while it works: what was done without waiting has no time.
std::string time_text(uint64_t ns) {
  return ns == 0 ? "-" : fmt::format("{:.1f}us", static_cast<double>(ns) / 1000);
}

std::string row(const char* name, const Histogram& ns) {
  if (ns.count() == 0) return "";
  return fmt::format("{:<8}{:>10}  p50 {:>11}  p99 {:>11}  p999 {:>11}  max {:>11}\n", name,
                     ns.count(), time_text(ns.p50()), time_text(ns.p99()), time_text(ns.p999()),
                     time_text(ns.max()));
}

class DriveReplayCommand final : public Command {
 public:
  explicit DriveReplayCommand(CLI::App& app) {
    required(add_value(app, "TRACE",
                       "a file of any format that cairn reads, or search: drawn lookups",
                       [this](const std::string& text) -> Attempt<void> {
                         trace_ = text;
                         return {};
                       }));
    required(add_value(app, "STACK",
                       "what it runs against: mem:size=1G, cache(file:d0, memory=64M), ...",
                       [this](const std::string& text) -> Attempt<void> {
                         stack_ = text;
                         return {};
                       }));
    add_text(app, "--format NAME", format_, "of the trace, when its first lines do not tell");
    add_value(app, "--speed N|max", "times as fast as recorded (1)",
              [this](const std::string& text) { return take_speed(text); });
    add_integer(app, "--depth N", depth_, {1, 65536}, "requests in flight at most (256)");
    add_integer(app, "--requests N", requests_, {1, INT32_MAX},
                "so many of them (all; of search 100000)");
    add_switch(app, "--json", json_, "as JSON");
    add_settings(app, settings_);
    set_examples(app, {"cairn drive replay requests.trace file:/srv/d0",
                       "cairn drive replay search 'cache(file:/srv/d0, memory=64M)' --speed max"});
  }

  Attempt<int> run() override {
    const Attempt<config::Settings> settings = config::resolve(settings_);
    if (!settings) return std::unexpected(settings.error());
    Attempt<Requests> requests = Requests::open(trace_, format_);
    if (!requests) return std::unexpected(requests.error());
    if (requests_ > 0) {
      options_.requests = static_cast<uint64_t>(requests_);
    } else if (requests->is_drawn()) {
      options_.requests = kSearchRequests;
    }
    options_.depth = static_cast<uint32_t>(depth_);
    Attempt<std::unique_ptr<server::StackPlan>> plan = server::StackPlan::prepare(stack_);
    if (!plan) return std::unexpected(plan.error());
    Attempt<std::unique_ptr<env::World>> world =
        machine::make_world(settings->io, config::world_options(*settings));
    if (!world) return std::unexpected(world.error());
    Attempt<drive::ReplayResult> outcome;
    const Result<void> ran = (*world)->run(
        [&](env::Env& env) { return replay_in(env, **plan, *requests, options_, outcome); });
    if (!ran) return refuse(ran.error().text());
    if (!outcome) return std::unexpected(outcome.error());
    if (requests->problem()) return std::unexpected(*requests->problem());
    show(*outcome);
    if (!finish_output()) return kExitFailed;
    return outcome->errors == 0 ? kExitOk : kExitFailed;
  }

 private:
  Attempt<void> take_speed(const std::string& text) {
    if (text == "max") {
      options_.speed = 0;
      return {};
    }
    const auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), options_.speed);
    const bool is_number = error == std::errc{} && end == text.data() + text.size();
    if (is_number && options_.speed >= 0.001 && options_.speed <= 1e6) return {};
    return refuse(fmt::format("{} is no speed: write 0.001 to 1000000, or max", in_quotes(text)));
  }

  void show(const drive::ReplayResult& result) const {
    const double seconds = static_cast<double>(result.took.ns) / 1e9;
    const uint64_t done = result.reads + result.writes;
    const std::string error = result.first_error ? result.first_error->text() : "";
    if (json_) {
      nlohmann::ordered_json json = {{"schema_version", 1}, {"trace", trace_},
                                     {"stack", stack_},     {"seconds", seconds},
                                     {"requests", done},    {"bytes", result.bytes},
                                     {"late", result.late}, {"errors", result.errors}};
      if (!error.empty()) json["first_error"] = error;
      json["read"] = latencies(result.read_ns);
      json["write"] = latencies(result.write_ns);
      return say(config::json_text(json));
    }
    say(row("reads", result.read_ns) + row("writes", result.write_ns));
    const double rate = seconds > 0 ? static_cast<double>(done) / seconds : 0;
    say(fmt::format("{} requests, {} bytes in {:.3f} s: {:.0f} per second\n", done, result.bytes,
                    seconds, rate));
    if (result.late > 0) {
      say(fmt::format("{} began late: {} were in flight (--depth)\n", result.late, depth_));
    }
    if (!error.empty()) say(fmt::format("{} failed; the first: {}\n", result.errors, error));
  }

  std::string trace_;
  std::string stack_;
  std::string format_;
  drive::ReplayOptions options_;
  int depth_ = 256;
  int requests_ = 0;
  bool json_ = false;
  config::SettingsOptions settings_;
};

}  // namespace

std::unique_ptr<Command> make_drive_replay(CLI::App& app) {
  return std::make_unique<DriveReplayCommand>(app);
}

}  // namespace cairn::apps
