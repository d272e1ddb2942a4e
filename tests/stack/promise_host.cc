// SPDX-License-Identifier: Apache-2.0
#include "stack/promise_host.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

namespace cairn::stack {

namespace {

constexpr size_t kDisksMax = 12;  // of a stack
constexpr Duration kTimeout = 1000_s;

std::unique_ptr<sim::DiskModel> slow_flushes(uint64_t seed) {
  return std::make_unique<sim::SimpleDisk>(seed, sim::SimpleDiskOptions{.flush_latency = 2_ms});
}

}  // namespace

PromiseHost::PromiseHost(uint64_t seed, LoadOptions load)
    : load_(std::move(load)),
      rng_(seed),
      cluster_({.seed = seed, .disk = {.model = slow_flushes}}) {
  load_.on_load = [this] { is_loading_ = true; };
  load_.on_flushed = [this] { ++flushed_; };
  load_.on_durable = [this] { ++durable_; };
  for (size_t i = 0; i < kDisksMax; ++i) {
    node().disk(fmt::format("d{}", i)).set_judge([this](const env::DiskOp::Request& request) {
      return judge(request);
    });
  }
}

Result<void> PromiseHost::judge(const env::DiskOp::Request& request) {
  if (!break_ || (breaks_late && !is_loading_)) return {};
  return break_(asked_++, request);
}

void PromiseHost::start() {
  is_loading_ = false;
  asked_ = 0;
  flushed_ = 0;
  durable_ = 0;
  if (std::exchange(has_started_, true)) return node().restart();
  node().start([this](env::Env& env) { return load_.live(env); });
}

bool PromiseHost::runs_until(const std::function<bool()>& is_time) {
  return cluster_.run_until(
      [&] { return is_time() || !node().is_running() || !load_.failure().empty(); }, kTimeout);
}
bool PromiseHost::runs_until_flushed(uint64_t count) {
  return runs_until([this, count] { return is_loading_ && flushed_ >= count; });
}
bool PromiseHost::runs_until_durable(uint64_t count) {
  return runs_until([this, count] { return durable_ >= count; });
}
bool PromiseHost::runs_until_done(uint64_t count) {
  const uint64_t target = load_.done() + count;
  return runs_until([this, target] { return is_loading_ && load_.done() >= target; });
}
bool PromiseHost::runs_to_its_end(Duration limit) {
  return cluster_.run_until([this] { return !node().is_running(); }, limit);
}

void PromiseHost::crash() {
  node().crash();
  load_.crashed();
}

void PromiseHost::kill() {
  node().kill();
  load_.killed();
}

std::string PromiseHost::failure() const {
  return load_.failure().empty() ? "" : load_.failure() + "\n" + cluster_.report();
}

}  // namespace cairn::stack
