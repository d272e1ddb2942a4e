// SPDX-License-Identifier: Apache-2.0
#include "bench/kv/store_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <expected>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/units.h"
#include "drive/source.h"
#include "env/world.h"
#include "stack/stack.h"

namespace cairn::bench {

using task::Task;

namespace {

constexpr uint64_t kBlock = 512;
constexpr uint64_t kBytesMin = 16_MiB;

Task<Result<std::unique_ptr<drive::Drive>>> open_drive(env::Env& env, drive::Leaves& leaves,
                                                       std::string stack) {
  drive::Opened opened = co_await drive::open_stack(env, std::move(stack), leaves);
  if (!opened) co_return fail(Errc::kInvalid, "a drive of the benchmark does not open");
  co_return std::move(*opened);
}

Task<Result<void>> run_job(env::Env& env, drive::Leaves& leaves, const StorePlace& place,
                           const StoreJob& job) {
  Result<std::unique_ptr<drive::Drive>> drive = co_await open_drive(env, leaves, place.stack);
  if (!drive) co_return fail(drive.error());
  if (place.object_bytes > 0) {
    const Result<void> made = co_await kv::store::format(
        env, **drive, {.object_bytes = place.object_bytes, .may_format = true});
    if (!made) {
      co_await (*drive)->close();
      co_return made;
    }
  }
  Result<std::unique_ptr<kv::store::Store>> store =
      co_await kv::store::Store::open(env, std::move(*drive), place.options);
  if (!store) co_return fail(store.error());
  const Result<void> done = co_await job(env, **store);
  co_await (*store)->close();
  co_return done;
}

// Modelled drives are all of the one SSD that the options have.
Task<void> run_in(env::Env& env, const KvBenchOptions& options, const StorePlace& place,
                  const StoreJob& job, Result<void>& result) {
  drive::SourceLeaves leaves([&options](std::string_view text) {
    std::expected<drive::Spec, std::string> spec = drive::Spec::parse(text);
    if (spec && spec->kind == drive::Spec::Kind::kFlash) spec->flash = options.flash;
    return spec;
  });
  result = co_await run_job(env, leaves, place, job);
  leaves.close();
}

}  // namespace

Result<void> with_store(const KvBenchOptions& options, const StorePlace& place,
                        const StoreJob& job) {
  Result<std::unique_ptr<env::World>> world = options.world({.cpus = {options.server_cpu}});
  if (!world) return fail(world.error());
  Result<void> result;
  const Result<void> ran =
      (*world)->run([&](env::Env& env) { return run_in(env, options, place, job, result); });
  return ran ? result : ran;
}

std::string file_drive(const KvBenchOptions& options, const std::string& path, uint64_t bytes) {
  return fmt::format("file:{},size={},block={}{}", path, align_up(bytes, 1_MiB), kBlock,
                     options.buffered ? ",direct=off" : "");
}

// Besides its own bytes an object has about 60 in the logs, and a twelfth of a drive is never used.
uint64_t bytes_for(const Objects& objects, double full) {
  const uint64_t live = objects.count * (objects.bytes + 60) * 12 / 11;
  return std::max(static_cast<uint64_t>(static_cast<double>(live) / full), kBytesMin);
}

}  // namespace cairn::bench
