// SPDX-License-Identifier: Apache-2.0
// `cairn bench paper leapio`: figures of the paper with our runtime and services, as one page.
#include <CLI/CLI.hpp>

#include "apps/bench_options.h"
#include "apps/command.h"
#include "apps/paper_output.h"
#include "apps/sim/flash_profile.h"
#include "bench/leapio/paper.h"

namespace cairn::apps {

namespace {

constexpr const char* kDrive = "dct983";

class BenchPaperLeapioCommand final : public Command {
 public:
  explicit BenchPaperLeapioCommand(CLI::App& app) : output_(app, "leapio.html") {
    add_number(app, "--seconds S", options_.seconds, 0.01, 60,
               "virtual time that each scene is measured (2)");
    add_integer(app, "--seed N", seed_, {.min = 0, .max = 1'000'000'000}, "of all loads (1)");
    add_choices(app, "--figure N", options_.figures, bench::leapio::figures(),
                "show just this figure");
    set_examples(app, {"cairn bench paper leapio", "cairn bench paper leapio --figure 11a --json",
                       "cairn bench paper leapio --seconds 0.2 --svg plots"});
  }

  Attempt<int> run() override {
    Attempt<flash::Parameters> drive = load_flash_profile(kDrive);
    if (!drive) return std::unexpected(drive.error());
    options_.drive = std::make_shared<const flash::Parameters>(std::move(*drive));
    options_.seed = static_cast<uint64_t>(seed_);
    options_.progress = progress_on_terminal();
    const Result<bench::Paper> paper = bench::leapio::bench_paper(options_);
    if (!paper) return bench_stopped(paper.error());
    return output_.put(*paper);
  }

 private:
  bench::leapio::Options options_;
  int seed_ = 1;
  PaperOutput output_;
};

}  // namespace

std::unique_ptr<Command> make_bench_paper_leapio(CLI::App& app) {
  return std::make_unique<BenchPaperLeapioCommand>(app);
}

}  // namespace cairn::apps
