// SPDX-License-Identifier: Apache-2.0
#include "bench/fabric_pair.h"

#include <algorithm>
#include <utility>

#include "bench/strangers.h"
#include "bench/workload.h"
#include "fabric/host/remote_drive.h"

namespace cairn::bench {

// One load, from the opening of its sessions to their end.
class FabricPair::Run {
 public:
  struct Targets {
    uint32_t first;
    uint32_t count;
  };
  Run(FabricPair& pair, const loadgen::DriveLoad& load, const HostSetup& host, Targets targets)
      : pair_(pair),
        host_(host),
        targets_(targets),
        jobs_(targets.count * host.sessions),
        load_(load) {
    load_.depth = load.depth / jobs_;
    load_.clock = &now;
  }

  Result<ExchangeFigures> carry() {
    if (load_.depth == 0) return fail(Errc::kInvalid, "a load with fewer requests than sessions");
    Result<std::unique_ptr<env::World>> world =
        pair_.options_.world({.cpus = {pair_.host_cpu_},
                              .poll = host_.poll,
                              .nap = host_.nap,
                              .time_calls = host_.time_calls});
    if (!world) return fail(world.error());
    const Result<void> ran = (*world)->run([this](env::Env& env) { return carry_in(env); });
    if (!ran) return fail(ran.error());
    if (!result_) return fail(result_.error());
    if (result_->error) return fail(*result_->error);
    return figures();
  }

 private:
  struct Reading {
    Usage box;
    Usage host;
  };

  task::Task<void> carry_in(env::Env& env) {
    loadgen::LoadJobs jobs;
    jobs.jobs = jobs_;
    jobs.open = [this](env::Env& there) { return open(there); };
    jobs.watch.begins = [this, &env] { before_ = read(env); };
    jobs.watch.ended = [this, &env] { after_ = read(env); };
    result_ = co_await loadgen::run_load_jobs(env, load_, jobs);
  }
  Reading read(const env::Env& env) const { return {pair_.box_->usage(), usage_of(env)}; }

  task::Task<Result<std::unique_ptr<drive::Drive>>> open(env::Env& env) {
    fabric::Uri uri = pair_.box_->uri(targets_.first + opened_++ % targets_.count);
    uri.options.host_nqn = pair_.options_.only_host;
    uri.options.doorbell = host_.doorbell;
    uri.options.header_digest = host_.digests;
    uri.options.data_digest = host_.digests;
    uri.options.queues = host_.queues;
    // Requests go to the queues in turn, so each needs room for its part and some unevenness.
    const uint32_t part = host_.queues == 1 ? load_.depth : load_.depth / host_.queues + 16;
    uri.options.depth =
        static_cast<uint16_t>(std::clamp<uint32_t>(part, 16, fabric::kHostDepthMax));
    Result<std::unique_ptr<fabric::RemoteDrive>> drive =
        co_await fabric::RemoteDrive::open(env, uri);
    if (!drive) co_return fail(drive.error());
    co_return std::move(*drive);
  }

  ExchangeFigures figures() const {
    // At a rate that is not kept, more are due than are done.
    const auto count = static_cast<double>(std::max<uint64_t>(result_->completed, 1));
    return {.per_second = result_->per_second,
            .unsent = result_->unsent,
            .latency_ns = result_->latency_ns(),
            .server = cost_between(before_.box, after_.box, count),
            .client = cost_between(before_.host, after_.host, count)};
  }

  FabricPair& pair_;
  const HostSetup& host_;
  const Targets targets_;
  const uint32_t jobs_;
  loadgen::DriveLoad load_;  // of each job
  uint32_t opened_ = 0;
  Reading before_;
  Reading after_;
  Result<loadgen::LoadResult> result_ = fail(Errc::kIo, "the load did not run");
};

Result<std::unique_ptr<FabricPair>> FabricPair::start(const BoxProcessOptions& options,
                                                      int host_cpu) {
  Result<std::unique_ptr<BoxProcess>> box = BoxProcess::start(options);
  if (!box) return fail(box.error());
  auto pair = std::unique_ptr<FabricPair>(new FabricPair(options, host_cpu, std::move(*box)));
  if (const Result<void> filled = pair->fill(); !filled) return fail(filled.error());
  return pair;
}

Result<void> FabricPair::fill() {
  loadgen::DriveLoad load{.order = loadgen::DriveLoad::Order::kSequential,
                          .read_share = 0,
                          .request_size = 128_KiB,
                          .depth = 16,
                          .duration = 60_s};
  load.requests_max = options_.memory / options_.targets / load.request_size;
  const HostSetup host;
  box_->resume();
  for (uint32_t i = 0; i < options_.targets; ++i) {
    Run run(*this, load, host, {.first = i, .count = 1});
    if (const Result<ExchangeFigures> filled = run.carry(); !filled) return fail(filled.error());
  }
  box_->pause();
  return {};
}

Result<ExchangeFigures> FabricPair::carry(const loadgen::DriveLoad& load, const HostSetup& host) {
  box_->resume();
  Result<ExchangeFigures> figures = carry_among_strangers(load, host);
  box_->pause();
  return figures;
}

Result<ExchangeFigures> FabricPair::carry_among_strangers(const loadgen::DriveLoad& load,
                                                          const HostSetup& host) {
  Result<std::unique_ptr<Strangers>> strangers =
      Strangers::start({.to = box_->uri().paths[0], .count = host.strangers, .cpu = host_cpu_});
  if (!strangers) return fail(strangers.error());
  Run run(*this, load, host, {.first = 0, .count = options_.targets});
  Result<ExchangeFigures> figures = run.carry();
  if (figures) figures->strangers = (*strangers)->stop();
  return figures;
}

}  // namespace cairn::bench
