// SPDX-License-Identifier: Apache-2.0
#include "bench/drive/move_blackout.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/contest.h"
#include "bench/drive/server_process.h"
#include "bench/drive/vhost_load.h"
#include "bench/process.h"
#include "bench/temporary_folder.h"
#include "bench/workload.h"

namespace cairn::bench {

namespace {

constexpr uint64_t kLegSize = 64_MiB;
constexpr uint64_t kUsedSize = 32_MiB;
constexpr uint32_t kDepth = 8;
constexpr Duration kLook = 1_ms;
constexpr Duration kMoveTimeout = 40_s;  // longer than a move may take
constexpr Duration kLoadMax = 3600_s;
constexpr const char* kName = "move_blackout";
constexpr const char* kThere = "to_box";
constexpr const char* kBack = "back";
constexpr const char* kBetween = "between_moves";

// What the load in its process and the moves here tell each other. All of the machine's processes
// have one clock.
struct Watch {
  std::atomic<bool> ends = false;
  std::atomic<uint64_t> answers = 0;
  std::atomic<int64_t> last_ns = 0;     // of the last answer
  std::atomic<int64_t> longest_ns = 0;  // between two answers, since it was set to 0

  bool see(Time at) {
    const int64_t before = last_ns.exchange(at.ns);
    if (before != 0) longest_ns = std::max(longest_ns.load(), at.ns - before);
    ++answers;
    return !ends;
  }
};

// How long nothing was answered, at the longest, and what the command says of it.
struct Silence {
  double longest_ms = 0;
  std::optional<double> said_ms = {};  // of a move
};

class MoveBench {
 public:
  MoveBench(const DriveBenchOptions& options, const TemporaryFolder& folder, Watch& watch)
      : options_(options), folder_(folder), watch_(watch) {}

  Result<void> run(Report& report) {
    const auto box = ServerProcess::start(box_command(), box_control(), options_.client_cpu);
    if (!box) return fail(box.error());
    const auto server = ServerProcess::start(serve_command(), socket(), options_.server_cpu);
    if (!server) return fail(server.error());
    Result<Process> load = Process::start([this] { return carry_load(); });
    if (!load) return fail(load.error());
    contest_.add(kName, kBetween, [&] { return between_moves(*load); });
    contest_.add(kName, kThere, [&] { return move(*load, {"--to", box_control()}); });
    contest_.add(kName, kBack, [&] { return move(*load, {"--back"}); });
    if (const Result<void> ran = contest_.run(options_.rounds, options_.progress); !ran) return ran;
    watch_.ends = true;
    if (const Result<Duration> ended = load->wait(); !ended) return fail(ended.error());
    put_results(report);
    return {};
  }

 private:
  std::string socket() const { return folder_.file("vhost.sock"); }
  std::string control() const { return folder_.file("control"); }
  std::string box_control() const { return folder_.file("box"); }

  std::vector<std::string> box_command() const {
    return {options_.program, "serve",     "--nvme-tcp",
            "127.0.0.1:0",    "--control", box_control(),
            "mem:size=1M",    "--cores",   fmt::format("{}", options_.client_cpu)};
  }
  std::vector<std::string> serve_command() const {
    const auto leg = [this](const char* name) {
      return fmt::format("file:{},size={}", folder_.file(name), kLegSize);
    };
    return {
        options_.program, "serve",   fmt::format("d0=mirror({}, {})", leg("left"), leg("right")),
        "--vhost-user",   socket(),  "--control",
        control(),        "--cores", fmt::format("{}", options_.server_cpu)};
  }

  Result<void> carry_load() {
    const VhostLoad load{.at = {.family = env::Address::Family::kLocal, .path = socket()},
                         .read_share = 0.7,
                         .depth = kDepth,
                         .size = kUsedSize,
                         .duration = kLoadMax,
                         .on_answer = [this](Time at) { return watch_.see(at); }};
    const Result<VhostLoadResult> done =
        run_vhost_load_on(options_.world, options_.client_cpu, load);
    if (!done) return fail(done.error());
    return {};
  }

  Result<Silence> between_moves(const Process& load) {
    if (const Result<void> answered = await_answers(load); !answered) {
      return fail(answered.error());
    }
    watch_.longest_ns = 0;
    pass_time(Duration::from_seconds(options_.seconds));
    return longest_silence(load);
  }

  // So many that those sent before the last of them are among them.
  Result<void> await_answers(const Process& load) {
    const uint64_t enough = watch_.answers + 2 * kDepth;
    const Time limit = now() + kMoveTimeout;
    while (watch_.answers < enough) {
      if (!load.is_running()) return fail(Errc::kIo, "the load on a drive that moves failed");
      if (now() > limit) return fail(Errc::kTimedOut, "a drive that was moved answers no more");
      pass_time(kLook);
    }
    return {};
  }
  // Since it was asked for last. One that goes on belongs to what came before.
  Result<Silence> longest_silence(const Process& load) {
    if (const Result<void> answered = await_answers(load); !answered) {
      return fail(answered.error());
    }
    return Silence{.longest_ms = Duration{watch_.longest_ns.exchange(0)}.us() * 1e-3};
  }

  Result<Silence> move(const Process& load, const std::vector<std::string>& how) {
    std::vector<std::string> args = {options_.program, "drive",   "move",  "d0",
                                     "--control",      control(), "--json"};
    args.insert(args.end(), how.begin(), how.end());
    const std::string output = folder_.file("move.json");
    Result<Process> mover = Process::start_program(args, options_.client_cpu, output);
    if (!mover) return fail(mover.error());
    if (const Result<Duration> moved = mover->wait(); !moved) {
      return fail(Errc::kIo, "cairn drive move failed");
    }
    std::ifstream file(output);
    const auto answer = nlohmann::json::parse(file, nullptr, false);
    if (!answer.is_object() || !answer.contains("waited_ms")) {
      return fail(Errc::kIo, "cairn drive move does not say how long requests waited");
    }
    Result<Silence> silence = longest_silence(load);
    if (silence) silence->said_ms = answer.value("waited_ms", 0.0);
    return silence;
  }

  void put_results(Report& report) const {
    Measurement moves;
    for (const char* variant : {kThere, kBack, kBetween}) {
      const auto& each = *contest_.find(kName, variant);
      Measurement line = each.line("ms", [](const Silence& one) { return one.longest_ms; });
      line.extras.emplace_back("worst_ms", std::ranges::max(line.samples));
      if (variant != kBetween) {
        line.extras.emplace_back(
            "said_ms",
            median(each.values([](const Silence& one) { return one.said_ms.value_or(0); })));
        moves.samples.insert(moves.samples.end(), line.samples.begin(), line.samples.end());
      }
      report.add(std::move(line));
    }
    report.add_ratio("move_blackout_ms", moves.value());
  }

  const DriveBenchOptions& options_;
  const TemporaryFolder& folder_;
  Watch& watch_;
  ContestOf<Silence> contest_;
};

}  // namespace

Result<void> bench_move(const DriveBenchOptions& options, Report& report) {
  const Result<TemporaryFolder> folder = TemporaryFolder::make(options.folder);
  if (!folder) return fail(folder.error());
  const Result<SharedMemory> shared = SharedMemory::make(sizeof(Watch));
  if (!shared) return fail(shared.error());
  Watch* watch = new (shared->data()) Watch;
  return MoveBench(options, *folder, *watch).run(report);
}

}  // namespace cairn::bench
