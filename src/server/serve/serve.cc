// SPDX-License-Identifier: Apache-2.0
#include "server/serve/serve.h"

#include <utility>

#include "server/control/control_server.h"
#include "server/monitor/monitor.h"
#include "server/serve/control_commands.h"
#include "server/serve/metrics.h"
#include "task/sync.h"

namespace cairn::server {

namespace {

// The control socket's path; empty when there is to be none.
task::Task<Attempt<std::string>> listen_for_control(env::Env& env, ControlServer& control,
                                                    const ServeOptions& options) {
  if (!options.control_path) co_return std::string();
  Attempt<std::string> path = options.control_path();
  if (!path) co_return path;
  const Attempt<void> listening = co_await listen_at(env, control, *path);
  if (!listening) co_return std::unexpected(listening.error());
  co_return path;
}

task::Task<Attempt<Json>> answer(Server& server, EventLog& events, ControlRequest request) {
  Attempt<Json> told;
  if (request.command == ControlRequest::Command::kEvents) {
    told = co_await answer_events(server.env(), events, std::move(request));
  } else {
    told = co_await execute(server, std::move(request));
  }
  co_return told;
}

ServerHooks with_events(ServerHooks hooks, EventLog& events) {
  hooks.events = &events;
  return hooks;
}

}  // namespace

task::Task<Attempt<void>> serve(env::Env& env, const ServeOptions& options) {
  ProcessEvents events(env, "serve", options.events, options.hooks.log);
  Server server(env, options.server, options.changes, with_events(options.hooks, events.log()),
                options.doors);
  RackMember rack(env, server, options.rack, options.rack_hooks);
  ControlServer control(env, [&server, &events](ControlRequest request) {
    return answer(server, events.log(), std::move(request));
  });
  ServerSource source(server);
  Monitor monitor(env, source, &events.log(), options.http_token);
  Attempt<void> outcome = co_await server.open();
  if (outcome && !options.rack.shelves.empty()) outcome = co_await rack.open();
  if (outcome) {
    const auto listening = co_await monitor.listen(options.http);
    if (!listening) {
      outcome = std::unexpected(listening.error());
    } else if (options.http_ready) {
      options.http_ready(*listening);
    }
  }
  if (outcome) {
    const Attempt<std::string> path = co_await listen_for_control(env, control, options);
    if (path) {
      events.tell_begun();
      if (options.ready) options.ready(server, *path);
      task::Event never;
      const Result<void> stopped = co_await never.wait(env.stop_token());
      (void)stopped;
      events.tell_ending();
    } else {
      outcome = std::unexpected(path.error());
    }
  }
  co_await monitor.close();
  co_await control.close();
  co_await rack.close();
  co_await server.close();
  co_await events.close();
  co_return outcome;
}

}  // namespace cairn::server
