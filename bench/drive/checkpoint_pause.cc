// SPDX-License-Identifier: Apache-2.0
#include "bench/drive/checkpoint_pause.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/buffer.h"
#include "bench/temporary_folder.h"
#include "bench/workload.h"
#include "service/common/journal.h"
#include "service/mapped/chunk_table.h"
#include "stack/stack.h"

namespace cairn::bench {

namespace {

constexpr uint32_t kBlockSize = 4096;
constexpr uint64_t kBulk = 2048;  // changes in one commit that nobody measures
constexpr uint64_t kFillBlocks = 64;
constexpr double kMillisPerMicro = 1e-3;

struct Size {
  std::string_view name;
  uint64_t entries = 0;
};
// Blocks of 4 KiB: 32 MiB, 256 MiB and 2 GiB under `dedup`.
constexpr std::array<Size, 3> kSizes = {
    {{"small", 1 << 13}, {"medium", 1 << 16}, {"large", 1 << 19}}};

// A map of blocks, all of them in use.
class Map final : public drive::JournalOwner {
 public:
  struct Record {
    uint32_t block = 0;
    uint32_t unit = 0;
    uint64_t hash = 0;
  };

  explicit Map(uint64_t blocks) : units_(blocks) {
    for (uint64_t block = 0; block < blocks; ++block) set(block);
  }
  Record set(uint64_t block) {
    units_.set(block, ++last_);
    return record_of(block, last_);
  }

  Result<void> replay(Bytes) override { return {}; }
  std::optional<uint64_t> save(uint64_t from, drive::JournalRecords& records) const override {
    return units_.for_part(
        from, [&](uint64_t block, uint32_t unit) { records.add(record_of(block, unit)); });
  }

 private:
  static Record record_of(uint64_t block, uint32_t unit) {
    return {.block = static_cast<uint32_t>(block), .unit = unit, .hash = mix64(unit)};
  }

  drive::ChunkTable<uint32_t> units_;
  uint32_t last_ = 0;
};

class CheckpointBench {
 public:
  CheckpointBench(const DriveBenchOptions& options, const TemporaryFolder& folder, Report& report)
      : options_(options), folder_(folder), report_(report) {}

  task::Task<void> run(env::Env& env) {
    for (const Size& size : kSizes) {
      if (options_.progress) options_.progress(fmt::format("checkpoints: {}", size.name));
      const std::string why_not = co_await measure(env, size);
      if (why_not.empty()) continue;
      report_.skip("checkpoints", why_not);
      break;
    }
    leaves_.close();
  }

 private:
  // Empty: it was.
  task::Task<std::string> measure(env::Env& env, Size size) {
    const uint64_t blocks =
        drive::Journal::blocks_for(size.entries, sizeof(Map::Record), kBlockSize);
    const std::string stack =
        fmt::format("file:{},size={},block={}", folder_.file(std::string(size.name)),
                    blocks * kBlockSize, kBlockSize);
    drive::Opened opened = co_await drive::open_stack(env, stack, leaves_);
    if (!opened) co_return opened.error().text;
    const std::string why_not = co_await measure_on(env, size, **opened);
    co_await (*opened)->close();
    co_return why_not;
  }
  task::Task<std::string> measure_on(env::Env& env, Size size, drive::Drive& drive) {
    const uint64_t blocks = drive.geometry().blocks;
    Result<void> done = co_await write_all(env, drive);
    if (!done) co_return done.error().text();
    Map map(size.entries);
    auto journal =
        co_await drive::Journal::create(env, drive, {.first = 0, .blocks = blocks}, {1, 2}, map);
    if (journal) {
      done = co_await take_rounds(env, size, map, **journal);
      co_await (*journal)->close();
    } else {
      done = fail(journal.error());
    }
    co_return done ? std::string() : done.error().text();
  }

  // File systems have work of their own with what is written for the first time.
  static task::Task<Result<void>> write_all(env::Env& env, drive::Drive& drive) {
    Result<Buffer> memory = env.buffers().allocate(kFillBlocks * kBlockSize);
    if (!memory) co_return fail(memory.error());
    std::ranges::fill(memory->first(memory->size()), std::byte{1});
    const uint64_t blocks = drive.geometry().blocks;
    for (uint64_t at = 0; at < blocks; at += kFillBlocks) {
      const uint64_t count = std::min(kFillBlocks, blocks - at);
      const Result<void> done = co_await drive.write(Lba(at), memory->first(count * kBlockSize));
      if (!done) co_return done;
    }
    co_return co_await drive.flush();
  }

  task::Task<Result<void>> take_rounds(env::Env& env, Size size, Map& map,
                                       drive::Journal& journal) {
    Measurement during{.name = "checkpoint_pause", .variant = std::string(size.name), .unit = "ms"};
    Measurement without = during;
    without.variant += "_without";
    uint64_t commits = 0;
    for (int round = 0; round < options_.rounds; ++round) {
      Result<void> done;
      while (done && !journal.is_saving()) done = co_await commit(env, size, map, journal, kBulk);
      Commits seen;
      const uint64_t generation = journal.generation();
      while (done && journal.generation() == generation) {
        done = co_await measure_one(env, size, map, journal, seen);
      }
      during.samples.push_back(seen.longest.us() * kMillisPerMicro);
      commits += seen.count;
      Commits after;
      while (done && after.count < seen.count) {
        done = co_await measure_one(env, size, map, journal, after);
      }
      without.samples.push_back(after.longest.us() * kMillisPerMicro);
      if (!done) co_return done;
    }
    for (Measurement* line : {&during, &without}) {
      line->extras = {{"worst_ms", *std::ranges::max_element(line->samples)},
                      {"entries", static_cast<double>(size.entries)},
                      {"commits_per_round", static_cast<double>(commits) / options_.rounds}};
    }
    report_.add_ratio(fmt::format("checkpoint_pause_ms_{}", size.name), during.value());
    // The last is the largest.
    report_.add_ratio("checkpoint_pause_ms", during.value());
    report_.add(std::move(during));
    report_.add(std::move(without));
    co_return Result<void>();
  }

  struct Commits {
    uint64_t count = 0;
    Duration longest;
  };
  static task::Task<Result<void>> measure_one(env::Env& env, Size size, Map& map,
                                              drive::Journal& journal, Commits& commits) {
    const Time begun = now();
    const Result<void> done = co_await commit(env, size, map, journal, 1);
    commits.longest = std::max(commits.longest, now() - begun);
    ++commits.count;
    co_return done;
  }
  static task::Task<Result<void>> commit(env::Env& env, Size size, Map& map,
                                         drive::Journal& journal, uint64_t changes) {
    for (uint64_t i = 0; i < changes; ++i) {
      journal.add(map.set(env.rng().below(size.entries)), drive::Journal::Needs::kData);
    }
    co_return co_await journal.commit();
  }

  const DriveBenchOptions& options_;
  const TemporaryFolder& folder_;
  Report& report_;
  drive::SourceLeaves leaves_;
};

}  // namespace

Result<void> bench_checkpoints(const DriveBenchOptions& options, Report& report) {
  Result<std::unique_ptr<env::World>> world = options.world({.cpus = {options.server_cpu}});
  if (!world) return fail(world.error());
  const Result<TemporaryFolder> folder = TemporaryFolder::make(options.folder);
  if (!folder) return fail(folder.error());
  CheckpointBench bench(options, *folder, report);
  return (*world)->run([&bench](env::Env& env) { return bench.run(env); });
}

}  // namespace cairn::bench
