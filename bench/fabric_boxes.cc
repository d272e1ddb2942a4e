// SPDX-License-Identifier: Apache-2.0
#include "bench/fabric_boxes.h"

#include <algorithm>

namespace cairn::bench {

namespace {

bool is_same(const BoxKind& one, const BoxKind& other) {
  return one.poll == other.poll && one.nap == other.nap &&
         one.doorbell.mode == other.doorbell.mode && one.doorbell.count == other.doorbell.count &&
         one.doorbell.bytes == other.doorbell.bytes && one.doorbell.delay == other.doorbell.delay &&
         one.targets == other.targets && one.block_size == other.block_size &&
         one.time_calls == other.time_calls && one.only_host == other.only_host;
}

}  // namespace

Result<FabricPair*> FabricBoxes::get(const BoxKind& kind) {
  const auto found =
      std::ranges::find_if(started_, [&](const Started& each) { return is_same(each.kind, kind); });
  if (found != started_.end()) return found->pair.get();
  Result<std::unique_ptr<FabricPair>> pair = FabricPair::start({.world = options_.world,
                                                                .cpu = options_.box_cpu,
                                                                .poll = kind.poll,
                                                                .nap = kind.nap,
                                                                .doorbell = kind.doorbell,
                                                                .memory = options_.memory,
                                                                .block_size = kind.block_size,
                                                                .targets = kind.targets,
                                                                .time_calls = kind.time_calls,
                                                                .only_host = kind.only_host},
                                                               options_.host_cpu);
  if (!pair) return fail(pair.error());
  started_.push_back({kind, std::move(*pair)});
  return started_.back().pair.get();
}

}  // namespace cairn::bench
