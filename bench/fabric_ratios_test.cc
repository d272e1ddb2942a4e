// SPDX-License-Identifier: Apache-2.0
#include "bench/fabric_ratios.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace cairn::bench {
namespace {

using namespace fabric_names;

// A contest in which everybody does just what the test says, round after round.
class Fabricated {
 public:
  void did(std::string_view load, std::string_view variant, std::vector<ExchangeFigures> rounds) {
    rounds_ = std::max(rounds_, static_cast<int>(rounds.size()));
    auto next = std::make_shared<size_t>(0);
    contest_.add(std::string(load), std::string(variant),
                 [rounds, next]() -> Result<ExchangeFigures> { return rounds[(*next)++]; });
  }
  nlohmann::json report() {
    EXPECT_TRUE(contest_.run(rounds_, {}));
    Report report("fabric");
    report_exchanges(contest_, report);
    add_fabric_ratios(contest_, report);
    return nlohmann::json::parse(report.json().dump());
  }
  nlohmann::json ratios() { return report()["ratios"]; }

 private:
  Contest contest_;
  int rounds_ = 0;
};

ExchangeFigures rate(double per_second) { return {.per_second = per_second}; }
ExchangeFigures cpu(double box_us, double host_us, double per_second = 1) {
  return {.per_second = per_second, .server = {.cpu_us = box_us}, .client = {.cpu_us = host_us}};
}
ExchangeFigures latency(uint64_t ns) {
  ExchangeFigures figures;
  figures.latency_ns.record(ns);
  return figures;
}

TEST(FabricRatios, NobodyTookPartAndThereAreNone) {
  Fabricated none;
  EXPECT_TRUE(none.ratios().empty());
}

TEST(FabricRatios, AreTheMedianOfThoseWithinTheRounds) {
  Fabricated contest;
  contest.did("read4k_qd128", kBare, {rate(100), rate(200), rate(1000)});
  contest.did("read4k_qd128", kPolling, {rate(50), rate(160), rate(300)});
  EXPECT_DOUBLE_EQ(contest.ratios()["read4k_qd128_vs_bare"], 0.5);
}

TEST(FabricRatios, ARoundInWhichTheBaselineDidNothingDoesNotCount) {
  Fabricated contest;
  contest.did("read4k_qd1", kBare, {rate(0), rate(200)});
  contest.did("read4k_qd1", kPolling, {rate(50), rate(160)});
  EXPECT_DOUBLE_EQ(contest.ratios()["read4k_qd1_vs_bare"], 0.8);
}

TEST(FabricRatios, PerCpuCountsBothSides) {
  Fabricated contest;
  contest.did("read4k_qd128", kSleeping, {cpu(1, 3)});
  contest.did("read4k_qd128", kOff, {cpu(6, 4)});
  EXPECT_DOUBLE_EQ(contest.ratios()["read4k_qd128_per_cpu_vs_off"], 2.5);
}

TEST(FabricRatios, DepthOneComparesMedianLatencies) {
  Fabricated contest;
  contest.did("read4k_qd1", kSleeping, {latency(63)});
  contest.did("read4k_qd1", kOff, {latency(60)});
  contest.did("read4k_qd1", kFixed, {latency(120)});
  const auto ratios = contest.ratios();
  EXPECT_DOUBLE_EQ(ratios["read4k_qd1_p50_vs_off"], 63.0 / 60);
  EXPECT_DOUBLE_EQ(ratios["read4k_qd1_p50_fixed_vs_off"], 2);
}

TEST(FabricRatios, SendsAreThoseOfBothSides) {
  Fabricated contest;
  ExchangeFigures figures;
  figures.server.sends = 0.03125;
  figures.client.sends = 0.0625;
  contest.did("read4k_qd128", kSleeping, {figures});
  EXPECT_DOUBLE_EQ(contest.ratios()["sends_per_io_qd128"], 0.09375);
}

TEST(FabricRatios, DigestsCostWhatIsMissingWithThem) {
  Fabricated contest;
  contest.did("read4k_qd128", kSleeping, {cpu(4, 4, 1000)});
  contest.did("read4k_qd128", kDigests, {cpu(5, 5, 900)});
  const auto ratios = contest.ratios();
  EXPECT_DOUBLE_EQ(ratios["digest_cost_read4k"], 1 - 0.8);
  EXPECT_DOUBLE_EQ(ratios["digest_cost_read4k_iops"], 1 - 0.9);
}

TEST(FabricRatios, CoresAtARateThatWasKept) {
  Fabricated contest;
  contest.did(kPaced, kNapping, {cpu(4, 5, 50'000)});
  EXPECT_DOUBLE_EQ(contest.ratios()["cpu_cores_at_50k_iops"], 0.45);
}

TEST(FabricRatios, TheDefaultsCoresAndWhatTheyCostInLatency) {
  Fabricated contest;
  ExchangeFigures gathered = cpu(3, 4, 50'000);
  gathered.latency_ns = latency(90).latency_ns;
  ExchangeFigures woken = cpu(4, 5, 50'000);
  woken.latency_ns = latency(60).latency_ns;
  contest.did(kPaced, kDefault, {gathered});
  contest.did(kPaced, kSleeping, {woken});
  const auto ratios = contest.ratios();
  EXPECT_DOUBLE_EQ(ratios["cpu_cores_at_50k_iops_default"], 0.35);
  EXPECT_DOUBLE_EQ(ratios["p50_at_50k_iops_default_vs_sleeping"], 1.5);
}

TEST(FabricRatios, ARateThatWasNotKeptSaysSoInstead) {
  Fabricated contest;
  contest.did(kPaced, kNapping, {cpu(4, 5, 40'000)});
  const auto report = contest.report();
  EXPECT_FALSE(report["ratios"].contains("cpu_cores_at_50k_iops"));
  EXPECT_EQ(report["skipped"]["cpu_cores_at_50k_iops"],
            "only 40000 of 50000 reads a second were done: leave the machine alone and run it "
            "again");
}

TEST(FabricRatios, ManyAgainstOneOfTheSameTotalDepth) {
  Fabricated contest;
  contest.did(kConnections, kOneConnection, {rate(400)});
  contest.did(kConnections, kManyConnections, {rate(100)});
  contest.did(kTargetsRead, kOneTarget, {rate(400)});
  contest.did(kTargetsRead, kManyTargets, {rate(300)});
  contest.did(kTargetsWrite, kOneTarget, {rate(400)});
  contest.did(kTargetsWrite, kManyTargets, {rate(200)});
  const auto ratios = contest.ratios();
  EXPECT_DOUBLE_EQ(ratios["conn1000_vs_conn1"], 0.25);
  EXPECT_DOUBLE_EQ(ratios["targets48_vs_1"], 0.75);
  EXPECT_DOUBLE_EQ(ratios["targets48_vs_1_write4k"], 0.5);
}

// A friend whose p99 is 50 ns alone, and so much next to 1, 10, 100 and 1000 strangers.
nlohmann::json report_of_friend(const std::vector<uint64_t>& p99_ns) {
  Fabricated contest;
  contest.did(kFriend, kQuiet, {latency(50)});
  for (size_t i = 0; i < p99_ns.size(); ++i) {
    ExchangeFigures figures = latency(p99_ns[i]);
    figures.strangers = kStrangerCounts[i];
    contest.did(kFriend, among_strangers(kStrangerCounts[i]), {figures});
  }
  return contest.report();
}
nlohmann::json result_named(const nlohmann::json& report, const std::string& name) {
  for (const nlohmann::json& each : report["results"]) {
    if (each["name"] == name) return each;
  }
  return {};
}

TEST(FabricRatios, TheFewestStrangersThatSlowAFriendTenfoldCount) {
  const auto report = report_of_friend({50, 60, 500, 100});
  EXPECT_DOUBLE_EQ(report["ratios"]["strangers_to_slow_a_friend"], 100);
  EXPECT_DOUBLE_EQ(report["ratios"]["friend_p99_under_attack_vs_quiet"], 2);
  const auto result = result_named(report, "strangers_to_slow_a_friend");
  EXPECT_EQ(result["threshold_reached"], 1);
  EXPECT_DOUBLE_EQ(result["p99_vs_quiet_10"], 1.2);
}

TEST(FabricRatios, StrangersWhoSlowNobodyAreALowerBoundAndMarkedAsSuch) {
  const auto report = report_of_friend({50, 50, 50, 100});
  EXPECT_DOUBLE_EQ(report["ratios"]["strangers_to_slow_a_friend"], 1000);
  const auto result = result_named(report, "strangers_to_slow_a_friend");
  EXPECT_EQ(result["threshold_reached"], 0);
  EXPECT_EQ(result["unit"], "connections");
  EXPECT_EQ(result["quiet_p99_vs_p50"], 1);
}

TEST(FabricRatios, AFriendWithoutAQuietRunHasNone) {
  Fabricated contest;
  contest.did(kFriend, among_strangers(1), {latency(50)});
  EXPECT_FALSE(contest.ratios().contains("strangers_to_slow_a_friend"));
}

TEST(Contest, TheFirstErrorEndsIt) {
  Contest contest;
  int later = 0;
  contest.add("a", "x", []() -> Result<ExchangeFigures> { return fail(Errc::kIo, "broken"); });
  contest.add("b", "x", [&]() -> Result<ExchangeFigures> {
    ++later;
    return ExchangeFigures{};
  });
  const Result<void> ran = contest.run(2, {});
  ASSERT_FALSE(ran);
  EXPECT_EQ(ran.error(), Errc::kIo);
  EXPECT_EQ(later, 0);
}

TEST(Contest, WhoComesLateInOneRoundMayComeEarlyInTheNext) {
  std::string turns;
  ContestOf<int> contest;
  for (const char* name : {"a", "b", "c"}) {
    contest.add(name, "", [&turns, name] {
      turns += name;
      return 0;
    });
  }
  ASSERT_TRUE(contest.run(3, {}, ContestOf<int>::Order::kThereAndBack));
  EXPECT_EQ(turns, "abccbaabc");
}

TEST(Contest, TellsWhatIsAboutToRun) {
  Contest contest;
  contest.add("a", "x", []() -> Result<ExchangeFigures> { return ExchangeFigures{}; });
  std::vector<std::string> told;
  ASSERT_TRUE(contest.run(2, [&](std::string_view what) { told.emplace_back(what); }));
  EXPECT_EQ(told, (std::vector<std::string>{"round 1 of 2: a x", "round 2 of 2: a x"}));
}

}  // namespace
}  // namespace cairn::bench
