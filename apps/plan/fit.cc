// SPDX-License-Identifier: Apache-2.0
// `cairn plan fit`: a profile for a drive that was measured with fio.
#include <fmt/format.h>

#include "apps/common/command.h"
#include "apps/common/output.h"
#include "apps/plan/progress_line.h"
#include "base/words.h"
#include "config/files.h"
#include "config/json_text.h"
#include "plan/flash/fio_points.h"
#include "plan/flash/fit_report.h"
#include "plan/flash/flash_fit.h"
#include "plan/flash/flash_profile.h"

namespace cairn::apps {

namespace {

constexpr size_t kFioMax = 64 << 20;

class PlanFitCommand final : public Command {
 public:
  explicit PlanFitCommand(CLI::App& app) {
    add_values(app, "--from FILE", "what fio measured (--output-format=json); may be repeated",
               [this](const std::string& path) -> Attempt<void> {
                 paths_.push_back(path);
                 return {};
               });
    add_text(app, "--profile NAME", profile_,
             "where to start: a profile of Cairn's or a file (laptop-tlc)");
    add_text(app, "--out FILE", out_, "write the fitted profile to a file");
    add_number(app, "--precondition P", occupancy_, 0, 100,
               "percent of the drive that random writes had filled before (0: new)");
    add_integer(app, "--trials N", trials_, {.min = 10, .max = 100'000},
                "how many drives the search tries at most (400)");
    add_integer(app, "--requests N", requests_, {.min = 500, .max = 10'000'000},
                "requests of a point in each trial (4000)");
    add_switch(app, "--json", json_, "print one JSON object");
    set_examples(app, {"cairn plan fit --from drive.json --profile pm1725a --out drive.toml",
                       "cairn plan fit --from reads.json --from writes.json --json",
                       "cairn plan ssd --profile ./drive.toml --synthetic read --qd 64"});
  }

  Attempt<int> run() override {
    if (paths_.empty()) return refuse("say what was measured: --from FILE, made by fio");
    Attempt<flash::Parameters> start = plan::load_flash_profile(profile_);
    if (!start) return std::unexpected(start.error());
    if (start->mqsim) {
      return refuse(fmt::format(
          "profile {} reproduces the MQSim reference; start from one without compat = \"mqsim\"",
          in_quotes(profile_)));
    }
    plan::FioPoints all;
    for (const std::string& path : paths_) {
      const Attempt<std::string> text = config::read_file(path, kFioMax);
      if (!text) return std::unexpected(text.error());
      Attempt<plan::FioPoints> found = plan::parse_fio(*text);
      if (!found) return refuse(fmt::format("{} {}", in_quotes(path), found.error().text));
      std::ranges::move(found->points, std::back_inserter(all.points));
      std::ranges::move(found->doubts, std::back_inserter(all.doubts));
    }
    const std::optional<plan::FlashFit> fit = fitted(*start, all.points);
    if (!fit) {
      return refuse(fmt::format(
          "the drive has too few spare blocks to be preconditioned to {} percent; ask for less",
          occupancy_));
    }
    if (!out_.empty()) {
      const std::string name = fmt::format("{} fitted to {}", profile_, fmt::join(paths_, " and "));
      if (const Attempt<void> written =
              config::replace_file(out_, plan::fit_profile(*fit, all.points, name));
          !written) {
        return std::unexpected(written.error());
      }
    }
    tell(*fit, all);
    return kExitOk;
  }

 private:
  std::optional<plan::FlashFit> fitted(const flash::Parameters& start,
                                       const std::vector<plan::FioPoint>& points) const {
    plan::FitOptions options{
        .load = {.requests = static_cast<uint64_t>(requests_), .occupancy = occupancy_ / 100},
        .trials_max = static_cast<uint64_t>(trials_)};
    ProgressLine line(!json_);
    options.on_trial = [&](uint64_t trials, double error) {
      const double part = static_cast<double>(trials) / static_cast<double>(options.trials_max);
      line.at(part, [&] { return fmt::format("{} drives, error {:.2f}%", trials, error * 100); });
    };
    return plan::fit_flash(start, points, options);
  }

  void tell(const plan::FlashFit& fit, const plan::FioPoints& all) const {
    if (json_) {
      nlohmann::ordered_json report = plan::fit_json(fit, all.points);
      report["doubts"] = all.doubts;
      say(config::json_text(report));
      return;
    }
    for (const std::string& doubt : all.doubts) say(doubt + "\n");
    say(plan::fit_text(fit, all.points));
    if (out_.empty()) say("\n--out FILE writes the profile.\n");
  }

  std::vector<std::string> paths_;
  std::string profile_ = "laptop-tlc";
  std::string out_;
  double occupancy_ = 0;
  int trials_ = 400;
  int requests_ = 4000;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_plan_fit(CLI::App& app) {
  return std::make_unique<PlanFitCommand>(app);
}

}  // namespace cairn::apps
