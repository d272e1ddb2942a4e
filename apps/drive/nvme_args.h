// SPDX-License-Identifier: Apache-2.0
// The NVMe door of `cairn drive serve` as the command line and a configuration file say it: where
// hosts connect, what they call the subsystem, who they are and how they prove it. In the words of
// `cairn box`.
#pragma once

#include <string>
#include <vector>

#include "apps/box/access_args.h"
#include "base/problem.h"
#include "config/config.h"
#include "env/address.h"
#include "server/serve/server.h"

namespace cairn::apps {

struct NvmeArgs {
  std::vector<env::Address> at;
  std::string nqn;
  AccessArgs access;
};
// ADDR:PORT.
Attempt<void> add_nvme_door(const std::string& text, NvmeArgs& words);

// [[listener]] and [[subsystem]]; `options` outlives the section.
void add_nvme_keys(config::Section& root, server::DriveServeOptions& options);

// The words win over the file. A subsystem that nobody named has a name of its own (default_nqn.h).
// The Problem: something is said about hosts, and there is no place where they connect.
Attempt<void> take_nvme_args(const NvmeArgs& words, server::DriveServeOptions& options);

}  // namespace cairn::apps
