// SPDX-License-Identifier: Apache-2.0
#include "apps/nvme/connect.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "base/words.h"
#include "fabric/host/controller.h"
#include "fabric/host/namespace_info.h"
#include "server/open/explain.h"
#include "world/machine/world.h"

namespace cairn::apps {

void add_nvme_options(CLI::App& app, NvmeOptions& options) {
  add_switch(app, "--json", options.json, "print one JSON object instead of text");
  add_settings(app, options.settings);
}

CLI::Option* add_place(CLI::App& app, const std::string& name, std::string& into,
                       server::Needs needs, std::string help) {
  return add_argument(app, name, std::move(help),
                      [&into, needs](const std::string& text) -> Attempt<void> {
                        Attempt<void> checked = server::check_target_uri(text, needs);
                        if (checked) into = text;
                        return checked;
                      });
}

Attempt<void> run_in_world(const NvmeOptions& options, const NvmeBody& body) {
  const Attempt<config::Settings> settings = config::resolve(options.settings);
  if (!settings) return std::unexpected(settings.error());
  env::WorldOptions wanted = config::world_options(*settings);
  wanted.handle_signals = true;
  Attempt<std::unique_ptr<env::World>> world = machine::make_world(settings->io, wanted);
  if (!world) return std::unexpected(world.error());
  struct Run {
    const NvmeBody& body;
    Attempt<void> outcome;
    static task::Task<void> to_end(env::Env& env, Run& run) {
      run.outcome = co_await run.body(env);
    }
  } run{.body = body, .outcome = {}};
  const Result<void> ran = (*world)->run([&run](env::Env& env) { return Run::to_end(env, run); });
  if (!ran) return refuse(fmt::format("{}: see what 'cairn doctor' says", ran.error().text()));
  return run.outcome;
}

task::Task<Result<std::unique_ptr<drive::Drive>>> open_for_load(env::Env& there,
                                                                const fabric::Uri& uri) {
  Result<std::unique_ptr<fabric::RemoteDrive>> drive =
      co_await fabric::RemoteDrive::open(there, uri, there.stop_token());
  if (!drive) co_return fail(drive.error());
  co_return std::move(*drive);
}

namespace {

task::Task<Attempt<void>> with_link(env::Env& env, const fabric::Uri& uri, const LinkBody& body) {
  std::optional<Problem> first;
  for (size_t path = 0; path < uri.paths.size(); ++path) {
    Attempt<std::unique_ptr<server::ControllerLink>> link =
        co_await server::ControllerLink::open(env, uri, path);
    if (!link) {
      if (!first) first = link.error();
      continue;
    }
    Attempt<void> outcome = co_await body(**link);
    co_await (*link)->close();
    co_return outcome;
  }
  co_return std::unexpected(*first);
}

}  // namespace

Attempt<void> run_with_link(const NvmeOptions& options, const fabric::Uri& uri,
                            const LinkBody& body) {
  return run_in_world(options, [&](env::Env& env) { return with_link(env, uri, body); });
}

}  // namespace cairn::apps
