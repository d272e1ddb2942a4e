// SPDX-License-Identifier: Apache-2.0
#include "testing/fabric/sim_box.h"

#include <deque>

#include "base/check.h"
#include "task/sync.h"
#include "testing/target/test_drive.h"

namespace cairn::lane_tests {

env::Program SimBox::program(env::Address at) {
  return [this, at](env::Env& env) { return serve(env, at); };
}

task::Task<void> SimBox::serve(env::Env& env, env::Address at) {
  std::deque<target_tests::TestDrive> drives;
  nvme::Registry registry(env);
  fabric::Target target(env, registry, options_.target);
  nvme::SubsystemOptions subsystem;
  subsystem.nqn = kNqn;
  subsystem.queue_entries_max = options_.queue_entries;
  CHECK(registry.add_subsystem(subsystem).has_value());
  for (uint32_t i = 0; i < options_.namespaces; ++i) {
    const nvme::NamespaceOptions space = co_await drives.emplace_back().open(env, options_.drive);
    const Result<uint32_t> added = co_await registry.add_namespace(kNqn, space);
    CHECK(added.has_value());
  }
  CHECK(target.listen(at).has_value());
  registry_ = &registry;
  target_ = &target;
  task::Event never;
  const Result<void> stopped = co_await never.wait(env.stop_token());
  CHECK(!stopped);
  target_ = nullptr;
  registry_ = nullptr;
  co_await target.drain(env.now() + 1_s);
  const fabric::TargetReport report = co_await target.report(0);
  for (const auto& [key, totals] : report.totals) {
    if (!key.admin && !key.nqn.empty()) io_totals_.add(totals);
  }
  co_await target.close();
  co_await registry.close();
  for (target_tests::TestDrive& drive : drives) co_await drive.close(env);
}

}  // namespace cairn::lane_tests
