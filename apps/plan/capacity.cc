// SPDX-License-Identifier: Apache-2.0
// `cairn plan capacity`: how many drives, boxes and links a load needs.
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <optional>

#include "apps/common/command.h"
#include "apps/common/output.h"
#include "apps/plan/progress_line.h"
#include "apps/plan/snis_options.h"
#include "base/duration.h"
#include "base/words.h"
#include "config/files.h"
#include "plan/snis/snis_load.h"
#include "plan/snis/snis_plan.h"
#include "plan/snis/snis_system.h"
#include "snis/coupled.h"
#include "snis/metrics.h"

namespace cairn::apps {

namespace {

// That each trial runs, unless --requests says otherwise: a plan takes dozens of trials.
constexpr int kRequests = 20'000;
constexpr uint64_t kCountsBetweenLooks = 4096;

// "2M", "350k", "1200": per second.
Attempt<double> parse_rate(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  std::string_view unit(end, text.data() + text.size());
  const double scale = unit == "k" || unit == "K" ? 1e3 : unit == "M" ? 1e6 : 1;
  const bool known = unit.empty() || scale > 1;
  if (error != std::errc{} || !known || !(value * scale >= 1 && value * scale <= 1e10)) {
    return refuse(
        fmt::format("takes requests per second such as 350k or 2M, not {}", in_quotes(text)));
  }
  return value * scale;
}

class PlanCapacityCommand final : public Command {
 public:
  explicit PlanCapacityCommand(CLI::App& app) {
    required(add_value(app, "--p99 TIME",
                       "99 of 100 reads, and of 100 writes, take at most this: 500us",
                       [this](const std::string& text) -> Attempt<void> {
                         const Attempt<Duration> time = parse_short_duration(text);
                         if (!time) return std::unexpected(time.error());
                         p99_ = *time;
                         return {};
                       }));
    add_value(app, "--iops RATE", "requests per second, 350k or 2M (as the trace has them)",
              [this](const std::string& text) -> Attempt<void> {
                const Attempt<double> rate = parse_rate(text);
                if (!rate) return std::unexpected(rate.error());
                iops_ = *rate;
                return {};
              });
    load_options_.synthetic_requests = kRequests;
    load_options_.trace_requests = kRequests;
    add_load_options(app, load_options_);
    add_text(app, "--profile NAME", system_options_.profile,
             "the drives: a profile of Cairn's or a TOML file (pm1725a)");
    add_number(app, "--precondition P", system_options_.precondition_percent, 0, 100,
               "percent of each drive written before the run (0: new)");
    add_switch(app, "--fluid", system_options_.fluid, "flows as rates instead of packets");
    add_integer(app, "--initiators N", system_options_.initiators, {.min = 1, .max = 10'000},
                "hosts that send (10)");
    add_number(app, "--host-link GBPS", host_link_gbps_, 0.1, 3200, "of each host (100)");
    add_number(app, "--link GBPS", link_gbps_, 0.1, 3200, "of each link of a box (25)");
    add_integer(app, "--drives-per-box N", drives_per_box_, {.min = 1, .max = 1024},
                "that fit into a box (24)");
    add_integer(app, "--links-per-box N", links_per_box_, {.min = 1, .max = 64},
                "that a box may have (8)");
    add_integer(app, "--drives-max N", drives_max_, {.min = 1, .max = 100'000},
                "that may be bought (512)");
    add_text(app, "--html FILE", html_, "write table and plots as one page");
    add_switch(app, "--json", json_, "print one JSON object");
    set_examples(app,
                 {"cairn plan capacity --p99 500us --iops 2M --trace vdi.csv.gz --html plan.html",
                  "cairn plan capacity --p99 1ms --iops 350k --synthetic F_t_h --profile qlc"});
  }

  Attempt<int> run() override {
    if (system_options_.profile.empty()) system_options_.profile = "pm1725a";
    Attempt<plan::PlanParts> parts = load_parts();
    if (!parts) return std::unexpected(parts.error());
    // One volume over many drives, unless the user wants it otherwise.
    if (load_options_.shape.placement == trace::Placement::kByVolume) {
      load_options_.shape.placement = trace::Placement::kStriped;
    }
    load_options_.shape.initiators = parts->initiators;
    if (Attempt<void> timed = set_rate(); !timed) return std::unexpected(timed.error());

    Attempt<void> simulated;
    plan::PlanOutcome outcome{.load = name_,
                              .requests = requests_,
                              .cut = cut_,
                              .requests_in_trace = requests_in_trace(),
                              .iops = iops_,
                              .p99_ns_max = static_cast<double>(p99_.ns)};
    {
      ProgressLine progress(!json_);
      size_t trials = 0;
      outcome.plan = snis::plan(limits(), outcome.p99_ns_max, [&](const snis::Hardware& hardware) {
        Attempt<snis::Trial> trial = simulate(*parts, hardware, [&](double part) {
          progress.at((static_cast<double>(trials) + part) / expected_trials(),
                      [&] { return fmt::format("{} drives", hardware.drives); });
        });
        ++trials;
        if (trial) return *trial;
        simulated = std::unexpected(trial.error());
        return snis::Trial{.hardware = hardware};
      });
    }
    if (!simulated) return std::unexpected(simulated.error());
    if (!html_.empty()) {
      if (Attempt<void> written = config::replace_file(html_, plan::plan_page(outcome)); !written) {
        return std::unexpected(written.error());
      }
    }
    say(json_ ? plan_json(outcome) : plan_text(outcome));
    return outcome.plan.min ? kExitOk : kExitFailed;
  }

 private:
  snis::PlanLimits limits() const {
    return {.drives_max = static_cast<uint32_t>(drives_max_),
            .drives_per_box = static_cast<uint32_t>(drives_per_box_),
            .links_per_box_max = static_cast<uint32_t>(links_per_box_)};
  }
  double expected_trials() const { return 3 * std::log2(drives_max_ + 1.0) + 3; }

  Attempt<plan::PlanParts> load_parts() const {
    const Attempt<flash::Parameters> drive = plan::load_drive(system_options_);
    if (!drive) return std::unexpected(drive.error());
    if (drive->mqsim) {
      return refuse(
          fmt::format("the profile {} loses requests as its reference does; a plan needs "
                      "one without compat = \"mqsim\"",
                      in_quotes(system_options_.profile)));
    }
    const Attempt<net::Parameters> network = plan::load_transport(system_options_);
    if (!network) return std::unexpected(network.error());
    return plan::PlanParts{.drive = *drive,
                           .occupancy = system_options_.precondition_percent / 100,
                           .network = *network,
                           .link_gbps = link_gbps_,
                           .host_link_gbps = host_link_gbps_,
                           .initiators = static_cast<uint32_t>(system_options_.initiators)};
  }

  // Stretches times so that requests come as often as asked for.
  Attempt<void> set_rate() {
    const Attempt<plan::SnisLoad> load = plan::load_requests(load_options_);
    if (!load) return std::unexpected(load.error());
    name_ = load->name;
    requests_ = load->requests.size();
    cut_ = load->cut;
    const double seconds =
        static_cast<double>(load->requests.back().arrival - load->requests.front().arrival) * 1e-9;
    const auto count = static_cast<double>(load->requests.size());
    if (seconds <= 0) return refuse("all requests come at once: such a trace has no rate");
    if (iops_ == 0) iops_ = count / seconds;
    load_options_.shape.time_scale *= count / seconds / iops_;
    return {};
  }

  // Nothing of synthetic ones, and of a trace whose rest cannot be read: what was taken of it is
  // good, so the plan goes on.
  std::optional<uint64_t> requests_in_trace() const {
    if (load_options_.trace.empty()) return std::nullopt;
    if (!cut_) return requests_;
    ProgressLine progress(!json_, kCountsBetweenLooks);
    const Attempt<uint64_t> count = plan::count_requests(load_options_, [&](double part) {
      progress.at(part, [] { return "counting the trace's requests"; });
    });
    if (!count) return std::nullopt;
    return *count;
  }

  Attempt<snis::Trial> simulate(const plan::PlanParts& parts, const snis::Hardware& hardware,
                                const std::function<void(double)>& told) {
    load_options_.shape.targets = hardware.drives;
    const Attempt<plan::SnisLoad> load = plan::load_requests(load_options_);
    if (!load) return std::unexpected(load.error());
    const snis::System system = plan::system_of(parts, hardware);
    if (const auto problem = snis::check(system)) return refuse(*problem);
    const snis::SystemModels models(system);
    const snis::Iteration result = snis::run_coupled(models, load->requests, told);
    const snis::Metrics found = snis::metrics(load->requests, result.times);
    if (found.unfinished > 0) {
      return refuse(
          fmt::format("{} requests were lost by {} drives", found.unfinished, hardware.drives));
    }
    return snis::Trial{.hardware = hardware,
                       .read_p99_ns = found.read.total.p99,
                       .write_p99_ns = found.write.total.p99};
  }

  plan::SnisLoadOptions load_options_;
  plan::SnisSystemOptions system_options_;
  Duration p99_{0};
  double iops_ = 0;
  double link_gbps_ = 25;
  double host_link_gbps_ = 100;
  int drives_per_box_ = 24;
  int links_per_box_ = 8;
  int drives_max_ = 512;
  std::string name_;
  uint64_t requests_ = 0;
  bool cut_ = false;  // the trace has more
  std::string html_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_plan_capacity(CLI::App& app) {
  return std::make_unique<PlanCapacityCommand>(app);
}

}  // namespace cairn::apps
