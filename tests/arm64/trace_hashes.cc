// SPDX-License-Identifier: Apache-2.0
// trace_hashes: prints what simulated runs are, a line each: name, seed, hash of the trace.
//
// Every build prints the same, whatever machine it is for; trace_test.py compares two. Clusters
// under faults, on plain models and on those of flash and switches, and every service under load
// with a power loss. Ends with 1 when a run fails.
#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/net/parameters.h"
#include "model/net/topology.h"
#include "stack/services.h"
#include "testing/drive/modelled.h"
#include "testing/fabric/fabric_workload.h"
#include "testing/stack/files.h"
#include "testing/stack/stack_load.h"
#include "world/sim/cluster.h"
#include "world/sim/model/flash_disk.h"
#include "world/sim/model/packet_network.h"
#include "world/sim/scenario/scenario.h"
#include "world/sim/testing.h"

namespace cairn {
namespace {

using sim::RunResult;

constexpr uint64_t kLink = 1'000'000'000;

class Echo final : public sim::Workload {
 public:
  void start(sim::Cluster& cluster) override {
    cluster.node("server").start(sim::echo_server(7));
    const env::Address server = cluster.node("server").address(7);
    cluster.node("client").start(sim::echo_client(server, {.size = 9000}, stats_));
  }
  uint64_t progress() const override { return stats_.rounds; }

 private:
  sim::EchoStats stats_;
};

RunResult run_plan(const sim::Scenario& scenario, uint64_t seed) {
  return run_once(scenario, seed, plan_of(scenario, seed));
}

sim::Scenario echo() {
  sim::Scenario scenario{.name = "echo", .make = [] { return std::make_unique<Echo>(); }};
  scenario.faults.nodes = {"server", "client"};
  scenario.fault_phase = 2_s;
  return scenario;
}

// Hosts that write, read and compete on a box, while either end dies and links fail.
sim::Scenario fabric(std::string name) {
  using namespace fabric_tests;
  const std::vector<HostKind> hosts = {{.name = "plain"},
                                       {.name = "digests", .digests = true, .queues = 2}};
  sim::Scenario scenario{.name = std::move(name)};
  scenario.make = [hosts] { return std::make_unique<FabricWorkload>(hosts); };
  scenario.faults.nodes = {kBoxName};
  scenario.faults.peers = {kBoxName, "plain", "digests"};
  scenario.faults.disks = {{.node = kBoxName, .path = kDiskName}};
  scenario.faults.count_max = 4;
  scenario.faults.duration_max = 200_ms;
  scenario.fault_phase = 500_ms;
  return scenario;
}

// The same on a modelled SSD, over a modelled switch whose links are slow and whose queues are
// short, so that senders of that kind have to find their rate.
sim::Scenario modelled(std::string name, net::Parameters network) {
  flash::Parameters ssd = drive::small_ssd();
  ssd.gc_policy = flash::GcPolicy::kRga;
  network.queue_bytes_max = 12'000;
  network.ecn.thresholds = {{.at_rate = kLink, .kmin_bytes = 2000, .kmax_bytes = 6000}};
  sim::Scenario scenario = fabric(std::move(name));
  scenario.options.disk.model = sim::flash_disks(ssd);
  scenario.options.network.model =
      sim::packet_network(net::star(3, {.bits_per_s = kLink}), std::move(network));
  return scenario;
}

// A service under load that loses power once.
RunResult run_service(const drive::Service& service, uint64_t seed) {
  int files = 0;
  const auto leaf = [&] { return drive::testing_leaf(service, fmt::format("d{}", files++)); };
  stack::StackLoad load({.stack = drive::example_over(service, leaf), .requests = 200});
  sim::Cluster cluster({.seed = seed});
  sim::Node& node = cluster.node("host");
  node.start([&load](env::Env& env) { return load.live(env); });
  RunResult result;
  if (!cluster.run_until([&] { return load.done() >= 100; }, 1000_s)) result.failure = "stands";
  node.crash();
  load.crashed();
  node.restart();
  if (!cluster.run_until([&] { return !node.is_running(); }, 1000_s)) result.failure = "no end";
  if (!load.failure().empty()) result.failure = load.failure();
  result.trace_hash = cluster.trace_hash();
  return result;
}

// Whether the run passed.
bool tell(std::string_view name, uint64_t seed, const RunResult& run) {
  fmt::print("{} {} {:016x}\n", name, seed, run.trace_hash);
  if (run.failure.empty()) return true;
  fmt::print(stderr, "trace_hashes: {} with seed {}: {}\n{}", name, seed, run.failure, run.report);
  return false;
}

bool run_all() {
  using net::Control;
  const sim::Scenario scenarios[] = {
      echo(),
      fabric("fabric"),
      modelled("fabric-dcqcn", {}),
      modelled("fabric-dctcp", net::tcp_parameters(Control::kDctcp)),
      modelled("fabric-cubic", net::tcp_parameters(Control::kCubic)),
  };
  bool passed = true;
  for (const sim::Scenario& scenario : scenarios) {
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      passed &= tell(scenario.name, seed, run_plan(scenario, seed));
    }
  }
  for (const drive::Service* service : drive::services()) {
    passed &= tell(service->name, 1, run_service(*service, 1));
  }
  return passed;
}

}  // namespace
}  // namespace cairn

int main() { return cairn::run_all() ? 0 : 1; }
