// SPDX-License-Identifier: Apache-2.0
// What the command line says of a simulated system and its load.
#pragma once

#include "plan/snis/snis_load.h"
#include "plan/snis/snis_system.h"

namespace CLI {
class App;
}  // namespace CLI

namespace cairn::apps {

// --profile, --config, --precondition, --network, --transport, --fluid, --compat, --targets,
// --initiators.
void add_system_options(CLI::App& app, plan::SnisSystemOptions& options);

// --trace, --format, --synthetic, the moments, --requests, --seed, --time-scale, --space, --place,
// --choose. Targets and initiators of the shape are the caller's. How many requests are taken by
// default is told in the help, so set it before.
void add_load_options(CLI::App& app, plan::SnisLoadOptions& options);

}  // namespace cairn::apps
