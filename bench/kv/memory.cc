// SPDX-License-Identifier: Apache-2.0
// What a store costs in memory, and how fast it is, at three sizes: each in a process of its own,
// whose memory is read from the kernel.
#include <fmt/format.h>

#include <array>
#include <fstream>
#include <string>
#include <utility>

#include "bench/kv/parts.h"
#include "bench/kv/store_job.h"
#include "bench/process.h"
#include "bench/temporary_folder.h"
#include "bench/workload.h"
#include "loadgen/key_load.h"

namespace cairn::bench {

using task::Task;

namespace {

constexpr size_t kValueBytes = 256;
constexpr double kFull = 0.95;  // so that compaction has its buffers too

struct Size {
  const char* name;  // behind the ratio's
  uint64_t part;     // of the objects
};
constexpr std::array<Size, 3> kSizes = {{{"_1pct", 100}, {"_10pct", 10}, {"", 1}}};

struct Figures {
  uint64_t keys = 0;
  double bytes_per_object = 0;
  double puts_per_second = 0;
  double gets_per_second = 0;
  uint64_t table_bytes = 0;
};

// Memory of this process that is in no file, in bytes.
uint64_t own_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    constexpr std::string_view kName = "RssAnon:";
    if (line.starts_with(kName)) return std::stoull(line.substr(kName.size())) * 1024;
  }
  return 0;
}

Task<Result<void>> measure(env::Env& env, kv::store::Store& store, loadgen::KeyLoad load,
                           uint64_t memory_before, Figures& figures) {
  loadgen::KeyspaceTarget target(store);
  const Time start = now();
  const Result<void> filled = co_await loadgen::fill_keys(env, target, load);
  if (!filled) co_return filled;
  const double seconds = (now() - start).seconds();
  const Result<loadgen::KeyLoadResult> read = co_await loadgen::run_key_load(env, target, load);
  if (!read) co_return fail(read.error());
  if (read->error) co_return fail(*read->error);
  const auto keys = static_cast<double>(load.records);
  figures = {.keys = store.size(),
             .bytes_per_object =
                 (static_cast<double>(own_memory()) - static_cast<double>(memory_before)) / keys,
             .puts_per_second = keys / seconds,
             .gets_per_second = read->per_second(),
             .table_bytes = store.stats().table_bytes};
  co_return Result<void>();
}

// In the child. A small store is opened and closed first: what any program with a world takes is
// not the store's.
Result<void> run_in_child(const KvBenchOptions& options, const TemporaryFolder& folder,
                          uint64_t objects, Figures& figures) {
  const uint64_t object_bytes = kObjectKeyBytes + kValueBytes;
  const loadgen::KeyLoad load{.mix = *loadgen::find_key_mix("c"),
                              .distribution = loadgen::YcsbDistribution::kUniform,
                              .records = objects,
                              .value_bytes = kValueBytes,
                              .depth = options.depth,
                              .duration = Duration::from_seconds(options.seconds),
                              .clock = &now};
  const StorePlace place{
      .stack = file_drive(options, folder.file("store"),
                          bytes_for({.count = objects, .bytes = object_bytes}, kFull)),
      .object_bytes = object_bytes,
      .options = {.durability = kv::store::Durability::kNone}};
  const uint64_t before = own_memory();
  return with_store(options, place, [&](env::Env& env, kv::store::Store& store) {
    return measure(env, store, load, before, figures);
  });
}

}  // namespace

Result<void> bench_kv_memory(const KvBenchOptions& options, Report& report) {
  for (const Size& size : kSizes) {
    const uint64_t objects = std::max<uint64_t>(options.objects / size.part, 1000);
    options.tell(fmt::format("a store of {} objects", objects));
    const Result<TemporaryFolder> folder = TemporaryFolder::make(options.folder);
    if (!folder) return fail(folder.error());
    const Result<SharedMemory> shared = SharedMemory::make(sizeof(Figures));
    if (!shared) return fail(shared.error());
    auto& figures = *reinterpret_cast<Figures*>(shared->data());
    Result<Process> child =
        Process::start([&] { return run_in_child(options, *folder, objects, figures); });
    if (!child) return fail(child.error());
    const Result<Duration> ended = child->wait();
    if (!ended) return fail(ended.error());
    const auto put = [&](const char* name, double value) {
      report.add({.name = fmt::format("{}_{}_objects", name, objects),
                  .variant = "",
                  .unit = "op/s",
                  .samples = {value},
                  .extras = {{"dram_bytes_per_object", figures.bytes_per_object},
                             {"table_bytes", static_cast<double>(figures.table_bytes)}}});
    };
    put("put", figures.puts_per_second);
    put("get", figures.gets_per_second);
    report.add_ratio(fmt::format("dram_bytes_per_object{}", size.name), figures.bytes_per_object);
  }
  return {};
}

}  // namespace cairn::bench
