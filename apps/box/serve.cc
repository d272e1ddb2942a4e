// SPDX-License-Identifier: Apache-2.0
#include "apps/box/serve.h"

#include <fmt/format.h>

#include <utility>

#include "apps/box/control_server.h"
#include "apps/box/patience.h"
#include "apps/words.h"
#include "task/sync.h"

namespace cairn::apps {

namespace {

Problem cannot_control(const std::string& path, const Error& error) {
  if (error == Errc::kExists) {
    return {
        fmt::format("another box listens at the control socket {}: end that box, or name "
                    "another socket with --control PATH (or --control off)",
                    in_quotes(path))};
  }
  return {fmt::format("the control socket {} cannot be made: {}: name another with --control PATH",
                      in_quotes(path), error.text())};
}

// The control socket's path; empty when there is to be none.
task::Task<Attempt<std::string>> listen_for_control(env::Env& env, ControlServer& control,
                                                    const Box& box, const ServeOptions& options) {
  if (!options.control_path) co_return std::string();
  Attempt<std::string> path = options.control_path(box.listening().front().port);
  if (!path) co_return path;
  const env::Address at{.family = env::Address::Family::kLocal, .path = *path};
  Result<void> listening;
  Patience patience(env);
  for (bool again = true; again;) {
    listening = control.listen(at);
    again = co_await patience.after(listening);
  }
  if (!listening) co_return std::unexpected(cannot_control(*path, listening.error()));
  co_return path;
}

}  // namespace

task::Task<Attempt<void>> serve_box(env::Env& env, const ServeOptions& options) {
  Box box(env, options.box, options.changes, options.hooks);
  ControlServer control(env, box);
  Attempt<void> outcome = co_await box.open();
  if (outcome) {
    const Attempt<std::string> path = co_await listen_for_control(env, control, box, options);
    if (path) {
      if (options.ready) options.ready(box, *path);
      task::Event never;
      const Result<void> stopped = co_await never.wait(env.stop_token());
      (void)stopped;
    } else {
      outcome = std::unexpected(path.error());
    }
  }
  co_await control.close();
  co_await box.close();
  co_return outcome;
}

}  // namespace cairn::apps
