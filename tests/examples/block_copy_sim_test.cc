// SPDX-License-Identifier: Apache-2.0
// The block-copy example on disks that stall, fail, fill up and lose power, seed by seed. What was
// reported as copied is there after any crash; after healing copies succeed again.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/rng.h"
#include "base/units.h"
#include "env/disk.h"
#include "env/env.h"
#include "examples/block_copy.h"
#include "task/cancel.h"
#include "task/deadline.h"
#include "task/task.h"
#include "testing/worlds/verbs.h"
#include "world/sim/cluster.h"
#include "world/sim/options.h"
#include "world/sim/scenario/fault_plan.h"
#include "world/sim/scenario/scenario.h"

namespace cairn::examples {
namespace {

using conformance::fill_pattern;
using conformance::is_pattern;
using env::Disk;
using env::Env;
using task::CancelToken;
using task::Task;

constexpr uint64_t kSize = 256_KiB;
constexpr BlockCopyOptions kOptions = {.piece_size = 32_KiB, .in_flight_max = 8};

// What the outside world knows; a crash does not touch it.
struct Knowledge {
  uint64_t reported = 0;    // the version whose copy was reported last; 0: none
  bool is_copying = false;  // the target may hold anything
};

Task<void> sleep_a_little(Env& env) {
  [[maybe_unused]] const Result<void> slept =
      co_await task::sleep_for(env, 50_ms, env.stop_token());
}

// Tries until it works; null: stopped, or crashing.
Task<std::unique_ptr<Disk>> open_patiently(Env& env, std::string path) {
  while (!env.stop_token().requested()) {
    Result<std::unique_ptr<Disk>> disk =
        env.open_disk({.path = path, .size = kSize, .create = true});
    if (disk) co_return std::move(*disk);
    co_await sleep_a_little(env);
  }
  co_return nullptr;
}

Task<Result<void>> write_version(Env& env, Disk& disk, uint64_t version) {
  const Result<Buffer> buffer = env.buffers().allocate(kOptions.piece_size);
  if (!buffer) co_return fail(buffer.error());
  for (uint64_t offset = 0; offset < kSize; offset += buffer->size()) {
    fill_pattern(buffer->bytes(), version, offset);
    const Result<void> written = co_await disk.write(offset, buffer->bytes());
    if (!written) co_return fail(written.error());
  }
  co_return Result<void>{};
}

// Version after version: written to the source, copied to the target, reported.
Task<void> run_host(Env& env, Knowledge& known) {
  const std::unique_ptr<Disk> from = co_await open_patiently(env, "from");
  const std::unique_ptr<Disk> to = co_await open_patiently(env, "to");
  if (from == nullptr || to == nullptr) co_return;
  while (!env.stop_token().requested()) {
    const uint64_t version = known.reported + 1;
    const Result<void> written = co_await write_version(env, *from, version);
    if (written) {
      known.is_copying = true;
      const Result<uint64_t> copied =
          co_await copy_blocks(env, *from, *to, kOptions, env.stop_token());
      if (copied) {
        known.reported = version;
        known.is_copying = false;
      }
    }
    co_await sleep_a_little(env);
  }
}

class CopyWorkload final : public sim::Workload {
 public:
  void start(sim::Cluster& cluster) override {
    cluster.node("host").start([this](Env& env) { return run_host(env, known_); });
  }
  uint64_t progress() const override { return known_.reported; }
  std::string check(sim::Cluster& cluster) override {
    if (known_.reported == 0 || known_.is_copying) return "";
    std::vector<std::byte> contents(kSize);
    cluster.node("host").disk("to").peek(0, contents);
    return is_pattern(contents, known_.reported) ? "" : "a copy that was reported is not there";
  }

 private:
  Knowledge known_;
};

TEST(BlockCopyScenario, WhatWasReportedIsThereAfterEveryCrash) {
  using Kind = sim::Fault::Kind;
  sim::Scenario scenario{.name = "block copy example"};
  scenario.make = [] { return std::make_unique<CopyWorkload>(); };
  scenario.faults.nodes = {"host"};
  scenario.faults.disks = {{.node = "host", .path = "from", .size = kSize},
                           {.node = "host", .path = "to", .size = kSize}};
  scenario.faults.kinds = {Kind::kCrash,          Kind::kCrash,           Kind::kKill,
                           Kind::kPause,          Kind::kDiskStall,       Kind::kDiskFull,
                           Kind::kDiskReadErrors, Kind::kDiskWriteErrors, Kind::kDiskLatent};
  scenario.draw = [](sim::ClusterOptions& options, Rng& rng) {
    sim::draw_options(options, rng);
    options.disk.faults.read_error = rng.uniform() * 0.02;
    options.disk.faults.write_error = rng.uniform() * 0.02;
    options.disk.faults.flush_error = rng.bernoulli(0.5) ? rng.uniform() * 0.5 : 0;
  };
  scenario.fault_phase = 10_s;
  scenario.seeds = 40;
  EXPECT_EQ(run_scenario(scenario), "");
}

}  // namespace
}  // namespace cairn::examples
