// SPDX-License-Identifier: Apache-2.0
// ThreadWorld: a thread per core, started and ended together.
#pragma once

#include <functional>
#include <memory>

#include "base/error.h"
#include "env/env.h"
#include "env/world.h"
#include "world/posix/core.h"

namespace cairn::posix {

// The first core runs on the thread that calls run(), the others on threads of their own.
class ThreadWorld : public env::World {
 public:
  Result<void> run(const env::Program& program) override;
  void request_stop() override;

 protected:
  explicit ThreadWorld(env::WorldOptions options);
  // Makes a core on the thread that will run it. Errors as World::run.
  virtual Result<std::unique_ptr<CoreEnv>> make_core(CoreId id, Neighbours& neighbours,
                                                     const env::WorldOptions& options) = 0;

 private:
  class Signals;
  env::WorldOptions options_;
  Neighbours neighbours_;
  bool has_run_ = false;
};

}  // namespace cairn::posix
