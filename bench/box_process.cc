// SPDX-License-Identifier: Apache-2.0
#include "bench/box_process.h"

#include <atomic>
#include <thread>
#include <utility>

#include "fabric/target/target.h"
#include "nvme/registry.h"
#include "task/deadline.h"

namespace cairn::bench {

namespace {

constexpr const char* kNqn = "nqn.2026-11.io.cairn:bench";

}  // namespace

// In shared memory: the box writes, we read.
struct BoxProcess::Figures {
  std::atomic<uint32_t> port;  // 0: not ready
  std::atomic<bool> failed;
  std::atomic<uint64_t> system_calls;
};

namespace {

template <class Figures>
task::Task<void> serve(env::Env& env, const BoxProcessOptions& options, Figures& figures,
                       Result<void>& outcome) {
  nvme::Registry registry(env);
  fabric::Target target(env, registry, {.doorbell = options.doorbell});
  outcome = registry.add_subsystem({.nqn = kNqn});
  if (outcome) {
    const nvme::NamespaceOptions space{.drive = {.size = options.memory}};
    Result<uint32_t> added = co_await registry.add_namespace(kNqn, space);
    if (!added) outcome = fail(added.error());
  }
  if (outcome) {
    const Result<env::Address> at = target.listen(env::Address::loopback(0));
    if (!at) outcome = fail(at.error());
    if (at) figures.port = at->port;
  }
  while (outcome && !env.stop_token().requested()) {
    figures.system_calls = env.system_calls();
    const Result<void> waited = co_await task::sleep_for(env, 10_ms, env.stop_token());
    (void)waited;
  }
  co_await target.close();
  co_await registry.close();
}

}  // namespace

Result<std::unique_ptr<BoxProcess>> BoxProcess::start(const BoxProcessOptions& options) {
  Result<SharedMemory> shared = SharedMemory::make(sizeof(Figures));
  if (!shared) return fail(shared.error());
  auto* figures = new (shared->data()) Figures{};
  Result<Process> process = Process::start([&]() -> Result<void> {
    Result<void> served;
    Result<std::unique_ptr<env::World>> world =
        options.world({.cpus = {options.cpu}, .poll = options.poll, .handle_signals = true});
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
  while (figures->port == 0 && !figures->failed) std::this_thread::yield();
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

fabric::Uri BoxProcess::uri() const {
  fabric::Uri uri;
  uri.paths = {env::Address::loopback(static_cast<uint16_t>(figures().port.load()))};
  uri.nqn = kNqn;
  return uri;
}

uint64_t BoxProcess::system_calls() const { return figures().system_calls; }

}  // namespace cairn::bench
