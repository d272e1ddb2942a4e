// SPDX-License-Identifier: Apache-2.0
// `cairn plan validate FILE...`: the models against a reference, number by number.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "apps/common/command.h"
#include "apps/common/output.h"
#include "base/table.h"
#include "base/words.h"
#include "config/json_text.h"
#include "plan/flash/flash_check.h"
#include "plan/net/net_check.h"
#include "plan/snis/snis_check.h"

#ifndef CAIRN_REFERENCE_FOLDER
#error "the build says where the reference data is"
#endif

namespace cairn::apps {

namespace {

namespace fs = std::filesystem;

std::string number_text(double value) {
  return value == static_cast<double>(static_cast<int64_t>(value)) ? fmt::format("{:.0f}", value)
                                                                   : fmt::format("{:.4g}", value);
}

class PlanValidateCommand final : public Command {
 public:
  explicit PlanValidateCommand(CLI::App& app) {
    options_.reference_folder = CAIRN_REFERENCE_FOLDER;
    required(any_number(
        add_values(app, "FILE",
                   "reference tables: of flash micro cases (.json), open and closed loop, garbage "
                   "collection, per request (.csv, .csv.gz), or their folder; of networks runs.csv "
                   "or its folder; of "
                   "both together convergence.csv or its folder",
                   [this](const std::string& path) -> Attempt<void> {
                     paths_.push_back(path);
                     return {};
                   })));
    add_text(app, "--reference FOLDER", options_.reference_folder,
             "where configs.json and traces/ are, if not beside FILE");
    add_text(app, "--config NAME", options_.config,
             "the configuration, if the file's name does not tell it");
    add_integer(app, "--seed N", seed_, {.min = 0, .max = 1'000'000'000},
                "what workloads are drawn from that the reference does not list");
    add_switch(app, "--all", all_, "print every number, not only those outside their tolerance");
    add_switch(app, "--json", json_, "print one JSON object");
    set_examples(
        app, {"cairn plan validate tests/data/mqsim/d_micro_golden.json",
              "cairn plan validate tests/data/mqsim --all", "cairn plan validate tests/data/net",
              "cairn plan validate tests/data/snis"});
  }

  Attempt<int> run() override {
    options_.seed = static_cast<uint32_t>(seed_);
    std::vector<plan::Comparison> found;
    for (const std::string& path : paths_) {
      Attempt<std::vector<plan::Comparison>> checked = check(path);
      if (!checked) return std::unexpected(checked.error());
      found.insert(found.end(), checked->begin(), checked->end());
    }
    const auto bad = static_cast<size_t>(
        std::ranges::count_if(found, [](const plan::Comparison& c) { return !c.ok(); }));
    say(json_ ? json_of(found, bad) : text_of(found, bad));
    return bad == 0 ? kExitOk : kExitFailed;
  }

 private:
  Attempt<std::vector<plan::Comparison>> check(const std::string& path) const {
    const fs::path file(path);
    if (plan::is_snis_reference(path)) return plan::check_snis_file(path);
    if (plan::is_net_reference(path)) return check_network(path);
    std::error_code ignored;
    if (fs::is_directory(file, ignored)) return check_folder(file);
    if (file.filename() == "fct_per_flow.json") {
      const fs::path runs = file.parent_path() / "runs.csv";
      if (plan::is_net_reference(runs.string())) return check_network(runs.string());
    }
    if (is_companion(file)) {
      return refuse(
          fmt::format("{} is read together with the tables of its folder: name one of "
                      "them, or the folder",
                      in_quotes(path)));
    }
    return plan::check_flash_file(path, options_);
  }

  Attempt<std::vector<plan::Comparison>> check_network(const std::string& path) const {
    return plan::check_net_file(path, {.seed = seed_ == 0 ? 1 : static_cast<uint32_t>(seed_)});
  }

  // Files of a reference that say nothing that could be compared.
  static bool is_companion(const fs::path& file) {
    static constexpr std::string_view kNames[] = {
        "configs.json",      "workloads_b_c.json", "speed.json",     "fig2_slowdown.csv",
        "fct_per_flow.json", "prefix.csv",         "convergence.csv"};
    return std::ranges::find(kNames, file.filename().string()) != std::end(kNames);
  }

  // Every table of the flash reference that is in it.
  Attempt<std::vector<plan::Comparison>> check_folder(const fs::path& folder) const {
    std::vector<fs::path> tables;
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
      const std::string extension = entry.path().extension().string();
      const bool may_be_one = extension == ".csv" || extension == ".json" || extension == ".gz";
      if (may_be_one && !is_companion(entry.path())) tables.push_back(entry.path());
    }
    if (tables.empty()) {
      return refuse(fmt::format("there is no table of a reference in the folder {}",
                                in_quotes(folder.string())));
    }
    std::ranges::sort(tables);
    std::vector<plan::Comparison> all;
    for (const fs::path& table : tables) {
      const Attempt<std::vector<plan::Comparison>> found =
          plan::check_flash_file(table.string(), options_);
      if (!found) return found;
      all.insert(all.end(), found->begin(), found->end());
    }
    return all;
  }

  std::string text_of(const std::vector<plan::Comparison>& found, size_t bad) const {
    std::vector<std::vector<std::string>> rows = {
        {"case", "measure", "ours", "reference", "error", ""}};
    double worst = 0;
    for (const plan::Comparison& c : found) {
      if (std::isfinite(c.tolerance)) worst = std::max(worst, c.error);
      if (!all_ && c.ok()) continue;
      rows.push_back({c.case_name, c.measure, number_text(c.ours), number_text(c.reference),
                      fmt::format("{:.3f}%", c.error * 100), c.ok() ? "ok" : "OUTSIDE"});
    }
    return fmt::format("{}{} of {} numbers within tolerance, largest error {:.3f}%\n",
                       rows.size() > 1 ? table_text(rows) : "", found.size() - bad, found.size(),
                       worst * 100);
  }

  std::string json_of(const std::vector<plan::Comparison>& found, size_t bad) const {
    nlohmann::ordered_json cases = nlohmann::ordered_json::array();
    for (const plan::Comparison& c : found) {
      cases.push_back({{"file", c.file},
                       {"case", c.case_name},
                       {"measure", c.measure},
                       {"ours", c.ours},
                       {"reference", c.reference},
                       {"error", c.error},
                       {"tolerance", c.tolerance},  // null when it is not judged
                       {"ok", c.ok()}});
    }
    return config::json_text({{"schema_version", 1},
                              {"numbers", found.size()},
                              {"outside", bad},
                              {"ok", bad == 0},
                              {"cases", cases}});
  }

  std::vector<std::string> paths_;
  plan::FlashCheckOptions options_;
  int seed_ = 0;
  bool all_ = false;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_plan_validate(CLI::App& app) {
  return std::make_unique<PlanValidateCommand>(app);
}

}  // namespace cairn::apps
