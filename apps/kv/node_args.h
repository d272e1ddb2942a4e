// SPDX-License-Identifier: Apache-2.0
// What the command line says of a store's part in a cluster.
#pragma once

#include <string>
#include <vector>

#include "base/problem.h"
#include "env/address.h"
#include "server/kv/node.h"

namespace CLI {
class App;
}

namespace cairn::apps {

class NodeArgs {
 public:
  // Declares --join and what goes with it.
  explicit NodeArgs(CLI::App& app);

  // The store is to be part of a cluster.
  bool is_given() const { return !meta_.empty(); }
  // Where its cluster is, as it was written.
  const std::string& meta() const { return meta_; }
  // What the node is told; `resp` are its doors. `is_insecure`: others may reach it without keys.
  Attempt<server::KvNodeOptions> options(const std::vector<env::Address>& resp,
                                         bool is_insecure) const;

 private:
  Attempt<void> check_reach(bool is_insecure) const;

  std::string meta_;
  server::KvNodeOptions options_;
  std::string key_file_;
  int replicas_ = 3;
};

}  // namespace cairn::apps
