// SPDX-License-Identifier: Apache-2.0
#include "bench/box_process.h"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <string>
#include <thread>
#include <utility>

#include "fabric/target/target.h"
#include "nvme/controller/registry.h"
#include "task/deadline.h"

namespace cairn::bench {

// In shared memory: the box writes, we read.
struct BoxProcess::Figures {
  std::atomic<bool> ready;
  std::atomic<bool> failed;
  std::array<std::atomic<uint16_t>, kBoxTargetsMax> ports;
  std::atomic<uint64_t> calls;
  std::atomic<uint64_t> sends;
  std::atomic<int64_t> user_ns;
  std::atomic<int64_t> sending_ns;
  std::atomic<int64_t> receiving_ns;

  void publish(const Usage& usage) {
    calls = usage.kernel.calls;
    sends = usage.kernel.sends;
    user_ns = usage.user.ns;
    sending_ns = usage.kernel.sending.ns;
    receiving_ns = usage.kernel.receiving.ns;
  }
};

namespace {

constexpr Duration kPublished = 10_ms;

std::string nqn_of(uint32_t target) { return fmt::format("nqn.2026-11.io.cairn:bench{}", target); }

// One subsystem with one drive, reached at a port of its own.
task::Task<Result<uint16_t>> add_target(nvme::Registry& registry, fabric::Target& target,
                                        const BoxProcessOptions& options, uint32_t index) {
  const std::string nqn = nqn_of(index);
  // Room for the deepest queue that a host of ours makes.
  nvme::SubsystemOptions subsystem{.nqn = nqn, .queue_entries_max = 1024};
  if (!options.only_host.empty()) {
    subsystem.hosts = {options.only_host};
    subsystem.allow_any_host = false;
  }
  const Result<void> added = registry.add_subsystem(subsystem);
  if (!added) co_return fail(added.error());
  const uint64_t size = align_down(options.memory / options.targets, 1_MiB);
  const nvme::NamespaceOptions space{.drive = {.size = size, .block_size = options.block_size}};
  Result<uint32_t> nsid = co_await registry.add_namespace(nqn, space);
  if (!nsid) co_return fail(nsid.error());
  const Result<env::Address> at = target.listen(env::Address::loopback(0));
  if (!at) co_return fail(at.error());
  co_return at->port;
}

template <class Figures>
task::Task<void> serve(env::Env& env, const BoxProcessOptions& options, Figures& figures,
                       Result<void>& outcome) {
  nvme::Registry registry(env);
  fabric::Target target(env, registry, {.doorbell = options.doorbell});
  for (uint32_t i = 0; i < options.targets && outcome; ++i) {
    const Result<uint16_t> port = co_await add_target(registry, target, options, i);
    if (port) {
      figures.ports[i] = *port;
    } else {
      outcome = fail(port.error());
    }
  }
  figures.ready = outcome.has_value();
  while (outcome && !env.stop_token().requested()) {
    figures.publish(usage_of(env));
    const Result<void> waited = co_await task::sleep_for(env, kPublished, env.stop_token());
    (void)waited;
  }
  co_await target.close();
  co_await registry.close();
}

}  // namespace

Result<std::unique_ptr<BoxProcess>> BoxProcess::start(const BoxProcessOptions& options) {
  if (options.targets == 0 || options.targets > kBoxTargetsMax) {
    return fail(Errc::kInvalid, "a box of a benchmark has 1 to 64 targets");
  }
  Result<SharedMemory> shared = SharedMemory::make(sizeof(Figures));
  if (!shared) return fail(shared.error());
  auto* figures = new (shared->data()) Figures{};
  Result<Process> process = Process::start([&]() -> Result<void> {
    Result<void> served;
    Result<std::unique_ptr<env::World>> world = options.world({.cpus = {options.cpu},
                                                               .poll = options.poll,
                                                               .nap = options.nap,
                                                               .handle_signals = true,
                                                               .time_calls = options.time_calls});
    if (!world) {
      served = fail(world.error());
    } else {
      const Result<void> ran =
          (*world)->run([&](env::Env& env) { return serve(env, options, *figures, served); });
      if (!ran) served = ran;
    }
    figures->failed = !served;
    return served;
  });
  if (!process) return fail(process.error());
  while (!figures->ready && !figures->failed) std::this_thread::yield();
  if (figures->failed) return fail(Errc::kIo, "the box of the benchmark did not start");
  return std::unique_ptr<BoxProcess>(new BoxProcess(std::move(*shared), std::move(*process)));
}

BoxProcess::~BoxProcess() {
  process_.resume();
  process_.terminate();
  (void)process_.wait();
}

BoxProcess::Figures& BoxProcess::figures() const {
  return *reinterpret_cast<Figures*>(shared_.data());
}

fabric::Uri BoxProcess::uri(uint32_t target) const {
  fabric::Uri uri;
  uri.paths = {env::Address::loopback(figures().ports[target])};
  uri.nqn = nqn_of(target);
  return uri;
}

Usage BoxProcess::usage() const {
  const Figures& now = figures();
  Usage usage{.cpu = process_.cpu_time(), .user = {now.user_ns}, .kernel = {}};
  usage.kernel = {.calls = now.calls,
                  .sends = now.sends,
                  .sending = {now.sending_ns},
                  .receiving = {now.receiving_ns}};
  return usage;
}

}  // namespace cairn::bench
