// SPDX-License-Identifier: Apache-2.0
// What the arbiter takes for a pool of a size: memory, the time until it leads, and how fast it
// gives extents away. By this machine's clock, with the metadata in memory.
#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "bench/volume/pool_scene.h"
#include "bench/volume/subject.h"
#include "bench/volume/volume_bench.h"
#include "bench/workload.h"

namespace cairn::bench {

namespace {

using task::Task;

constexpr size_t kDrives = 16;
constexpr uint64_t kTableBytes = 1_TiB;  // of the volume whose holder's memory is measured

struct Size {
  uint64_t volumes;
  uint64_t extents;  // with a place, of all of them
};
constexpr std::array kSizes = {Size{10, 10'000}, Size{100, 40'000}, Size{1'000, 160'000}};

// What the heap has given away.
double heap_bytes() {
  const struct mallinfo2 info = ::mallinfo2();
  return static_cast<double>(info.uordblks + info.hblkhd);
}

struct Figures {
  double allocated_per_second = 0;
  double start_up_ms = 0;
  double bytes = 0;  // of the arbiter, without the metadata store
};

Task<Result<std::unique_ptr<PoolScene>>> make_pool(env::Env& env) {
  co_return co_await PoolScene::make(env, std::make_unique<BlankMedia>(kDrives, 4_TiB));
}

// Gives a volume so many places, as a client that writes forward asks for them.
Task<Result<void>> fill(PoolScene& pool, std::string name, uint32_t extents) {
  const Result<arbiter::ArbiterHost::Use> arbiter = pool.host().use();
  if (!arbiter) co_return fail(arbiter.error());
  const Result<volume::Opened> opened =
      co_await (*arbiter)->open({.volume = std::move(name), .client = "client"}, {});
  if (!opened) co_return fail(opened.error());
  for (uint32_t first = 0; first < extents;) {
    const auto count =
        static_cast<uint32_t>(std::min<uint64_t>(volume::kMappingsMax, extents - first));
    std::vector<uint32_t> wanted(count);
    std::iota(wanted.begin(), wanted.end(), first);
    const Result<std::vector<volume::Mapping>> got =
        co_await (*arbiter)->allocate(opened->session, std::move(wanted), {});
    if (!got) co_return fail(got.error());
    first += count;
  }
  co_return co_await (*arbiter)->close(opened->session, true, {});
}

Task<void> measure(env::Env& env, Size size, Figures& figures, Result<void>& done) {
  Result<std::unique_ptr<PoolScene>> pool = co_await make_pool(env);
  if (!pool) {
    done = fail(pool.error());
    co_return;
  }
  const auto each = static_cast<uint32_t>(size.extents / size.volumes);
  Duration allocating{0};
  done = Result<void>();
  for (uint64_t i = 0; done && i < size.volumes; ++i) {
    const std::string name = fmt::format("v{}", i);
    done = co_await (*pool)->create(name, (each - 1) * volume::kExtentBytes, 1);
    const Time before = now();
    if (done) done = co_await fill(**pool, name, each);
    allocating = allocating + (now() - before);
  }
  if (done) {
    figures.allocated_per_second = static_cast<double>(size.extents) / allocating.seconds();
    co_await (*pool)->stop_arbiter();
    const double without = heap_bytes();
    const Time before = now();
    done = co_await (*pool)->start_arbiter();
    figures.start_up_ms = (now() - before).seconds() * 1e3;
    figures.bytes = heap_bytes() - without;
  }
  co_await (*pool)->close();
}

// A volume of 1 TiB over the arbiter of its pool: what opening it adds to the heap.
Task<void> measure_table(env::Env& env, double& bytes_per_extent, Result<void>& done) {
  Result<std::unique_ptr<PoolScene>> pool = co_await make_pool(env);
  if (!pool) {
    done = fail(pool.error());
    co_return;
  }
  done = co_await (*pool)->create("v", kTableBytes, 1);
  const double before = heap_bytes();
  Result<std::unique_ptr<volume::VolumeDrive>> drive = co_await (*pool)->open("v");
  if (done && !drive) done = fail(drive.error());
  if (drive) {
    bytes_per_extent =
        (heap_bytes() - before) / static_cast<double>(kTableBytes / volume::kExtentBytes);
    co_await (*drive)->close();
  }
  co_await (*pool)->close();
}

}  // namespace

Result<void> bench_volume_growth(const VolumeBenchOptions& options, Report& report) {
  const auto add = [&](const char* name, const std::string& variant, const char* unit,
                       double value) {
    report.add({.name = name, .variant = variant, .unit = unit, .samples = {value}});
  };
  for (const Size size : kSizes) {
    const std::string variant = fmt::format("{}x{}", size.volumes, size.extents / size.volumes);
    if (options.progress) options.progress(fmt::format("growth: {} volumes", size.volumes));
    Figures figures;
    Result<void> done = fail(Errc::kCancelled, "it did not run");
    const Result<void> ran = run_in_world(
        options.world, [&](env::Env& env) { return measure(env, size, figures, done); });
    if (!ran || !done) return ran ? done : ran;
    add("arbiter_allocates", variant, "extents/s", figures.allocated_per_second);
    add("arbiter_start_up", variant, "ms", figures.start_up_ms);
    add("arbiter_memory", variant, "bytes/extent",
        figures.bytes / static_cast<double>(size.extents));
  }
  double bytes_per_extent = 0;
  Result<void> done = fail(Errc::kCancelled, "it did not run");
  const Result<void> ran = run_in_world(
      options.world, [&](env::Env& env) { return measure_table(env, bytes_per_extent, done); });
  if (!ran || !done) return ran ? done : ran;
  report.add_ratio("table_bytes_per_extent", bytes_per_extent);
  return {};
}

}  // namespace cairn::bench
