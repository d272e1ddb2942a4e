// SPDX-License-Identifier: Apache-2.0
#include "bench/i10/experiment.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace cairn::bench::i10 {
namespace {

// What an experiment shows of a contest in which everybody did as the test says.
class Shown {
 public:
  void did(std::string load, std::string_view variant, const ExchangeFigures& figures) {
    contest_.add(std::move(load), std::string(variant),
                 [figures]() -> Result<ExchangeFigures> { return figures; });
  }
  nlohmann::json ratios_of(const Experiment& experiment) {
    EXPECT_TRUE(contest_.run(1, {}));
    Showing showing(figures_, page_, charts_);
    experiment.show(contest_, showing);
    return nlohmann::json::parse(figures_.json().dump())["ratios"];
  }
  std::string html() const { return page_.html(); }
  size_t charts() const { return charts_.size(); }

 private:
  Contest contest_;
  Report figures_{"paper_i10"};
  report::Page page_{"a page", ""};
  std::vector<PaperChart> charts_;
};

ExchangeFigures did(double per_second, double cpu_us = 1) {
  return {.per_second = per_second, .server = {.cpu_us = cpu_us}};
}
ExchangeFigures waited(double per_second, uint64_t us) {
  ExchangeFigures figures = did(per_second);
  figures.latency_ns.record(us * 1000);
  return figures;
}

TEST(I10, EveryExperimentShowsSomethingEvenWithoutFigures) {
  for (const auto& make : {make_ablation, make_components, make_mixes, make_targets, make_sizes,
                           make_load_latency, make_depth_one}) {
    const std::unique_ptr<Experiment> experiment = make();
    Shown shown;
    shown.ratios_of(*experiment);
    EXPECT_GE(shown.charts(), 1U) << experiment->name();
    EXPECT_NE(shown.html().find("<h2>"), std::string::npos) << experiment->name();
    EXPECT_EQ(shown.html().find(">nan"), std::string::npos) << experiment->name();
  }
}

TEST(I10, AblationIsAShareOfAllThree) {
  Shown shown;
  shown.did("ablation_read4k", "lanes", did(100, 8));
  shown.did("ablation_read4k", "caravans", did(300, 4));
  shown.did("ablation_read4k", "doorbells", did(400, 2));
  shown.did("ablation_read4k", "adaptive", did(380, 2.5));
  const auto ratios = shown.ratios_of(*make_ablation());
  EXPECT_DOUBLE_EQ(ratios["ablation_read4k_lanes"], 0.25);
  EXPECT_DOUBLE_EQ(ratios["ablation_read4k_caravans"], 0.75);
  EXPECT_DOUBLE_EQ(ratios["ablation_read4k_adaptive"], 0.95);
  EXPECT_DOUBLE_EQ(ratios["ablation_read4k_doorbells_per_cpu_vs_lanes"], 4);
}

TEST(I10, ALoadThatWasNotKeptHasNoLatency) {
  Shown shown;
  for (const auto& [variant, us] : {std::pair{"off", 50}, {"fixed", 150}, {"adaptive", 50}}) {
    for (const int rate_k : {2, 5, 10}) {
      shown.did(fmt::format("load_{}k", rate_k), variant, waited(rate_k * 1000, us));
    }
  }
  shown.did("load_20k", "off", waited(12'000, 5000));
  shown.did("load_20k", "fixed", waited(20'000, 150));
  shown.did("load_20k", "adaptive", waited(20'000, 60));
  const auto ratios = shown.ratios_of(*make_load_latency());
  EXPECT_NEAR(ratios["load_10k_p50_fixed_vs_off"], 3, 0.1);
  EXPECT_DOUBLE_EQ(ratios["load_10k_p50_adaptive_vs_off"], 1);
  EXPECT_FALSE(ratios.contains("load_20k_p50_adaptive_vs_off"));
  EXPECT_EQ(ratios["load_kept_off"], 10'000);
  EXPECT_EQ(ratios["load_kept_adaptive"], 20'000);
}

TEST(I10, MixesCompareWithOffInThroughputAndPerCpu) {
  Shown shown;
  shown.did("mix_read50", "off", did(100, 10));
  shown.did("mix_read50", "adaptive", did(300, 4));
  const auto ratios = shown.ratios_of(*make_mixes());
  EXPECT_DOUBLE_EQ(ratios["mix_read50_vs_off"], 3);
  EXPECT_DOUBLE_EQ(ratios["mix_read50_per_cpu_vs_off"], 2.5);
  EXPECT_FALSE(ratios.contains("mix_read0_vs_off"));
}

TEST(I10, TargetsCompareManyWithOne) {
  Shown shown;
  shown.did("targets1_read4k", "adaptive", did(400));
  shown.did("targets48_read4k", "adaptive", did(300));
  EXPECT_DOUBLE_EQ(shown.ratios_of(*make_targets())["targets48_vs_1_read4k"], 0.75);
}

}  // namespace
}  // namespace cairn::bench::i10
