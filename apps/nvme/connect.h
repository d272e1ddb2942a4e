// SPDX-License-Identifier: Apache-2.0
// Connecting on behalf of a command: what goes wrong is a Problem in the user's terms.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "apps/command.h"
#include "apps/nvme/place.h"
#include "apps/problem.h"
#include "apps/settings.h"
#include "env/env.h"
#include "fabric/host/remote_drive.h"
#include "fabric/host/session.h"
#include "fabric/host/uri.h"
#include "task/cancel.h"
#include "task/task.h"

namespace cairn::apps {

// What every verb can be told.
struct NvmeOptions {
  bool json = false;
  SettingsOptions settings;
};
void add_nvme_options(CLI::App& app, NvmeOptions& options);
// A URI as an argument; one of the wrong form is a usage mistake.
CLI::Option* add_place(CLI::App& app, const std::string& name, std::string& into, Needs needs,
                       std::string help);

// Runs `body` in a world in which SIGINT and SIGTERM request the stop token.
using NvmeBody = std::function<task::Task<Attempt<void>>(env::Env&)>;
Attempt<void> run_in_world(const NvmeOptions& options, const NvmeBody& body);

// A namespace as a drive. When it is not there, the Problem says which ones are.
task::Task<Attempt<std::unique_ptr<fabric::RemoteDrive>>> open_drive(env::Env& env,
                                                                     fabric::Uri uri);

// The same for one job of a load, as bench::LoadJobs wants it; whoever runs it explains errors.
task::Task<Result<std::unique_ptr<drive::Drive>>> open_for_load(env::Env& there,
                                                                const fabric::Uri& uri);

// A session with one controller, for admin commands. Closed before it is destroyed.
class ControllerLink final : private fabric::HostSession::User {
 public:
  // Through `path` of the URI.
  static task::Task<Attempt<std::unique_ptr<ControllerLink>>> open(env::Env& env,
                                                                   const fabric::Uri& uri,
                                                                   size_t path = 0);
  fabric::HostSession& session() { return *session_; }
  task::CancelToken token() { return session_->env().stop_token(); }
  task::Task<void> close() { return session_->close(); }

 private:
  ControllerLink() = default;
  void session_lost(const Error&) override {}
  void session_event(const nvme::AsynchronousEvent&) override {}

  std::unique_ptr<fabric::HostSession> session_;
};

// Runs `body` with a link to the URI's first path that works, and closes it.
using LinkBody = std::function<task::Task<Attempt<void>>(ControllerLink&)>;
Attempt<void> run_with_link(const NvmeOptions& options, const fabric::Uri& uri,
                            const LinkBody& body);

// The nsid of the URI's namespace, which it may name by UUID. The Problem says which ones are
// there.
task::Task<Attempt<uint32_t>> nsid_of(ControllerLink& link, const fabric::Uri& uri);

// That the URI's namespace is not there, and which ones are.
task::Task<Problem> missing_namespace(ControllerLink& link, const fabric::Uri& uri);

}  // namespace cairn::apps
