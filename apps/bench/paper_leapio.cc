// SPDX-License-Identifier: Apache-2.0
// `cairn bench paper leapio`: figures of the paper with our runtime and services, as one page.
#include <filesystem>
#include <string>
#include <system_error>

#include "apps/bench/options.h"
#include "apps/bench/paper_output.h"
#include "apps/common/command.h"
#include "bench/leapio/paper.h"
#include "plan/flash/flash_profile.h"

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
    add_integer(app, "--guest-keys N", options_.guest_keys, {.min = 100, .max = 100'000},
                "records in the guest of figures 7 to 9 (20000)");
    add_number(app, "--guest-seconds S", options_.guest_seconds, 0.01, 600,
               "that each load runs there (3)");
    add_value(app, "--folder DIR",
              "for 1 to 2 GiB of files of that guest (that of temporary files)",
              [this](const std::string& text) -> Attempt<void> {
                options_.folder = text;
                return {};
              });
    set_examples(app, {"cairn bench paper leapio", "cairn bench paper leapio --figure 11a --json",
                       "cairn bench paper leapio --figure 8 --folder /var/tmp",
                       "cairn bench paper leapio --seconds 0.2 --svg plots"});
  }

  Attempt<int> run() override {
    Attempt<flash::Parameters> drive = plan::load_flash_profile(kDrive);
    if (!drive) return std::unexpected(drive.error());
    options_.drive = std::make_shared<const flash::Parameters>(std::move(*drive));
    options_.seed = static_cast<uint64_t>(seed_);
    std::error_code error;
    if (options_.folder.empty()) {
      options_.folder = std::filesystem::temp_directory_path(error).string();
    }
    options_.program = std::filesystem::read_symlink("/proc/self/exe", error).string();
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
