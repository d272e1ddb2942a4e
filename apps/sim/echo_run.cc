// SPDX-License-Identifier: Apache-2.0
#include "apps/sim/echo_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/rng.h"
#include "sim/cluster.h"
#include "sim/testing.h"

namespace cairn::apps {

namespace {

constexpr uint16_t kPort = 7;
constexpr Duration kHealedLimit = 60_s;
constexpr std::string_view kServer = "server";

class EchoRun {
 public:
  explicit EchoRun(const EchoRunOptions& options)
      : options_(options),
        chance_(mix64(options.seed)),
        stats_(static_cast<size_t>(options.clients)),
        cluster_(cluster_options(options)) {
    cluster_.node(kServer).start(sim::echo_server(kPort));
    const env::Address server = cluster_.node(kServer).address(kPort);
    for (size_t i = 0; i < stats_.size(); ++i) {
      names_.push_back(fmt::format("client{}", i));
      cluster_.node(names_.back())
          .start(sim::echo_client(server, {.size = options.message_size}, stats_[i]));
    }
  }

  EchoRunResult run() {
    if (options_.faults) {
      const Time end = cluster_.now() + options_.duration;
      while (cluster_.now() < end) {
        cluster_.run_for(some(10_ms, 500_ms));
        do_harm();
      }
    } else {
      cluster_.run_for(options_.duration);
    }
    const bool healthy = heal_and_go_on();
    return result(healthy);
  }

 private:
  static sim::ClusterOptions cluster_options(const EchoRunOptions& options) {
    sim::ClusterOptions cluster{.seed = options.seed};
    if (options.faults) cluster.network.faults = sim::NetworkFaults::rough();
    return cluster;
  }

  Duration some(Duration least, Duration most) {
    const auto ns =
        chance_.between(static_cast<uint64_t>(least.ns), static_cast<uint64_t>(most.ns));
    return {static_cast<int64_t>(ns)};
  }

  // One fault and, for those that last, its end a while later.
  void do_harm() {
    sim::Node& server = cluster_.node(kServer);
    const std::string& client = names_[chance_.below(names_.size())];
    const Duration lasting = some(1_ms, 2_s);
    ++faults_;
    switch (chance_.below(6)) {
      case 0:
        server.crash();
        cluster_.run_for(lasting);
        server.restart();
        break;
      case 1:
        server.kill();
        cluster_.run_for(lasting);
        server.restart();
        break;
      case 2:
        server.pause();
        cluster_.run_for(lasting);
        server.resume();
        break;
      case 3:
        cluster_.partition(kServer, client);
        cluster_.after(lasting, [this, client] { cluster_.heal(kServer, client); });
        break;
      case 4:
        cluster_.partition_one_way(client, kServer);
        cluster_.after(lasting, [this, client] { cluster_.heal(kServer, client); });
        break;
      default:
        cluster_.reset_streams(kServer, client);
    }
  }

  // True when every client makes another round once nothing is broken for good.
  bool heal_and_go_on() {
    cluster_.heal();
    std::vector<uint64_t> before;
    for (const sim::EchoStats& one : stats_) before.push_back(one.rounds);
    return cluster_.run_until(
        [&] {
          for (size_t i = 0; i < stats_.size(); ++i) {
            if (stats_[i].rounds == before[i]) return false;
          }
          return true;
        },
        kHealedLimit);
  }

  EchoRunResult result(bool healthy) const {
    EchoRunResult result;
    for (const sim::EchoStats& one : stats_) {
      result.rounds += one.rounds;
      result.errors += one.errors;
      result.mismatches += one.mismatches;
    }
    result.faults = faults_;
    result.events = cluster_.events_run();
    result.simulated = cluster_.now() - Time{};
    result.trace_hash = cluster_.trace_hash();
    if (result.mismatches > 0) {
      result.failure =
          fmt::format("{} echoes came back different\n{}", result.mismatches, cluster_.report());
    } else if (!healthy) {
      result.failure = fmt::format("a client made no round within {} s of healing\n{}",
                                   kHealedLimit.seconds(), cluster_.report());
    }
    return result;
  }

  EchoRunOptions options_;
  Rng chance_;
  std::vector<sim::EchoStats> stats_;
  std::vector<std::string> names_;
  uint64_t faults_ = 0;
  sim::Cluster cluster_;
};

}  // namespace

EchoRunResult run_echo(const EchoRunOptions& options) { return EchoRun(options).run(); }

}  // namespace cairn::apps
