// SPDX-License-Identifier: Apache-2.0
// How much of a drive keys and values can have: PUTs of new keys until the first is refused.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>

#include "bench/kv/parts.h"
#include "bench/kv/store_job.h"
#include "bench/temporary_folder.h"
#include "bench/workload.h"
#include "loadgen/key_load.h"

namespace cairn::bench {

using task::Task;

namespace {

constexpr std::array<size_t, 2> kValueBytes = {256, 1024};

// Counts what the store has taken.
class CountingTarget final : public loadgen::KeyTarget {
 public:
  explicit CountingTarget(kv::Keyspace& keyspace) : below_(keyspace) {}
  Task<Result<std::optional<std::string>>> get(uint32_t worker, std::string_view key) override {
    return below_.get(worker, key);
  }
  Task<Result<void>> put(uint32_t worker, std::string_view key, std::string_view value) override {
    Result<void> done = co_await below_.put(worker, key, value);
    if (done) bytes_ += key.size() + value.size();
    co_return done;
  }
  uint64_t bytes() const { return bytes_; }

 private:
  loadgen::KeyspaceTarget below_;
  uint64_t bytes_ = 0;
};

struct Filled {
  uint64_t user_bytes = 0;
  double seconds = 0;
  kv::store::StoreStats stats;
};

Task<Result<void>> fill_up(env::Env& env, kv::store::Store& store, loadgen::KeyLoad load,
                           Filled& filled) {
  CountingTarget target(store);
  const Time start = now();
  const Result<void> done = co_await loadgen::fill_keys(env, target, load);
  if (done) co_return fail(Errc::kInvalid, "the drive was never full");
  if (done.error() != Errc::kNoSpace) co_return done;
  filled = {
      .user_bytes = target.bytes(), .seconds = (now() - start).seconds(), .stats = store.stats()};
  co_return Result<void>();
}

}  // namespace

Result<void> bench_kv_capacity(const KvBenchOptions& options, Report& report) {
  const Result<TemporaryFolder> folder = TemporaryFolder::make(options.folder);
  if (!folder) return fail(folder.error());
  double min_share = 1;
  for (const size_t bytes : kValueBytes) {
    options.tell(fmt::format("filling a drive with values of {} bytes", bytes));
    const uint64_t object_bytes = kObjectKeyBytes + bytes;
    const StorePlace place{
        .stack = file_drive(options, folder->file(std::to_string(bytes)), options.capacity_bytes),
        .object_bytes = object_bytes,
        .options = {.durability = kv::store::Durability::kNone}};
    const loadgen::KeyLoad load{.mix = {},
                                .records = options.capacity_bytes / object_bytes,
                                .value_bytes = bytes,
                                .depth = options.depth};
    Filled filled;
    const Result<void> ran = with_store(
        options, place,
        [&](env::Env& env, kv::store::Store& store) { return fill_up(env, store, load, filled); });
    if (!ran) return ran;
    const double share =
        static_cast<double>(filled.user_bytes) / static_cast<double>(options.capacity_bytes);
    min_share = std::min(min_share, share);
    report.add_ratio(fmt::format("usable_capacity_{}", bytes), share);
    const auto keys = static_cast<double>(filled.stats.keys);
    report.add(
        {.name = fmt::format("fill_{}", bytes),
         .variant = "",
         .unit = "op/s",
         .samples = {keys / filled.seconds},
         .extras = {{"keys", keys},
                    {"write_amplification", static_cast<double>(filled.stats.io.bytes_written) /
                                                static_cast<double>(filled.stats.user_bytes)}}});
  }
  report.add_ratio("usable_capacity", min_share);
  return {};
}

}  // namespace cairn::bench
