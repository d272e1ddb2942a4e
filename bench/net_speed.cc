// SPDX-License-Identifier: Apache-2.0
#include "bench/net_speed.h"

#include "base/check.h"
#include "base/rng.h"
#include "bench/contest.h"
#include "bench/cpu_clock.h"
#include "model/net/network.h"
#include "model/net/workload.h"

namespace cairn::bench {

namespace {

struct Count final : net::FlowSink {
  void flow_done(const net::FlowDone&) override { ++flows; }
  uint64_t flows = 0;
};

struct Run {
  double seconds = 0;
  double packets = 0;
  double flows = 0;
  double link_packets = 0;
  double events = 0;
};

Run run(const net::Parameters& parameters, const std::vector<net::Flow>& flows) {
  net::Network network(net::clos({}), parameters);
  for (const net::Flow& flow : flows) network.start(flow);
  Count done;
  const double start = cpu_seconds();
  network.advance(net::kNever, done);
  const double seconds = cpu_seconds() - start;
  const net::Counters& k = network.counters();
  return {seconds, static_cast<double>(k.data_packets), static_cast<double>(done.flows),
          static_cast<double>(k.link_packets), static_cast<double>(k.events)};
}

// Small flows between random hosts, a new one every microsecond.
std::vector<net::Flow> arrivals() {
  Rng rng(2);
  std::vector<net::Flow> flows;
  for (uint32_t i = 0; i < 20'000; ++i) {
    const auto from = static_cast<uint32_t>(rng.below(256));
    flows.push_back({.tag = i,
                     .source = from,
                     .destination = static_cast<uint32_t>((from + 1 + rng.below(255)) % 256),
                     .bytes = rng.between(1'000, 50'000),
                     .start = i * net::kMicrosecond});
  }
  return flows;
}

// The reference's data packets per processor second for such a permutation.
constexpr double kReferencePackets = 24'502;

}  // namespace

void bench_net(const NetSpeedOptions& options, Report& report) {
  const std::vector<net::Flow> all_hosts = net::permutation(256, 1'000'000, 0, 1);
  const std::vector<net::Flow> small = arrivals();
  net::Parameters rates;
  rates.mode = net::Mode::kFluid;
  ContestOf<Run> contest;
  contest.add("net_clos256", "", [&] { return run(net::Parameters{}, all_hosts); });
  contest.add("net_fluid", "", [&] { return run(rates, small); });
  const Result<void> ran = contest.run(options.rounds, options.progress);
  CHECK(ran.has_value(), "a model has no errors");
  const auto& runs = contest.contestants();
  Measurement packets =
      runs[0].line("packets/s", [](const Run& run) { return run.packets / run.seconds; });
  const Run& first = runs[0].rounds.front();
  packets.extras = {{"data_packets", first.packets},
                    {"link_packets", first.link_packets},
                    {"events", first.events}};
  Measurement fluid =
      runs[1].line("flows/s", [](const Run& run) { return run.flows / run.seconds; });
  report.add_ratio("net_clos256_pkts_per_s", packets.value());
  report.add_ratio("net_clos256_vs_hpcc", packets.value() / kReferencePackets);
  report.add_ratio("net_fluid_flows_per_s", fluid.value());
  report.add(std::move(packets));
  report.add(std::move(fluid));
}

}  // namespace cairn::bench
