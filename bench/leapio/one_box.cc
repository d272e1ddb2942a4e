// SPDX-License-Identifier: Apache-2.0
#include "bench/leapio/one_box.h"

#include "fabric/target/target.h"
#include "nvme/controller/registry.h"
#include "task/sync.h"

namespace cairn::bench::leapio {

sim::NodeOptions machine() {
  return {.buffers = {.classes = {{4096, 8192},
                                  {16384, 4096},
                                  {65536, 4096},
                                  {262144, 1024},
                                  {1048576, 256},
                                  {8 << 20, 32}}}};
}

task::Task<void> serve_one(env::Env& env, OneBox box, drive::Source& source,
                           Result<void>& outcome) {
  nvme::Registry registry(env);
  fabric::Target target(env, registry);
  outcome = registry.add_subsystem({.nqn = box.nqn, .queue_entries_max = 1024});
  if (outcome) {
    const nvme::NamespaceOptions space{.source = &source, .stack = "flash"};
    const Result<uint32_t> added = co_await registry.add_namespace(box.nqn, space);
    if (!added) outcome = fail(added.error());
  }
  if (outcome) {
    const Result<env::Address> listening = target.listen(box.at);
    if (!listening) outcome = fail(listening.error());
  }
  task::Event never;
  const Result<void> stopped = co_await never.wait(env.stop_token());
  (void)stopped;
  co_await target.close();
  co_await registry.close();
}

}  // namespace cairn::bench::leapio
