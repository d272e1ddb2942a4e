// SPDX-License-Identifier: Apache-2.0
#include "apps/nvme/connect.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <optional>
#include <utility>

#include "apps/nvme/explain.h"
#include "apps/words.h"
#include "apps/world.h"
#include "fabric/host/controller.h"
#include "fabric/host/namespace_info.h"

namespace cairn::apps {

namespace {

// What a user is shown of a long list.
constexpr size_t kShownMax = 16;

std::string shown(const std::vector<uint32_t>& nsids) {
  const size_t count = std::min(nsids.size(), kShownMax);
  std::string text = fmt::format("{}", fmt::join(nsids.begin(), nsids.begin() + count, ", "));
  if (count < nsids.size()) text += fmt::format(" and {} more", nsids.size() - count);
  return text;
}

// The subsystem may be missing, or just the namespace: asks.
task::Task<Problem> explain_missing(env::Env& env, const fabric::Uri& uri) {
  Attempt<std::unique_ptr<ControllerLink>> link = co_await ControllerLink::open(env, uri);
  if (!link) co_return link.error();
  Problem problem = co_await missing_namespace(**link, uri);
  co_await (*link)->close();
  co_return problem;
}

}  // namespace

void add_nvme_options(CLI::App& app, NvmeOptions& options) {
  add_switch(app, "--json", options.json, "print one JSON object instead of text");
  add_settings(app, options.settings);
}

CLI::Option* add_place(CLI::App& app, const std::string& name, std::string& into, Needs needs,
                       std::string help) {
  auto take = [&into, needs](const std::string& text) {
    if (const Attempt<void> checked = check_place(text, needs); !checked) {
      throw CLI::ValidationError(checked.error().text);
    }
    into = text;
  };
  return app.add_option_function<std::string>(name, std::move(take), std::move(help))->required();
}

Attempt<void> run_in_world(const NvmeOptions& options, const NvmeBody& body) {
  const Attempt<Settings> settings = resolve(options.settings);
  if (!settings) return std::unexpected(settings.error());
  env::WorldOptions wanted = world_options(*settings);
  wanted.handle_signals = true;
  Attempt<std::unique_ptr<env::World>> world = make_world(settings->io, wanted);
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

task::Task<Attempt<std::unique_ptr<fabric::RemoteDrive>>> open_drive(env::Env& env,
                                                                     fabric::Uri uri) {
  Result<std::unique_ptr<fabric::RemoteDrive>> drive =
      co_await fabric::RemoteDrive::open(env, uri, env.stop_token());
  if (drive) co_return std::move(*drive);
  if (drive.error() == Errc::kNotFound) {
    const Problem problem = co_await explain_missing(env, uri);
    co_return std::unexpected(problem);
  }
  co_return std::unexpected(cannot_connect(drive.error(), uri, uri.paths.front()));
}

task::Task<Result<std::unique_ptr<drive::Drive>>> open_for_load(env::Env& there,
                                                                const fabric::Uri& uri) {
  Result<std::unique_ptr<fabric::RemoteDrive>> drive =
      co_await fabric::RemoteDrive::open(there, uri, there.stop_token());
  if (!drive) co_return fail(drive.error());
  co_return std::move(*drive);
}

task::Task<Attempt<std::unique_ptr<ControllerLink>>> ControllerLink::open(env::Env& env,
                                                                          const fabric::Uri& uri,
                                                                          size_t path) {
  fabric::HostSession::Options options{
      .address = uri.paths[path], .nqn = uri.nqn, .host = uri.options};
  options.host.queues = 1;
  fabric::name_host(env, options.host);
  for (;;) {
    std::unique_ptr<ControllerLink> link(new ControllerLink());
    fabric::HostSession::User& user = *link;
    link->session_ = std::make_unique<fabric::HostSession>(env, options, user);
    const Result<void> opened = co_await link->session_->open(env.stop_token());
    if (opened) co_return link;
    co_await link->close();
    if (!link->session_->wants_flow_control()) {
      co_return std::unexpected(cannot_connect(opened.error(), uri, options.address));
    }
    options.flow_control = true;
  }
}

namespace {

task::Task<Attempt<void>> with_link(env::Env& env, const fabric::Uri& uri, const LinkBody& body) {
  std::optional<Problem> first;
  for (size_t path = 0; path < uri.paths.size(); ++path) {
    Attempt<std::unique_ptr<ControllerLink>> link = co_await ControllerLink::open(env, uri, path);
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

task::Task<Attempt<uint32_t>> nsid_of(ControllerLink& link, const fabric::Uri& uri) {
  const Result<uint32_t> nsid = co_await fabric::find_nsid(
      link.session(), {.nsid = uri.nsid, .uuid = uri.uuid}, link.token());
  if (nsid) co_return *nsid;
  if (nsid.error() != Errc::kNotFound) {
    co_return std::unexpected(cannot_do("looking for the namespace", nsid.error()));
  }
  const Problem problem = co_await missing_namespace(link, uri);
  co_return std::unexpected(problem);
}

task::Task<Problem> missing_namespace(ControllerLink& link, const fabric::Uri& uri) {
  const Result<std::vector<uint32_t>> there =
      co_await fabric::active_namespaces(link.session(), link.token());
  const std::string which = uri.uuid == fabric::Uuid{}
                                ? fmt::to_string(uri.nsid)
                                : fmt::format("with the UUID {}", fabric::uuid_text(uri.uuid));
  const std::string what = fmt::format("{} has no namespace {}", in_quotes(uri.nqn), which);
  if (!there || there->empty()) co_return Problem{what + " for this host, nor any other"};
  co_return Problem{
      fmt::format("{}; it has {}: write ?nsid={}", what, shown(*there), there->front())};
}

}  // namespace cairn::apps
