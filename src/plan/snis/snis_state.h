// SPDX-License-Identifier: Apache-2.0
// Where an interrupted run of SNIS goes on from: a folder with a file for each iteration.
#pragma once

#include <optional>
#include <string>

#include "base/problem.h"
#include "snis/state_format.h"

namespace cairn::plan {

class SnisState {
 public:
  // Makes the folder if there is none. `fingerprint` is of requests and system.
  static Attempt<SnisState> open(std::string folder, uint64_t fingerprint, uint64_t requests);

  // Nothing when it was not simulated yet. A file of another run, or a damaged one, is a Problem.
  Attempt<std::optional<snis::Iteration>> load(uint32_t iteration) const;
  // There wholly or not at all.
  Attempt<void> save(uint32_t iteration, const snis::Iteration& state) const;

 private:
  SnisState(std::string folder, uint64_t fingerprint, uint64_t requests)
      : folder_(std::move(folder)), fingerprint_(fingerprint), requests_(requests) {}
  std::string path(uint32_t iteration) const;

  std::string folder_;
  uint64_t fingerprint_;
  uint64_t requests_;
};

}  // namespace cairn::plan
