// SPDX-License-Identifier: Apache-2.0
#include "bench/sim_speed.h"

#include <fmt/format.h>

#include <vector>

#include "bench/workload.h"
#include "world/sim/cluster.h"
#include "world/sim/testing.h"

namespace cairn::bench {

SimSpeed sim_echo_speed(const SimLoad& load) {
  constexpr uint16_t kPort = 7;
  constexpr Duration kWarmUp = 10_ms;
  constexpr Duration kSlice = 1_ms;  // between two looks at the real clock
  std::vector<sim::EchoStats> stats(static_cast<size_t>(load.clients));
  sim::Cluster cluster({.seed = load.seed});
  cluster.node("server").start(sim::echo_server(kPort));
  const env::Address server = cluster.node("server").address(kPort);
  for (int i = 0; i < load.clients; ++i) {
    cluster.node(fmt::format("client{}", i))
        .start(
            sim::echo_client(server, {.size = load.message_size}, stats[static_cast<size_t>(i)]));
  }
  cluster.run_for(kWarmUp);

  const uint64_t first_event = cluster.events_run();
  const Time first_moment = cluster.now();
  const Time start = now();
  const Duration wanted = Duration::from_seconds(load.seconds);
  Duration took;
  while (took < wanted) {
    cluster.run_for(kSlice);
    took = now() - start;
  }
  SimSpeed speed;
  speed.events_per_second =
      static_cast<double>(cluster.events_run() - first_event) / took.seconds();
  speed.simulated_seconds_per_second = (cluster.now() - first_moment).seconds() / took.seconds();
  for (const sim::EchoStats& one : stats) speed.rounds += one.rounds;
  return speed;
}

}  // namespace cairn::bench
