// SPDX-License-Identifier: Apache-2.0
// A rack in the simulated world: a metadata store, boxes with a shelf each, and those who make
// drives of them. Boxes are the production ones, asked over simulated NVMe/TCP.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "meta/remote_store.h"
#include "meta/state.h"
#include "rack/space_command.h"
#include "rack/tenant.h"
#include "server/serve/serve.h"
#include "task/task.h"
#include "world/sim/cluster.h"

namespace cairn::rack_tests {

inline constexpr const char* kOwner = "nqn.2026-11.io.cairn:tenant";
inline constexpr Duration kTerm = 3_s;
inline constexpr Duration kExpiry = 3_s;

// What outlives the crashes of its programs.
class Rack {
 public:
  struct BoxFacts {
    uint64_t mib = 0;  // of its shelf
    std::vector<std::string> hosts;
    server::ServerChanges kept;
    std::string folder;                // of its shelf; empty: it is in memory
    std::vector<std::string> removed;  // files
    bool dies_at_removal = false;      // instead of removing a file, and keeps nothing from then on
    bool is_dying = false;
    std::string log;
  };

  // Names a box; before start().
  BoxFacts& box(const std::string& name, uint64_t mib);
  // Starts the store and the boxes.
  void start(sim::Cluster& cluster);

  meta::State& state() { return state_; }
  const std::map<std::string, BoxFacts>& boxes() const { return boxes_; }
  // The contracts that a box has on its disk.
  std::vector<rack::Contract> contracts(const std::string& box) const;
  uint64_t given_mib(const std::string& box) const;
  std::vector<rack::DriveRecord> drives() const;
  // What is wrong between drives and contracts at any moment: a leg that nothing stands behind, a
  // box that gave more than it has. Empty: nothing.
  std::string check() const;
  // What is wrong when everybody rests: contracts without a drive, too.
  std::string audit() const;

  env::Address store_address(sim::Cluster& cluster) const;

 private:
  task::Task<void> run_box(env::Env& env, std::string name, env::Address at, env::Address store);

  meta::State state_;
  std::map<std::string, BoxFacts> boxes_;
};

// One who makes drives: a store and boxes as seen from a node.
struct Tenant {
  Tenant(env::Env& env, const env::Address& store, std::string owner = kOwner);

  task::Task<rack::Outcome<rack::DriveRecord>> create(std::string name, rack::Raid raid,
                                                      uint64_t mib);
  task::Task<rack::Outcome<void>> release(std::string name,
                                          rack::Release how = rack::Release::kUnused);

  env::Env& env;
  std::string owner;
  std::unique_ptr<meta::Store> store;
  rack::NvmePeers peers;
};

}  // namespace cairn::rack_tests
