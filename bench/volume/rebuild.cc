// SPDX-License-Identifier: Apache-2.0
// How fast a volume's extents get new places, next to a plain copy between two such drives, and
// what whoever uses the volume notices. In virtual time.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "bench/volume/subject.h"
#include "bench/volume/volume_bench.h"
#include "drive/scratch.h"
#include "task/deadline.h"
#include "task/when_all.h"

namespace cairn::bench {

namespace {

using loadgen::LoadResult;
using task::Task;

constexpr uint64_t kBytes = 512_MiB;
constexpr uint64_t kDriveBytes = 6_GiB;
constexpr uint64_t kPiece = 256_KiB;
constexpr int kCopiers = 8;
constexpr double kForegroundRate = 4000;  // reads of 4 KiB per second
constexpr Duration kLook = 1_ms;

struct Figures {
  double copy_bytes_per_second = 0;
  double rebuild_bytes_per_second = 0;
  double quiet_p99_ns = 0;
  double rebuilding_p99_ns = 0;
};

struct Copy {
  drive::Drive& from;
  drive::Drive& to;
  uint64_t next = 0;
  Result<void> done;
};

Task<void> copy_some(env::Env& env, Copy& copy) {
  Result<drive::Scratch> memory = drive::Scratch::make(env, kPiece);
  if (!memory) copy.done = fail(memory.error());
  while (copy.done && copy.next < kBytes) {
    const Lba lba(std::exchange(copy.next, copy.next + kPiece) / volume::kBlockBytes);
    Result<void> moved = co_await copy.from.read(lba, memory->bytes());
    if (moved) moved = co_await copy.to.write(lba, memory->bytes());
    if (!moved) copy.done = moved;
  }
}

SubjectArgs args_of(const VolumeBenchOptions& options, Layout layout, size_t drives) {
  return {.layout = layout,
          .drives = drives,
          .bytes = kBytes,
          .drive_bytes = kDriveBytes,
          .flash = options.flash};
}

// From a drive that was written to one that was not.
Task<Result<void>> measure_copy(env::Env& env, const VolumeBenchOptions& options,
                                Figures& figures) {
  Result<std::unique_ptr<Subject>> from =
      co_await Subject::open(env, args_of(options, Layout::kPlain, 1));
  if (!from) co_return fail(from.error());
  Result<std::unique_ptr<FlashMedia>> media = FlashMedia::make(env, 1, kDriveBytes, *options.flash);
  if (!media) co_return fail(media.error());
  Result<std::unique_ptr<drive::Drive>> to =
      co_await (*media)->open((*media)->uris().front(), "host", task::CancelToken());
  if (!to) co_return fail(to.error());
  Copy copy{.from = (*from)->drive(), .to = **to, .done = {}};
  const Time start = env.now();
  std::vector<Task<void>> copiers;
  copiers.reserve(kCopiers);
  for (int i = 0; i < kCopiers; ++i) copiers.push_back(copy_some(env, copy));
  co_await task::when_all(std::move(copiers));
  if (copy.done) copy.done = co_await (*to)->flush();
  figures.copy_bytes_per_second = static_cast<double>(kBytes) / (env.now() - start).seconds();
  co_await (*to)->close();
  co_await (*from)->close();
  co_return copy.done;
}

// Everything has to leave the one drive it is on, so that it goes to the other.
Task<Result<void>> begin_moving(Subject& subject) {
  {
    const Result<arbiter::ArbiterHost::Use> arbiter = subject.pool().host().use();
    if (!arbiter) co_return fail(arbiter.error());
    Result<void> done = co_await (*arbiter)->drain(volume::MegaVolId(1), false);
    if (done) done = co_await (*arbiter)->drain(volume::MegaVolId(0), true);
    if (!done) co_return done;
  }
  // Asks what the pool looks like now.
  co_return co_await subject.drive().resize(subject.drive().geometry().blocks);
}

Task<Result<void>> wait_until_healed(env::Env& env, Subject& subject) {
  while (!subject.drive().jobs().empty()) {
    const Result<void> slept = co_await task::sleep_for(env, kLook);
    if (!slept) co_return slept;
  }
  co_return Result<void>();
}

loadgen::DriveLoad foreground(const VolumeBenchOptions& options) {
  return {.depth = 64,
          .rate = kForegroundRate,
          .duration = Duration::from_seconds(std::min(options.seconds, 0.5))};
}

Task<Result<void>> measure_rebuild(env::Env& env, const VolumeBenchOptions& options, bool is_used,
                                   Figures& figures) {
  SubjectArgs args = args_of(options, Layout::kVolume, 2);
  args.leaves_last = true;
  Result<std::unique_ptr<Subject>> subject = co_await Subject::open(env, std::move(args));
  if (!subject) co_return fail(subject.error());
  Result<void> done;
  const auto p99_of = [](const LoadResult& result) {
    return static_cast<double>(result.latency_ns().p99());
  };
  if (is_used) {
    const Result<LoadResult> quiet = co_await (*subject)->run(foreground(options));
    if (quiet) figures.quiet_p99_ns = p99_of(*quiet);
    if (!quiet) done = fail(quiet.error());
  }
  if (done) done = co_await begin_moving(**subject);
  const Time start = env.now();
  if (done && is_used) {
    const Result<LoadResult> during = co_await (*subject)->run(foreground(options));
    if (during) figures.rebuilding_p99_ns = p99_of(*during);
    if (!during) done = fail(during.error());
    if (done && (*subject)->drive().jobs().empty()) {
      done = fail(Errc::kInvalid, "the rebuild ended before the load: it says nothing");
    }
  }
  if (done && !is_used) {
    done = co_await wait_until_healed(env, **subject);
    figures.rebuild_bytes_per_second = static_cast<double>(kBytes) / (env.now() - start).seconds();
  }
  co_await (*subject)->close();
  co_return done;
}

Task<void> measure(env::Env& env, const VolumeBenchOptions& options, Figures& figures,
                   Result<void>& done) {
  done = co_await measure_copy(env, options, figures);
  if (done) done = co_await measure_rebuild(env, options, false, figures);
  if (done) done = co_await measure_rebuild(env, options, true, figures);
}

}  // namespace

Result<void> bench_volume_rebuild(const VolumeBenchOptions& options, Report& report) {
  if (options.progress) options.progress("rebuild");
  Figures figures;
  Result<void> done = fail(Errc::kCancelled, "it did not run");
  run_simulated([&](env::Env& env) { return measure(env, options, figures, done); });
  if (!done) return done;
  const auto add = [&](const char* name, const char* variant, const char* unit, double value) {
    report.add(
        {.name = name, .variant = variant, .unit = unit, .samples = {value}, .is_simulated = true});
  };
  constexpr double kNanosPerMicro = 1e3;
  add("rebuild", "copy", "bytes/s", figures.copy_bytes_per_second);
  add("rebuild", "evol", "bytes/s", figures.rebuild_bytes_per_second);
  add("foreground_p99", "quiet", "us", figures.quiet_p99_ns / kNanosPerMicro);
  add("foreground_p99", "rebuilding", "us", figures.rebuilding_p99_ns / kNanosPerMicro);
  report.add_simulated_ratio("rebuild_vs_copy",
                             figures.rebuild_bytes_per_second / figures.copy_bytes_per_second);
  report.add_simulated_ratio("rebuild_foreground_p99",
                             figures.rebuilding_p99_ns / figures.quiet_p99_ns);
  return {};
}

}  // namespace cairn::bench
