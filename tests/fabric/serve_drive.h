// SPDX-License-Identifier: Apache-2.0
// A box with one drive, in the simulator, until it is asked to stop.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "fabric/target/target.h"
#include "nvme/controller/registry.h"
#include "task/sync.h"

namespace cairn::fabric_tests {

// Namespace 1 of the subsystem is the drive that `spec` names.
inline task::Task<void> serve_drive(env::Env& env, env::Address at, std::string nqn,
                                    std::string spec) {
  nvme::Registry registry(env);
  fabric::Target target(env, registry);
  nvme::SubsystemOptions subsystem;
  subsystem.nqn = nqn;
  EXPECT_TRUE(registry.add_subsystem(subsystem).has_value());
  nvme::NamespaceOptions space;
  space.drive = drive::Spec::parse(spec).value();
  const Result<uint32_t> added = co_await registry.add_namespace(nqn, space);
  EXPECT_TRUE(added.has_value());
  EXPECT_TRUE(target.listen(at).has_value());
  task::Event never;
  const Result<void> stopped = co_await never.wait(env.stop_token());
  EXPECT_FALSE(stopped.has_value());
  co_await target.close();
  co_await registry.close();
}

}  // namespace cairn::fabric_tests
