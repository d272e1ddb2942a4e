// SPDX-License-Identifier: Apache-2.0
// `cairn plan snis`: storage and network simulated until they agree, and coupled.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <sstream>

#include "apps/common/command.h"
#include "apps/common/output.h"
#include "apps/plan/progress_line.h"
#include "apps/plan/snis_options.h"
#include "base/words.h"
#include "config/files.h"
#include "config/json_text.h"
#include "plan/snis/mpi_storage.h"
#include "plan/snis/snis_load.h"
#include "plan/snis/snis_report.h"
#include "plan/snis/snis_state.h"
#include "plan/snis/snis_system.h"
#include "snis/coupled.h"
#include "world/posix/parallel.h"

namespace cairn::apps {

namespace {

constexpr int kIterationsUnchanged = 100'000;  // without --iterations
constexpr int kBins = 250;                     // of what is drawn over time

class PlanSnisCommand final : public Command {
 public:
  explicit PlanSnisCommand(CLI::App& app) {
    const auto text = [](std::string& into) {
      return [&into](const std::string& value) -> Attempt<void> {
        into = value;
        return {};
      };
    };
    add_load_options(app, load_options_);
    add_system_options(app, system_options_);
    add_value(app, "--until WHAT",
              "stable (the paper's rules; the default), unchanged (nothing moves), count (all)",
              [this](const std::string& word) { return take_until(word); });
    iterations_given_ =
        add_integer(app, "--iterations N", options_.iterations, {.min = 0, .max = 1'000'000},
                    "at most so many (11; no limit for unchanged); 0 with --coupled: none");
    add_value(app, "--weights A,B,C", "of mean, median and 90th in Conv_C (a third each)",
              [this](const std::string& list) { return take_weights(list); });
    add_number(app, "--sigma X", options_.rules.sigma, 0, 1, "stable when Conv_C is below (0.1)");
    add_number(app, "--tau X", options_.rules.tau, 0, 1,
               "or when it changes by at most this (0.02)");
    add_integer(app, "--in-a-row N", options_.rules.in_a_row, {.min = 1, .max = 1000},
                "so many times in a row (3)");
    add_switch(app, "--coupled", coupled_, "also run both models in one loop, and compare");
    add_integer(app, "--threads N", threads_, {.min = 1, .max = 1024},
                "for drives; the result is the same with any number (all CPUs)");
    add_switch(app, "--mpi", mpi_, "spread drives over the processes of mpirun");
    add_value(app, "--resume FOLDER", "keep each iteration there, and go on from what is there",
              text(resume_));
    add_value(app, "--csv FILE", "write a line for each iteration", text(csv_));
    add_value(app, "--times FILE", "write the times of each request, as CSV", text(times_));
    add_value(app, "--html FILE", "write a report with plots, as one page", text(html_));
    add_switch(app, "--json", json_, "print one JSON object");
    set_examples(app, {"cairn plan snis --synthetic F_t_h --html report.html",
                       "cairn plan snis --synthetic F_t_h --until unchanged --coupled --json",
                       "cairn plan snis --trace vdi.csv.gz --profile pm1725a --targets 4",
                       "mpirun -n 4 cairn plan snis --mpi --synthetic F_s_h --targets 8 "
                       "--place stripe"});
  }

  Attempt<int> run() override {
    if (options_.iterations == 0 && !coupled_) {
      return refuse("--iterations 0 leaves nothing to do: add --coupled");
    }
    if (options_.until == snis::Until::kUnchanged && !was_given(*iterations_given_)) {
      options_.iterations = kIterationsUnchanged;
    }
    std::unique_ptr<plan::Mpi> mpi;
    if (mpi_) {
      Attempt<std::unique_ptr<plan::Mpi>> started = plan::Mpi::start();
      if (!started) return std::unexpected(started.error());
      mpi = std::move(*started);
    }
    Attempt<plan::SnisSystem> system = plan::load_system(system_options_);
    if (!system) return std::unexpected(system.error());
    load_options_.shape.targets = static_cast<uint32_t>(system_options_.targets);
    load_options_.shape.initiators = static_cast<uint32_t>(system_options_.initiators);
    const Attempt<plan::SnisLoad> load = plan::load_requests(load_options_);
    if (!load) return std::unexpected(load.error());
    const bool speaks = !mpi || mpi->rank() == 0;
    if (load->cut && speaks) {
      fmt::print(stderr, "cairn: took the first {} requests; --requests asks for others\n",
                 load->requests.size());
    }
    if (load->idle_targets > 0 && speaks) {
      fmt::print(stderr,
                 "cairn: no request is for {} of the {} targets, which have a volume each; --place "
                 "stripe spreads them over all\n",
                 load->idle_targets, load_options_.shape.targets);
    }
    const snis::Picos span = snis::network_time(load->requests.back().arrival);
    system->system.network.bin = std::max<snis::Picos>(span / kBins, net::kMicrosecond);

    const snis::SystemModels models(system->system);
    const snis::Share share = [threads = threads()](size_t count, const auto& job) {
      posix::run_parallel(threads, count, job);
    };
    snis::LocalStorage local(models, load->requests, share);
    if (!mpi) return simulate(models, *system, *load, local);
    plan::MpiStorage shared(*mpi, local, models.targets(), load->requests.size(), share);
    if (speaks) return simulate(models, *system, *load, shared);
    shared.serve();
    return kExitOk;
  }

 private:
  Attempt<void> take_until(const std::string& word) {
    static const std::vector<std::string> known = {"count", "stable", "unchanged"};
    const auto found = std::ranges::find(known, word);
    if (found == known.end()) {
      return refuse(fmt::format("is one of {}{}", comma_list(known), did_you_mean(word, known)));
    }
    options_.until = static_cast<snis::Until>(found - known.begin());
    return {};
  }

  Attempt<void> take_weights(const std::string& list) {
    std::istringstream in(list);
    snis::Weights weights{};
    char comma = ',';
    bool good = true;
    for (size_t i = 0; i < weights.size(); ++i) {
      if (i > 0) in >> comma;
      good = in >> weights[i] && comma == ',' && weights[i] >= 0 && std::isfinite(weights[i]);
      if (!good) break;
    }
    const double sum = weights[0] + weights[1] + weights[2];
    if (!good || !in.eof() || std::abs(sum - 1) > 1e-6) {
      return refuse("takes three numbers from 0 on whose sum is 1, such as 0.5,0.25,0.25");
    }
    options_.rules.weights = weights;
    return {};
  }

  size_t threads() const {
    return threads_ > 0 ? static_cast<size_t>(threads_) : posix::threads_here();
  }

  Attempt<int> simulate(const snis::Models& models, const plan::SnisSystem& system,
                        const plan::SnisLoad& load, snis::Storage& storage) {
    snis::Iterations iterations(models, load.requests, storage, options_);
    std::optional<snis::Iteration> coupled;
    {
      ProgressLine progress(!json_);
      if (options_.iterations > 0) {
        const Attempt<void> iterated = iterate(iterations, system, load, progress);
        if (!iterated) return std::unexpected(iterated.error());
      }
      if (coupled_) {
        coupled = snis::run_coupled(models, load.requests, [&](double part) {
          progress.at(part, [] { return "coupled"; });
        });
      }
    }
    plan::SnisOutcome outcome{.load = load.name,
                              .drive = system.drive,
                              .network = system_options_.network,
                              .targets = models.targets(),
                              .initiators = static_cast<uint32_t>(system_options_.initiators),
                              .requests = load.requests,
                              .steps = iterations.steps(),
                              .stable_at = iterations.convergence().at(),
                              .why = iterations.convergence().why(),
                              .unchanged = iterations.unchanged()};
    if (coupled) {
      outcome.coupled = snis::describe(load.requests, *coupled);
      if (!outcome.steps.empty()) {
        outcome.apart = snis::differences(load.requests, iterations.last().times, coupled->times);
      }
    }
    const snis::Times& times = outcome.steps.empty() ? coupled->times : iterations.last().times;
    if (const Attempt<void> written = write(outcome, times); !written) {
      return std::unexpected(written.error());
    }
    say(json_ ? config::json_text(plan::snis_json(outcome)) : plan::snis_text(outcome));
    return kExitOk;
  }

  Attempt<void> iterate(snis::Iterations& iterations, const plan::SnisSystem& system,
                        const plan::SnisLoad& load, ProgressLine& progress) {
    std::optional<plan::SnisState> state;
    if (!resume_.empty()) {
      Attempt<plan::SnisState> opened = plan::SnisState::open(
          resume_, snis::fingerprint(load.requests, system.description), load.requests.size());
      if (!opened) return std::unexpected(opened.error());
      state = std::move(*opened);
    }
    bool resuming = state.has_value();
    while (!iterations.done()) {
      const auto number = static_cast<uint32_t>(iterations.steps().size());
      if (resuming) {
        Attempt<std::optional<snis::Iteration>> kept = state->load(number);
        if (!kept) return std::unexpected(kept.error());
        if (*kept) {
          iterations.take(std::move(**kept));
          continue;
        }
        resuming = false;
        progress.begin_at(part_done(iterations, load, 0));
      }
      iterations.advance([&](double part) {
        progress.at(part_done(iterations, load, part),
                    [&] { return fmt::format("iteration {}", number); });
      });
      if (!state) continue;
      if (Attempt<void> saved = state->save(number, iterations.last()); !saved) return saved;
    }
    return {};
  }

  // How far all iterations are while `part` of one is done. Until nothing moves, what counts is how
  // long a beginning of the trace no longer does.
  double part_done(const snis::Iterations& iterations, const plan::SnisLoad& load,
                   double part) const {
    const std::vector<snis::Step>& steps = iterations.steps();
    if (options_.until != snis::Until::kUnchanged) {
      return (static_cast<double>(steps.size()) + part) / options_.iterations;
    }
    if (steps.empty() || !steps.back().movement) return 0;
    const auto last = static_cast<double>(std::max<snis::Nanos>(load.requests.back().arrival, 1));
    return std::min(1.0, static_cast<double>(steps.back().movement->first_ns) / last);
  }

  Attempt<void> write(const plan::SnisOutcome& outcome, const snis::Times& times) const {
    if (!csv_.empty()) {
      if (Attempt<void> written = config::replace_file(csv_, plan::snis_csv(outcome)); !written)
        return written;
    }
    if (!times_.empty()) {
      if (Attempt<void> written =
              config::replace_file(times_, plan::times_csv(outcome.requests, times));
          !written) {
        return written;
      }
    }
    return html_.empty() ? Attempt<void>{} : config::replace_file(html_, plan::snis_page(outcome));
  }

  plan::SnisLoadOptions load_options_;
  plan::SnisSystemOptions system_options_;
  snis::RunOptions options_;
  CLI::Option* iterations_given_ = nullptr;
  bool coupled_ = false;
  int threads_ = 0;
  bool mpi_ = false;
  std::string resume_;
  std::string csv_;
  std::string times_;
  std::string html_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_plan_snis(CLI::App& app) {
  return std::make_unique<PlanSnisCommand>(app);
}

}  // namespace cairn::apps
