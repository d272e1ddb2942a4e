// SPDX-License-Identifier: Apache-2.0
#include "server/serve/serve_box.h"

#include <utility>

#include "server/control/control_server.h"
#include "server/serve/control_commands.h"
#include "task/sync.h"

namespace cairn::server {

namespace {

// The control socket's path; empty when there is to be none.
task::Task<Attempt<std::string>> listen_for_control(env::Env& env, ControlServer& control,
                                                    const Box& box, const ServeOptions& options) {
  if (!options.control_path) co_return std::string();
  Attempt<std::string> path = options.control_path(box.listening().front().port);
  if (!path) co_return path;
  const Attempt<void> listening = co_await listen_at(env, control, *path);
  if (!listening) co_return std::unexpected(listening.error());
  co_return path;
}

}  // namespace

task::Task<Attempt<void>> serve_box(env::Env& env, const ServeOptions& options) {
  Box box(env, options.box, options.changes, options.hooks);
  BoxRack rack(env, box, options.rack, options.rack_hooks);
  ControlServer control(
      env, [&box](ControlRequest request) { return execute(box, std::move(request)); });
  Attempt<void> outcome = co_await box.open();
  if (outcome && !options.rack.shelves.empty()) outcome = co_await rack.open();
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
  co_await rack.close();
  co_await box.close();
  co_return outcome;
}

}  // namespace cairn::server
