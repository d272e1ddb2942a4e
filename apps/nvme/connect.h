// SPDX-License-Identifier: Apache-2.0
// Connecting on behalf of a command: what goes wrong is a Problem in the user's terms.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "apps/common/command.h"
#include "base/problem.h"
#include "config/settings.h"
#include "env/env.h"
#include "fabric/host/remote_drive.h"
#include "fabric/host/session.h"
#include "fabric/host/uri.h"
#include "server/open/controller_link.h"
#include "server/open/target_uri.h"
#include "task/cancel.h"
#include "task/task.h"

namespace cairn::apps {

// What every verb can be told.
struct NvmeOptions {
  bool json = false;
  config::SettingsOptions settings;
};
void add_nvme_options(CLI::App& app, NvmeOptions& options);
// A URI as an argument; one of the wrong form is a usage mistake.
CLI::Option* add_place(CLI::App& app, const std::string& name, std::string& into,
                       server::Needs needs, std::string help);

// Runs `body` in a world in which SIGINT and SIGTERM request the stop token.
using NvmeBody = std::function<task::Task<Attempt<void>>(env::Env&)>;
Attempt<void> run_in_world(const NvmeOptions& options, const NvmeBody& body);

// A namespace as a drive for one job of a load, as loadgen::LoadJobs wants it; whoever runs it
// explains errors.
task::Task<Result<std::unique_ptr<drive::Drive>>> open_for_load(env::Env& there,
                                                                const fabric::Uri& uri);

// Runs `body` with a link to the URI's first path that works, and closes it.
using LinkBody = std::function<task::Task<Attempt<void>>(server::ControllerLink&)>;
Attempt<void> run_with_link(const NvmeOptions& options, const fabric::Uri& uri,
                            const LinkBody& body);

}  // namespace cairn::apps
