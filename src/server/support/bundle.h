// SPDX-License-Identifier: Apache-2.0
// What processes that run say of themselves, as files for whoever helps.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "env/env.h"
#include "task/task.h"

namespace cairn::server {

struct BundleFile {
  std::string name;  // within the bundle: "server-77/status.json"
  std::string text;  // without secrets
};

// Of the process at this control socket: status, layers, metrics and events, whatever of these it
// has; and why there is none of the others.
task::Task<std::vector<BundleFile>> collect_process(env::Env& env, std::string path);

// A file of any text, such as a configuration, as it may be in a bundle.
BundleFile bundle_file(std::string name, std::string_view text);

}  // namespace cairn::server
