// SPDX-License-Identifier: Apache-2.0
#include "tests/volume/operator.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

#include "task/deadline.h"

namespace cairn::volume_tests {

using arbiter::ArbiterHost;
using task::Task;

namespace {

constexpr size_t kRelativesMax = 3;  // snapshots and clones at a time

}  // namespace

// Whoever leads adds what is missing.
Task<void> Operator::run(env::Env& env, ArbiterHost& host) {
  while (!env.stop_token().requested()) {
    {
      Result<ArbiterHost::Use> arbiter = host.use();
      for (size_t i = 0; arbiter && i < kDrives; ++i) {
        const auto is_it = [&](const auto& each) { return each.second.info.uri == uri_of(i); };
        if (std::ranges::any_of((*arbiter)->pool().members(), is_it)) continue;
        [[maybe_unused]] const Result<volume::MegaVolInfo> added =
            co_await (*arbiter)->add_mega_vol({.uri = uri_of(i)}, env.stop_token());
      }
      const bool is_whole = arbiter && (*arbiter)->pool().members().size() == kDrives;
      for (const char* name : {"v0", "v1"}) {
        if (!is_whole || is_destroying_) break;
        [[maybe_unused]] const Result<arbiter::VolumeRecord> made =
            co_await (*arbiter)->create({.name = name,
                                         .bytes = kVolumeExtents * kExtent,
                                         .replicas = facts_.volumes[name].replicas});
      }
      if (is_whole && !facts_.is_resting) co_await use_snapshots(env, **arbiter);
      if (is_whole && is_destroying_) co_await destroy_volumes(**arbiter);
    }
    co_await nap(env, 500_ms);
  }
}

// What operators do now and then.
Task<void> Operator::use_snapshots(env::Env& env, arbiter::Arbiter& arbiter) {
  std::vector<std::string> there;
  std::vector<std::string> writable;
  for (const auto& [id, volume] : arbiter.pool().volumes()) {
    if (volume.record.is_leaving) continue;
    (volume.record.is_snapshot ? there : writable).push_back(volume.record.name);
  }
  const auto any_of = [&](const std::vector<std::string>& names) {
    return names[env.rng().below(names.size())];
  };
  const bool has_room = there.size() + writable.size() < 2 + kRelativesMax;
  const uint64_t what = env.rng().below(100);
  if (what < 50 && has_room && !writable.empty()) {
    co_await make_snapshot(arbiter, any_of(writable));
  } else if (what < 70 && has_room && !there.empty()) {
    const std::string from = any_of(there);
    const std::string name = fmt::format("c{}", ++last_snapshot_);
    VolumeFacts& facts = facts_.volumes[name];
    facts.name = name;
    for (uint64_t block = 0; block < kVolumeExtents * kExtentBlocks; ++block) {
      const SnapshotFacts& snapshot = facts_.snapshots[from];
      const auto seen = snapshot.seen.find(block);
      facts.oracle.seed(block, seen == snapshot.seen.end() ? snapshot.values(block)
                                                           : std::set<uint64_t>{seen->second});
    }
    const Result<arbiter::VolumeRecord> made = co_await arbiter.clone(from, name);
    facts_.cloned += made ? 1 : 0;
  } else if (what < 90) {
    for (const std::string& name : writable) {
      if (name.starts_with("c")) there.push_back(name);
    }
    if (there.empty()) co_return;
    [[maybe_unused]] const Result<void> gone = co_await arbiter.destroy(any_of(there), true);
  }
}

Task<void> Operator::make_snapshot(arbiter::Arbiter& arbiter, std::string volume) {
  const std::string name = fmt::format("s{}", ++last_snapshot_);
  const std::string full = volume::snapshot_name(volume, name);
  const VolumeFacts& facts = facts_.volumes[volume];
  SnapshotFacts& snapshot = facts_.snapshots[full];
  snapshot.before = facts.oracle;
  snapshot.epoch = facts.epoch;
  const Result<arbiter::VolumeRecord> made = co_await arbiter.snapshot(volume, name);
  if (!made) co_return;
  ++facts_.snapshots_made;
  snapshot.is_made = true;
  snapshot.has_one_holder =
      facts.epoch == snapshot.epoch && facts.oracle.doubts() == snapshot.before.doubts();
}

Task<void> Operator::destroy_volumes(arbiter::Arbiter& arbiter) {
  std::vector<std::string> names;
  for (const auto& [id, volume] : arbiter.pool().volumes()) names.push_back(volume.record.name);
  for (const std::string& name : names) {
    [[maybe_unused]] const Result<void> gone = co_await arbiter.destroy(name, true);
  }
}

}  // namespace cairn::volume_tests
