// SPDX-License-Identifier: Apache-2.0
// SharedSources: media that several layers use at once, in one stack or in several, on any core.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>

#include "base/error.h"
#include "base/ids.h"
#include "drive/source.h"
#include "env/env.h"
#include "task/task.h"

namespace cairn::drive {

// Lives on one core, where the media are made and destroyed. Outlives the sources it gives.
class SharedSources {
 public:
  explicit SharedSources(env::Env& env) : core_(env.core()) {}
  SharedSources(const SharedSources&) = delete;
  SharedSources& operator=(const SharedSources&) = delete;

  // On any core: a source of the one medium that has this description, which is made unless
  // somebody has it. Destroyed on the same core; the medium goes with the last of them. Errors as
  // Source::make.
  task::Task<Result<std::unique_ptr<Source>>> make(env::Env& env, Spec spec);

  // On its own core: how many media there are.
  size_t media() const { return media_.size(); }

 private:
  class Share;
  struct Medium {
    std::unique_ptr<Source> source;
    size_t shares = 0;
  };

  Result<Source*> take(env::Env& here, const Spec& spec, const std::string& name);
  void give_back(const std::string& name);

  const CoreId core_;
  std::map<std::string, Medium> media_;  // by the canonical text
};

}  // namespace cairn::drive
