// SPDX-License-Identifier: Apache-2.0
#include "bench/fabric_ratios.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>

namespace cairn::bench {

namespace {

using namespace fabric_names;

double per_second(const ExchangeFigures& each) { return each.per_second; }
double per_cpu_second(const ExchangeFigures& each) { return 1e6 / each.cpu_us(); }
double p50(const ExchangeFigures& each) { return static_cast<double>(each.latency_ns.p50()); }

double p99(const ExchangeFigures& each) { return static_cast<double>(each.latency_ns.p99()); }

class Ratios {
 public:
  Ratios(const Contest& contest, Report& report) : contest_(contest), report_(report) {}

  // `one` against `other`, two variants of one load.
  void add(const std::string& name, std::string_view load, std::string_view one,
           std::string_view other, const Contest::Value& value) {
    add(name, contest_.ratio({load, one}, {load, other}, value));
  }
  void add(const std::string& name, std::optional<double> value) {
    if (value) report_.add_ratio(name, *value);
  }

  // Against the ceiling of this machine.
  void add_bare() {
    const std::pair<std::string, std::string> kRatios[] = {
        {"read4k_qd128", "read4k_qd128"}, {"read4k_qd32", "read4k_qd32"},
        {"read4k_qd1", "read4k_qd1"},     {"write4k_qd128", "write4k_qd128"},
        {"write4k_qd32", "write4k_qd32"}, {"write4k_qd1", "write4k_qd1"},
        {"read128k", "read128k_qd32"},    {"write128k", "write128k_qd32"}};
    for (const auto& [name, load] : kRatios) {
      add(name + "_vs_bare", load, kPolling, kBare, per_second);
      add(name + "_sleeping_vs_bare", load, kSleeping, kBare, per_second);
    }
  }

  // What batching saves at depth, and what it costs without any.
  void add_batching() {
    for (const std::string kind : {"read4k", "write4k"}) {
      for (const std::string depth : {"_qd128", "_qd32"}) {
        add(kind + depth + "_per_cpu_vs_off", kind + depth, kSleeping, kOff, per_cpu_second);
      }
      add(kind + "_qd1_p50_vs_off", kind + "_qd1", kSleeping, kOff, p50);
      add(kind + "_qd1_p50_fixed_vs_off", kind + "_qd1", kFixed, kOff, p50);
    }
    const auto sends = [](const ExchangeFigures& each) { return each.sends(); };
    add("sends_per_io_qd128", contest_.median_of("read4k_qd128", kSleeping, sends));
    add("write4k_sends_per_io_qd128", contest_.median_of("write4k_qd128", kSleeping, sends));
  }

  void add_digests() {
    const auto cost = [](std::optional<double> kept) -> std::optional<double> {
      return kept ? std::optional(1 - *kept) : std::nullopt;
    };
    for (const std::string kind : {"read4k", "write4k"}) {
      const std::string load = kind + "_qd128";
      const Contest::Side with{load, kDigests};
      const Contest::Side without{load, kSleeping};
      add("digest_cost_" + kind, cost(contest_.ratio(with, without, per_cpu_second)));
      add("digest_cost_" + kind + "_iops", cost(contest_.ratio(with, without, per_second)));
    }
  }

  void add_paced() {
    add_cores("cpu_cores_at_50k_iops", kNapping);
    add_cores("cpu_cores_at_50k_iops_default", kDefault);
    add("p50_at_50k_iops_default_vs_sleeping", kPaced, kDefault, kSleeping, p50);
    add_cores("cpu_cores_at_50k_iops_sleeping", kSleeping);
    add_cores("cpu_cores_at_50k_iops_fixed", kFixed);
    add_cores("cpu_cores_at_50k_iops_off", kOff);
  }
  void add_cores(const std::string& name, std::string_view variant) {
    const std::optional<double> rate = contest_.median_of(kPaced, variant, per_second);
    if (!rate) return;
    if (*rate < kPacedRate * kPacedShareMin) {
      return report_.skip(name, fmt::format("only {:.0f} of {:.0f} reads a second were done: "
                                            "leave the machine alone and run it again",
                                            *rate, kPacedRate));
    }
    const auto cores = [](const ExchangeFigures& each) { return each.cores(); };
    add(name, contest_.median_of(kPaced, variant, cores));
  }

  void add_scale() {
    add("conn1000_vs_conn1", kConnections, kManyConnections, kOneConnection, per_second);
    add("conn1000_vs_conn1_off", kConnections, kManyConnectionsOff, kOneConnectionOff, per_second);
    add("targets48_vs_1", kTargetsRead, kManyTargets, kOneTarget, per_second);
    add("targets48_vs_1_write4k", kTargetsWrite, kManyTargets, kOneTarget, per_second);
  }

  void add_strangers() {
    Measurement slowed{.name = "strangers_to_slow_a_friend",
                       .variant = std::string(kSleeping),
                       .unit = "connections"};
    std::optional<double> ratio;
    bool is_reached = false;
    for (const uint32_t count : kStrangerCounts) {
      ratio = contest_.ratio({kFriend, among_strangers(count)}, {kFriend, kQuiet}, p99);
      if (!ratio) return;
      slowed.extras.emplace_back(fmt::format("p99_vs_quiet_{}", count), *ratio);
      if (is_reached) continue;
      slowed.samples = {static_cast<double>(count)};
      is_reached = *ratio >= kSlowedFactor;
    }
    const auto spread = [](const ExchangeFigures& each) { return p99(each) / p50(each); };
    slowed.extras.emplace_back("quiet_p99_vs_p50",
                               contest_.median_of(kFriend, kQuiet, spread).value_or(0));
    slowed.extras.emplace_back("threshold_reached", is_reached ? 1 : 0);
    add(slowed.name, slowed.value());
    add("friend_p99_under_attack_vs_quiet", ratio);
    report_.add(std::move(slowed));
  }

 private:
  const Contest& contest_;
  Report& report_;
};

}  // namespace

std::string fabric_names::among_strangers(uint32_t count) {
  return fmt::format("strangers{}", count);
}

void add_fabric_ratios(const Contest& contest, Report& report) {
  Ratios ratios(contest, report);
  ratios.add_bare();
  ratios.add_batching();
  ratios.add_digests();
  ratios.add_paced();
  ratios.add_scale();
  ratios.add_strangers();
}

}  // namespace cairn::bench
