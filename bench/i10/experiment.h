// SPDX-License-Identifier: Apache-2.0
// Experiment: one figure of the paper, from who takes part to what is shown.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "bench/contest.h"
#include "bench/fabric_boxes.h"
#include "bench/i10/paper.h"
#include "report/chart.h"
#include "report/page.h"

namespace cairn::bench::i10 {

// How our two ends batch, named as the plots name it.
struct Batching {
  std::string_view name;
  fabric::DoorbellOptions doorbell;
};
inline constexpr Batching kOff{"off", {.mode = fabric::DoorbellOptions::Mode::kOff}};
inline constexpr Batching kFixed{"fixed", {.mode = fabric::DoorbellOptions::Mode::kFixed}};
inline constexpr Batching kAdaptive{"adaptive", {.mode = fabric::DoorbellOptions::Mode::kAdaptive}};

// Where an experiment's contestants meet: their boxes live as long as it.
class Stage {
 public:
  // `world` is that of hosts and boxes.
  Stage(const Options& options, const WorldFactory& world);

  const Options& options() const { return options_; }
  // 4 KiB random reads at depth 128, for the time of one run, unless changed.
  loadgen::DriveLoad load() const;
  // Both ends alike: box and host batch, poll and time as `kind` says. `host` adds the rest.
  Result<void> add(std::string name, std::string_view variant, const BoxKind& kind,
                   const loadgen::DriveLoad& load, HostSetup host = {});
  Contest& contest() { return contest_; }

 private:
  const Options& options_;
  FabricBoxes boxes_;
  Contest contest_;
};

// Where it shows what it found.
class Showing {
 public:
  Showing(Report& figures, report::Page& page, std::vector<PaperChart>& charts)
      : figures_(figures), page_(page), charts_(charts) {}

  report::Page& page() { return page_; }
  // Left out when there is none, or it is no number.
  void ratio(const std::string& name, std::optional<double> value);
  void skip(const std::string& name, const std::string& why) { figures_.skip(name, why); }
  void chart(std::string name, std::string svg, std::string_view caption);

 private:
  Report& figures_;
  report::Page& page_;
  std::vector<PaperChart>& charts_;
};

class Experiment {
 public:
  virtual ~Experiment() = default;
  virtual std::string_view name() const = 0;
  // In which world it runs.
  virtual const WorldFactory& world(const Options& options) const { return options.world; }
  virtual Result<void> enter(Stage& stage) = 0;
  virtual void show(const Contest& contest, Showing& showing) const = 0;
};

std::unique_ptr<Experiment> make_ablation();
std::unique_ptr<Experiment> make_components();
std::unique_ptr<Experiment> make_mixes();
std::unique_ptr<Experiment> make_targets();
std::unique_ptr<Experiment> make_sizes();
std::unique_ptr<Experiment> make_load_latency();
std::unique_ptr<Experiment> make_depth_one();

// Values that several experiments plot.
double per_second(const ExchangeFigures& figures);
double per_cpu_second(const ExchangeFigures& figures);
double p50_us(const ExchangeFigures& figures);
double p99_us(const ExchangeFigures& figures);

// "2.50", or a dash when there is none: the cells of the tables.
std::string cell(std::optional<double> value, int decimals = 2);

}  // namespace cairn::bench::i10
