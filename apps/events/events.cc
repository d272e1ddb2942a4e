// SPDX-License-Identifier: Apache-2.0
// `cairn events`: what changed in processes of this user that run.
#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/common/control.h"
#include "apps/common/errand.h"
#include "apps/common/output.h"
#include "apps/events/commands.h"
#include "apps/up/client.h"
#include "base/duration.h"
#include "base/words.h"
#include "server/control/control_path.h"
#include "server/events/event_client.h"

namespace cairn::apps {

namespace {

using server::Event;

class EventsCommand final : public Command {
 public:
  explicit EventsCommand(CLI::App& app) {
    add_text(app, "--control PATH", control_,
             "of the process at this control socket alone (all of this user)");
    add_text(app, "--data DIR", data_, "of the 'cairn up' with this data folder alone");
    add_value(app, "--since TIME", "not older than this: 10m, 2h, or 2026-11-19T20:00:00Z (all)",
              [this](const std::string& text) { return take_since(text); });
    add_switch(app, "--follow", follow_, "go on with new ones as they come");
    add_switch(app, "--json", json_, "each as a line of JSON, for programs");
    set_examples(app, {"cairn events", "cairn events --since 10m --follow",
                       "cairn events --json --control /run/user/1000/cairn/server-77.sock"});
  }

  Attempt<int> run() override {
    const Attempt<std::vector<std::string>> paths = places();
    if (!paths) return std::unexpected(paths.error());
    return run_errand<int>([&](env::Env& env) { return show_all(env, *paths); });
  }

 private:
  Attempt<void> take_since(const std::string& text) {
    if (const std::optional<WallTime> time = server::parse_time(text)) {
      since_ = *time;
      return {};
    }
    const Attempt<Duration> ago = parse_duration(text);
    if (!ago) {
      return refuse(
          fmt::format("{} is no time: write 10m, 2h or 2026-11-19T20:00:00Z", in_quotes(text)));
    }
    ago_ = *ago;
    return {};
  }

  Attempt<std::vector<std::string>> places() const {
    if (!control_.empty()) return std::vector<std::string>{control_};
    if (data_.empty()) return server::all_control_paths();
    const Attempt<server::UpRunning> running = running_up(data_);
    if (!running) return std::unexpected(running.error());
    return std::vector<std::string>{running->control};
  }

  task::Task<Attempt<int>> show_all(env::Env& env, std::vector<std::string> paths) {
    WallTime since = since_;
    if (ago_) since = {env.wall_now().ns - ago_->ns};
    server::EventReader reader(env, std::move(paths), since);
    const Attempt<std::vector<Event>> all = co_await reader.read_all();
    if (!all) co_return std::unexpected(all.error());
    for (const Event& each : *all) show(each);
    if (!follow_) co_return kExitOk;
    finish_output();
    co_await reader.follow([this](const Event& event) {
      show(event);
      finish_output();
    });
    if (env.stop_token().requested()) co_return kExitOk;
    co_return refuse("the processes whose events these were have ended");
  }

  void show(const Event& event) const {
    say(json_ ? server::encode_event(event) + "\n" : server::event_text(event));
  }

  std::string control_;
  std::string data_;
  WallTime since_;
  std::optional<Duration> ago_;
  bool follow_ = false;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_events(CLI::App& app) { return std::make_unique<EventsCommand>(app); }

}  // namespace cairn::apps
