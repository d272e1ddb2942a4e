// SPDX-License-Identifier: Apache-2.0
// PendingSource: stands for a drive that could not be opened yet, so that it keeps its name and its
// number at every door until it can be.
#pragma once

#include <memory>
#include <vector>

#include "drive/source.h"
#include "env/env.h"
#include "task/task.h"

namespace cairn::server {

// Made and filled on one core, used on all; closed before it is destroyed, filled or not.
class PendingSource final : public drive::Source {
 public:
  explicit PendingSource(uint32_t cores) : there_(cores) {}

  // It is open now: every core finds it from here on. Once.
  task::Task<void> fill(env::Env& env, std::unique_ptr<drive::Source> source);

  // kUnreachable while it is not filled.
  Result<std::unique_ptr<drive::Drive>> open(env::Env& env) override;
  task::Task<void> close(env::Env& env) override;
  task::Task<drive::Extent> extent_at(env::Env& env, const drive::Drive& opened, Lba lba,
                                      uint64_t max) override;
  std::vector<env::Disk::Extent> data() const override;
  const drive::ModelledMedium* modelled() const override;

 private:
  std::unique_ptr<drive::Source> source_;
  std::vector<drive::Source*> there_;  // as each core knows it: one never reads another's
};

}  // namespace cairn::server
