// SPDX-License-Identifier: Apache-2.0
#include "bench/rpc.h"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "env/call.h"
#include "rpc/client.h"
#include "rpc/server.h"
#include "rpc/wire_format.h"
#include "task/gate.h"

namespace cairn::bench {

namespace {

using env::Env;
using task::Task;

constexpr CoreId kClientCore{1};

class NullService final : public rpc::Service {
 public:
  std::string_view name() const override { return "null"; }
  rpc::Version version() const override { return {}; }
  std::optional<rpc::Method> find(uint16_t) const override { return rpc::Method{}; }
  Task<Result<std::string>> call(uint16_t, std::string body, rpc::Caller,
                                 task::CancelToken) override {
    co_return body;
  }
};

// What the client measures, on its own core.
struct Calls {
  explicit Calls(const Load& load) : turns(load), meter(load) {}
  Turns turns;
  Meter meter;
  Histogram latency_ns;
  std::optional<Error> error;
};

Task<void> call_again(rpc::Client& client, Calls& calls) {
  Time before = now();
  while (!calls.error && calls.turns.goes_on(before)) {
    const Result<rpc::Reply> reply = co_await client.call({.method = 1}, {}, {});
    if (!reply) {
      calls.error = reply.error();
      co_return;
    }
    const Time after = now();
    if (calls.meter.add(1, after)) calls.latency_ns.record((after - before).ns);
    before = after;
  }
}

// A task of the other core.
struct CallFrom {
  env::Address server;
  const Load& load;
  uint32_t depth;
  Sample& sample;

  Task<Result<uint64_t>> operator()(Env& env) {
    rpc::Client client(env, {.servers = {server}, .session = {.service = "null"}});
    auto calls = std::make_unique<Calls>(load);
    task::Gate gate;
    for (uint32_t i = 0; i < depth; ++i) gate.spawn(call_again(client, *calls));
    co_await gate.close();
    co_await client.close();
    if (calls->error) co_return fail(*calls->error);
    sample.per_second = calls->meter.per_second();
    sample.latency_ns = calls->latency_ns;
    co_return calls->meter.total();
  }
};

Task<void> run_both(Env& env, const Load& load, uint32_t depth, Sample& sample,
                    Result<uint64_t>& total) {
  NullService service;
  rpc::Server server(env, service);
  const Result<env::Address> at = server.listen(env::Address::loopback(0));
  if (at) {
    const CallFrom client{*at, load, depth, sample};
    total = co_await env::call_on(env, kClientCore, client);
  } else {
    total = fail(at.error());
  }
  co_await server.close();
}

Result<Sample> calls(const RpcOptions& options, uint32_t depth) {
  env::WorldOptions world_options;
  world_options.cpus = {options.load.server_cpu, options.load.client_cpu};
  Result<std::unique_ptr<env::World>> world = options.world(world_options);
  if (!world) return fail(world.error());
  Sample sample;
  Result<uint64_t> total = fail(Errc::kClosed, "not run");
  const CpuMeter cpu;
  const Result<void> ran = (*world)->run(
      [&](Env& env) -> Task<void> { return run_both(env, options.load, depth, sample, total); });
  if (!ran) return fail(ran.error());
  if (!total) return fail(total.error());
  sample.cpu_us_per_operation = cpu.us_per(static_cast<double>(*total));
  return sample;
}

// As many heads in one piece, there and back.
Result<Sample> bare(const RpcOptions& options, uint32_t depth) {
  Load load = options.load;
  load.message_size = static_cast<uint32_t>(rpc::kHeadSize) * depth;
  Result<Sample> sample = world_pingpong(options.world, {.load = load});
  if (!sample) return sample;
  sample->per_second *= depth;
  sample->cpu_us_per_operation /= depth;
  return sample;
}

struct Contestant {
  const char* name;
  Result<Sample> (*run)(const RpcOptions& options, uint32_t depth);
  uint32_t depth;
  Measurement measurement = {};
  std::vector<double> cpu_us = {};
  Histogram latency_ns = {};
};

double p50(const Contestant& contestant) {
  return static_cast<double>(contestant.latency_ns.p50());
}

}  // namespace

Result<Report> bench_rpc(const RpcOptions& options) {
  std::vector<Contestant> all = {{"rpc_call", &calls, 1},
                                 {"bare_exchange", &bare, 1},
                                 {"rpc_calls", &calls, options.depth},
                                 {"bare_batch", &bare, options.depth}};
  for (int round = 0; round < options.rounds; ++round) {
    for (Contestant& each : all) {
      if (options.progress) {
        options.progress(fmt::format("round {} of {}: {}", round + 1, options.rounds, each.name));
      }
      const Result<Sample> sample = each.run(options, each.depth);
      if (!sample) return fail(sample.error());
      each.measurement.samples.push_back(sample->per_second);
      each.cpu_us.push_back(sample->cpu_us_per_operation);
      each.latency_ns.merge(sample->latency_ns);
    }
  }
  Report report("rpc");
  for (Contestant& each : all) {
    each.measurement.name = each.name;
    each.measurement.unit = "calls/s";
    each.measurement.add_latency(each.latency_ns);
    each.measurement.extras.emplace_back("at_once", each.depth);
    each.measurement.extras.emplace_back("cpu_us_per_operation", median(each.cpu_us));
  }
  report.add_ratio("rpc_call_vs_bare", paired_ratio(all[0].measurement, all[1].measurement));
  report.add_ratio("rpc_calls_vs_bare", paired_ratio(all[2].measurement, all[3].measurement));
  report.add_ratio("rpc_call_p50_vs_bare", p50(all[0]) / p50(all[1]));
  for (Contestant& each : all) report.add(std::move(each.measurement));
  return report;
}

}  // namespace cairn::bench
