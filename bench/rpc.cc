// SPDX-License-Identifier: Apache-2.0
#include "bench/rpc.h"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "bench/contest.h"
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

using RpcContest = ContestOf<Sample>;

constexpr const char* kCall = "rpc_call";
constexpr const char* kBare = "bare_exchange";
constexpr const char* kCalls = "rpc_calls";
constexpr const char* kBareBatch = "bare_batch";

double per_second(const Sample& sample) { return sample.per_second; }

// Of all rounds together.
double p50(const RpcContest& contest, std::string_view name) {
  return static_cast<double>(contest.find(name, "")->merged(&Sample::latency_ns).p50());
}

Measurement measurement_of(const RpcContest::Contestant& contestant, uint32_t depth) {
  Measurement line = contestant.line("calls/s", per_second);
  line.add_latency(contestant.merged(&Sample::latency_ns));
  line.extras.emplace_back("at_once", depth);
  line.extras.emplace_back(
      "cpu_us_per_operation",
      median(contestant.values([](const Sample& each) { return each.cpu_us_per_operation; })));
  return line;
}

}  // namespace

Result<Report> bench_rpc(const RpcOptions& options) {
  RpcContest contest;
  contest.add(kCall, "", [&options] { return calls(options, 1); });
  contest.add(kBare, "", [&options] { return bare(options, 1); });
  contest.add(kCalls, "", [&options] { return calls(options, options.depth); });
  contest.add(kBareBatch, "", [&options] { return bare(options, options.depth); });
  const Result<void> ran = contest.run(options.rounds, options.progress);
  if (!ran) return fail(ran.error());
  Report report("rpc");
  for (const RpcContest::Contestant& each : contest.contestants()) {
    const bool is_one = each.load == kCall || each.load == kBare;
    report.add(measurement_of(each, is_one ? 1 : options.depth));
  }
  if (const auto ratio = contest.ratio({kCall, ""}, {kBare, ""}, per_second)) {
    report.add_ratio("rpc_call_vs_bare", *ratio);
  }
  if (const auto ratio = contest.ratio({kCalls, ""}, {kBareBatch, ""}, per_second)) {
    report.add_ratio("rpc_calls_vs_bare", *ratio);
  }
  report.add_ratio("rpc_call_p50_vs_bare", p50(contest, kCall) / p50(contest, kBare));
  return report;
}

}  // namespace cairn::bench
