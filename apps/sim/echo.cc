// SPDX-License-Identifier: Apache-2.0
// `cairn sim echo`: the echo cluster in the simulated world.
#include <fmt/format.h>

#include <charconv>
#include <cstdlib>

#include "apps/common/command.h"
#include "apps/common/output.h"
#include "apps/sim/echo_run.h"
#include "base/words.h"
#include "config/json_text.h"

namespace cairn::apps {

namespace {

Attempt<uint64_t> parse_seed(std::string_view text) {
  uint64_t seed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
  if (error == std::errc{} && end == text.data() + text.size()) return seed;
  return refuse(
      fmt::format("takes a whole number from 0 to {}, not {}", UINT64_MAX, in_quotes(text)));
}

class SimEchoCommand final : public Command {
 public:
  explicit SimEchoCommand(CLI::App& app) {
    add_value(app, "--seed N", "what the run is drawn from (CAIRN_SEED, else 1)",
              [this](const std::string& text) -> Attempt<void> {
                const Attempt<uint64_t> seed = parse_seed(text);
                if (!seed) return std::unexpected(seed.error());
                seed_ = *seed;
                return {};
              });
    add_integer(app, "--runs N", runs_, {.min = 1, .max = 1'000'000},
                "this many seeds, one after the other (1)");
    add_integer(app, "--clients N", options_.clients, {.min = 1, .max = 200}, "echo clients (3)");
    add_number(app, "--seconds S", seconds_, 0.001, 86400, "simulated time of a run (10)");
    add_switch(app, "--faults", options_.faults, "rough network, crashes, partitions, pauses");
    add_switch(app, "--json", json_, "print one JSON object per run");
    set_examples(app, {"cairn sim echo --seed 7 --faults", "cairn sim echo --faults --runs 100"});
  }

  Attempt<int> run() override {
    if (const Attempt<void> chosen = choose_seed(); !chosen) {
      return std::unexpected(chosen.error());
    }
    options_.duration = Duration::from_seconds(seconds_);
    for (int i = 0; i < runs_; ++i) {
      options_.seed = *seed_ + static_cast<uint64_t>(i);
      const EchoRunResult result = run_echo(options_);
      say(json_ ? json_of(result) : text_of(result));
      if (!result.failure.empty()) return refuse(failure_of(result));
    }
    return kExitOk;
  }

 private:
  // The option wins over the environment.
  Attempt<void> choose_seed() {
    const char* text = std::getenv("CAIRN_SEED");
    if (seed_) return {};
    if (text == nullptr) {
      seed_ = 1;
      return {};
    }
    const Attempt<uint64_t> seed = parse_seed(text);
    if (!seed) return refuse("CAIRN_SEED " + seed.error().text);
    seed_ = *seed;
    return {};
  }

  std::string text_of(const EchoRunResult& result) const {
    return fmt::format(
        "seed {}: {} rounds, {} errors, {} mismatches, {} faults in {:.3f} simulated seconds, "
        "{} events, trace {:016x}\n",
        options_.seed, result.rounds, result.errors, result.mismatches, result.faults,
        result.simulated.seconds(), result.events, result.trace_hash);
  }
  std::string json_of(const EchoRunResult& result) const {
    return config::json_text({{"schema_version", 1},
                              {"seed", options_.seed},
                              {"rounds", result.rounds},
                              {"errors", result.errors},
                              {"mismatches", result.mismatches},
                              {"faults", result.faults},
                              {"simulated_seconds", result.simulated.seconds()},
                              {"events", result.events},
                              {"trace_hash", fmt::format("{:016x}", result.trace_hash)},
                              {"ok", result.failure.empty()}});
  }
  std::string failure_of(const EchoRunResult& result) const {
    return fmt::format(
        "seed {} failed: {}\nrepeat with 'cairn sim echo --seed {} --clients {} "
        "--seconds {}{}'",
        options_.seed, result.failure, options_.seed, options_.clients, seconds_,
        options_.faults ? " --faults" : "");
  }

  EchoRunOptions options_;
  std::optional<uint64_t> seed_;
  int runs_ = 1;
  double seconds_ = 10;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_sim_echo(CLI::App& app) {
  return std::make_unique<SimEchoCommand>(app);
}

}  // namespace cairn::apps
