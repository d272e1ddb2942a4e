// SPDX-License-Identifier: Apache-2.0
// `cairn view top|watch|why|query`: how the boxes of a pool are doing inside, and why a volume is
// slow.
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "apps/common/errand.h"
#include "apps/common/output.h"
#include "apps/view/commands.h"
#include "apps/view/report.h"
#include "apps/volume/client.h"
#include "base/duration.h"
#include "base/words.h"
#include "task/deadline.h"
#include "view/analysis.h"
#include "view/remote_view.h"
#include "view/tables.h"
#include "view/view_service.h"
#include "volume/types.h"

namespace cairn::apps {

namespace {

constexpr int kLooksMax = 1'000'000'000;
constexpr Duration kAgain = 50_ms;

// Asks the arbiter that leads for its view.
class Onlooker : public Command {
 protected:
  explicit Onlooker(CLI::App& app) : client_(app, 5) {}

  using Look = std::function<task::Task<Attempt<int>>(env::Env&, view::RemoteView&)>;
  Attempt<int> with_view(const Look& look) const {
    return run_errand<int>([this, &look](env::Env& env) { return run_look(env, look); });
  }
  // Until the time is over: a view that begins anew is soon there again.
  task::Task<Attempt<view::View>> query(env::Env& env, view::RemoteView& view) const {
    Result<view::View> whole = fail(Errc::kTimedOut, "nobody answered");
    {
      task::Deadline deadline(env, env.now() + client_.timeout(), env.stop_token());
      while (!whole && !deadline.token().requested()) {
        whole = co_await view.query("", deadline.token());
        if (whole || whole.error() == Errc::kDenied || whole.error() == Errc::kUnsupported) break;
        [[maybe_unused]] const Result<void> slept =
            co_await task::sleep_for(env, kAgain, deadline.token());
      }
    }
    if (whole) co_return *whole;
    const Error& error = whole.error();
    if (error == Errc::kUnsupported) {
      co_return refuse(fmt::format(
          "no arbiter at {} has a view: none leads, its pool has no drives, or it is of an earlier "
          "version; 'cairn arbiter status' and 'cairn pool list' say which",
          client_.uri().servers_text()));
    }
    co_return refuse(
        fmt::format("no view can be had of {}: {}; 'cairn arbiter status' says which "
                    "arbiters run",
                    client_.uri().servers_text(), error.text()));
  }

  ArbiterClient client_;

 private:
  task::Task<Attempt<int>> run_look(env::Env& env, const Look& look) const {
    Attempt<rpc::ClientOptions> options = server::arbiter_client(client_.uri());
    if (!options) co_return std::unexpected(options.error());
    view::RemoteView view(env, {.client = std::move(*options),
                                .name = "cairn-view",
                                .pulls = false,
                                .elsewhere = view::ViewService::kElsewhere});
    Attempt<int> outcome = co_await look(env, view);
    co_await view.close();
    co_return outcome;
  }
};

// Looks again and again.
class Repeated : public Onlooker {
 protected:
  explicit Repeated(CLI::App& app) : Onlooker(app) {
    add_value(app, "--interval TIME", "between two looks (1s)",
              [this](const std::string& text) -> Attempt<void> {
                const Attempt<Duration> time = parse_duration(text);
                if (!time) return std::unexpected(time.error());
                if (*time < 10_ms) return refuse("an interval has 10ms at least");
                interval_ = *time;
                return {};
              });
    add_integer(app, "--count N", count_, {.min = 1, .max = kLooksMax},
                "end after so many looks (when Ctrl-C is pressed)");
  }
  Attempt<int> run() override {
    begin();
    Attempt<int> outcome =
        with_view([this](env::Env& env, view::RemoteView& view) { return look_again(env, view); });
    end();
    return outcome;
  }
  virtual void begin() {}
  virtual void end() {}
  virtual void show(const view::View& view) = 0;
  int count_ = 0;

 private:
  task::Task<Attempt<int>> look_again(env::Env& env, view::RemoteView& view) {
    for (int looks = 1;; ++looks) {
      const Attempt<view::View> now = co_await query(env, view);
      if (env.stop_token().requested()) co_return kExitOk;
      if (!now) co_return std::unexpected(now.error());
      show(*now);
      finish_output();
      if (looks == count_) co_return kExitOk;
      const Result<void> slept = co_await task::sleep_for(env, interval_, env.stop_token());
      if (!slept) co_return kExitOk;
    }
  }
  Duration interval_ = 1_s;
};

class TopCommand final : public Repeated {
 public:
  explicit TopCommand(CLI::App& app) : Repeated(app) {
    set_examples(app, {"cairn view top", "cairn view top --count 1", "cairn view top --json"});
  }

 private:
  // A terminal that is not written to by others has all of it; what was there comes back.
  void begin() override {
    is_screen_ = ::isatty(STDOUT_FILENO) == 1 && !client_.json();
    if (!is_screen_ && count_ == 0) count_ = 1;
    if (is_screen_) say("\x1b[?1049h\x1b[?25l");
  }
  void end() override {
    if (is_screen_) say("\x1b[?25h\x1b[?1049l");
  }
  void show(const view::View& view) override {
    if (client_.json()) return say(config::json_text(summary_json(view)));
    size_t rows = 0;
    if (is_screen_) {
      winsize size{};
      const bool is_known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0;
      rows = std::max<size_t>((is_known ? size.ws_row : 24) / 2, 6) - 4;
      say("\x1b[H\x1b[2J");
    }
    std::string offences;
    for (const view::Offender& each : view.offenders) offences += view::text(view, each);
    say(fmt::format("{} boxes, the last 200 ms{}\n\n{}\n{}{}", view.boxes.size(),
                    is_screen_ ? "; Ctrl-C ends it" : "", view::drives_text(view, rows),
                    view::volumes_text(view, rows), offences));
  }
  bool is_screen_ = false;
};

class WatchCommand final : public Repeated {
 public:
  explicit WatchCommand(CLI::App& app) : Repeated(app) {
    set_examples(app, {"cairn view watch --json | jq '.drives[] | select(.congested)'",
                       "cairn view watch --interval 200ms --count 50 --json > run.jsonl"});
  }

 private:
  void show(const view::View& view) override {
    if (client_.json()) return say(summary_json(view).dump() + "\n");
    say(view::drives_text(view) + view::volumes_text(view) + "\n");
  }
};

class WhyCommand final : public Onlooker {
 public:
  explicit WhyCommand(CLI::App& app) : Onlooker(app) {
    required(add_argument(
        app, "VOLUME", "that is slow", [this](const std::string& text) -> Attempt<void> {
          if (!volume::check_name(text)) {
            return refuse(fmt::format("{} is no name of a volume", in_quotes(text)));
          }
          volume_ = text;
          return {};
        }));
    set_examples(app, {"cairn view why vol0", "cairn view why vol0 --json"});
  }
  Attempt<int> run() override {
    return with_view(
        [this](env::Env& env, view::RemoteView& view) { return explain_it(env, view); });
  }

 private:
  task::Task<Attempt<int>> explain_it(env::Env& env, view::RemoteView& view) {
    const Attempt<view::View> now = co_await query(env, view);
    if (!now) co_return std::unexpected(now.error());
    const view::Why why = view::explain(*now, volume_);
    client_.print(why_json(*now, why), view::text(*now, why));
    co_return kExitOk;
  }
  std::string volume_;
};

class QueryCommand final : public Onlooker {
 public:
  explicit QueryCommand(CLI::App& app) : Onlooker(app) {
    set_examples(app, {"cairn view query", "cairn view query --json | jq '.flows'"});
  }
  Attempt<int> run() override {
    return with_view([this](env::Env& env, view::RemoteView& view) { return print_it(env, view); });
  }

 private:
  task::Task<Attempt<int>> print_it(env::Env& env, view::RemoteView& view) {
    const Attempt<view::View> now = co_await query(env, view);
    if (!now) co_return std::unexpected(now.error());
    client_.print(view_json(*now), view::drives_text(*now) + "\n" + view::volumes_text(*now));
    co_return kExitOk;
  }
};

}  // namespace

std::unique_ptr<Command> make_view_top(CLI::App& app) { return std::make_unique<TopCommand>(app); }
std::unique_ptr<Command> make_view_watch(CLI::App& app) {
  return std::make_unique<WatchCommand>(app);
}
std::unique_ptr<Command> make_view_why(CLI::App& app) { return std::make_unique<WhyCommand>(app); }
std::unique_ptr<Command> make_view_query(CLI::App& app) {
  return std::make_unique<QueryCommand>(app);
}

}  // namespace cairn::apps
