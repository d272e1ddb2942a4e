// SPDX-License-Identifier: Apache-2.0
// What a box gives away, as a file or the command line says it: [rack] and [[rack.shelf]].
// docs/rack.md explains each key.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/problem.h"
#include "base/units.h"
#include "config/config.h"
#include "rack/types.h"
#include "server/open/store_uri.h"

namespace cairn::server {

struct RackShelf {
  std::string name;
  std::string subsystem;  // NQN; empty: the only one
  std::string folder;     // a file there for each contract; empty: memory
  rack::Amount room;
  std::vector<std::string> hosts;  // NQNs of those who may ask; none: everybody who may connect
};

struct RackOptions {
  StoreUri store;
  std::string name;  // of the box; empty: where its first shelf is reached
  Duration expiry = 15_s;
  Duration term = 60_s;
  std::vector<RackShelf> shelves;
};

// `options` outlives the section.
void add_rack_keys(config::Section& root, RackOptions& options);

// NAME=mem:size=8G or NAME=file:FOLDER,size=100G; iops=N and bandwidth=SIZE may follow.
Attempt<RackShelf> parse_shelf(std::string_view text);

}  // namespace cairn::server
