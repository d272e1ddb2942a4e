// SPDX-License-Identifier: Apache-2.0
// `cairn sim check FILE...`: the models against a reference, number by number.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>

#include "apps/command.h"
#include "apps/json_text.h"
#include "apps/output.h"
#include "apps/sim/flash_check.h"
#include "apps/sim/net_check.h"
#include "apps/sim/snis_check.h"
#include "apps/table.h"

#ifndef CAIRN_REFERENCE_FOLDER
#error "the build says where the reference data is"
#endif

namespace cairn::apps {

namespace {

std::string number_text(double value) {
  return value == static_cast<double>(static_cast<int64_t>(value)) ? fmt::format("{:.0f}", value)
                                                                   : fmt::format("{:.4g}", value);
}

class SimCheckCommand final : public Command {
 public:
  explicit SimCheckCommand(CLI::App& app) {
    options_.reference_folder = CAIRN_REFERENCE_FOLDER;
    app.add_option(
           "FILE", paths_,
           "reference tables: of flash micro cases (.json), open and closed loop, garbage "
           "collection, per request (.csv, .csv.gz); of networks runs.csv or its folder; of "
           "both together convergence.csv or its folder")
        ->required();
    add_value(app, "--reference FOLDER", "where configs.json and traces/ are, if not beside FILE",
              [this](const std::string& text) -> Attempt<void> {
                options_.reference_folder = text;
                return {};
              });
    add_value(app, "--config NAME", "the configuration, if the file's name does not tell it",
              [this](const std::string& text) -> Attempt<void> {
                options_.config = text;
                return {};
              });
    add_integer(app, "--seed N", seed_, {.min = 0, .max = 1'000'000'000},
                "what workloads are drawn from that the reference does not list");
    add_switch(app, "--all", all_, "print every number, not only those outside their tolerance");
    add_switch(app, "--json", json_, "print one JSON object");
    set_examples(app, {"cairn sim check tests/data/mqsim/d_micro_golden.json",
                       "cairn sim check tests/data/mqsim/*.csv --all",
                       "cairn sim check tests/data/net", "cairn sim check tests/data/snis"});
  }

  Attempt<int> run() override {
    options_.seed = static_cast<uint32_t>(seed_);
    std::vector<Comparison> found;
    for (const std::string& path : paths_) {
      Attempt<std::vector<Comparison>> checked = check(path);
      if (!checked) return std::unexpected(checked.error());
      found.insert(found.end(), checked->begin(), checked->end());
    }
    const auto bad = static_cast<size_t>(
        std::ranges::count_if(found, [](const Comparison& c) { return !c.ok(); }));
    say(json_ ? json_of(found, bad) : text_of(found, bad));
    return bad == 0 ? kExitOk : kExitFailed;
  }

 private:
  Attempt<std::vector<Comparison>> check(const std::string& path) const {
    if (is_snis_reference(path)) return check_snis_file(path);
    if (!is_net_reference(path)) return check_flash_file(path, options_);
    return check_net_file(path, {.seed = seed_ == 0 ? 1 : static_cast<uint32_t>(seed_)});
  }

  std::string text_of(const std::vector<Comparison>& found, size_t bad) const {
    std::vector<std::vector<std::string>> rows = {
        {"case", "measure", "ours", "reference", "error", ""}};
    double worst = 0;
    for (const Comparison& c : found) {
      if (std::isfinite(c.tolerance)) worst = std::max(worst, c.error);
      if (!all_ && c.ok()) continue;
      rows.push_back({c.case_name, c.measure, number_text(c.ours), number_text(c.reference),
                      fmt::format("{:.3f}%", c.error * 100), c.ok() ? "ok" : "OUTSIDE"});
    }
    return fmt::format("{}{} of {} numbers within tolerance, largest error {:.3f}%\n",
                       rows.size() > 1 ? table_text(rows) : "", found.size() - bad, found.size(),
                       worst * 100);
  }

  std::string json_of(const std::vector<Comparison>& found, size_t bad) const {
    nlohmann::ordered_json cases = nlohmann::ordered_json::array();
    for (const Comparison& c : found) {
      cases.push_back({{"file", c.file},
                       {"case", c.case_name},
                       {"measure", c.measure},
                       {"ours", c.ours},
                       {"reference", c.reference},
                       {"error", c.error},
                       {"tolerance", c.tolerance},  // null when it is not judged
                       {"ok", c.ok()}});
    }
    return json_text({{"schema_version", 1},
                      {"numbers", found.size()},
                      {"outside", bad},
                      {"ok", bad == 0},
                      {"cases", cases}});
  }

  std::vector<std::string> paths_;
  FlashCheckOptions options_;
  int seed_ = 0;
  bool all_ = false;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_sim_check(CLI::App& app) {
  return std::make_unique<SimCheckCommand>(app);
}

}  // namespace cairn::apps
