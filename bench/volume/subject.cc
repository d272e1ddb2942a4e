// SPDX-License-Identifier: Apache-2.0
#include "bench/volume/subject.h"

#include <string>
#include <string_view>
#include <utility>

#include "world/sim/cluster.h"

namespace cairn::bench {

using task::Task;

namespace {

constexpr uint64_t kFillSize = 256_KiB;
constexpr uint32_t kFillDepth = 8;
constexpr std::string_view kName = "v";

}  // namespace

// Each leaf is a drive of its own, whatever its text says.
Subject::Subject(env::Env& env, SubjectArgs args)
    : env_(env),
      args_(std::move(args)),
      leaves_([this](std::string_view) { return args_.drive; }) {}

Task<Result<std::unique_ptr<Subject>>> Subject::open(env::Env& env, SubjectArgs args) {
  auto subject = std::make_unique<Subject>(env, std::move(args));
  const Result<void> begun = co_await subject->begin();
  if (begun) co_return subject;
  co_await subject->close();
  co_return fail(begun.error());
}

Task<Result<void>> Subject::begin() {
  const bool is_volume = args_.layout == Layout::kVolume;
  Result<void> done;
  if (is_volume) {
    done = co_await begin_volume();
  } else {
    done = co_await begin_stack();
  }
  if (!done) co_return done;
  const Result<loadgen::LoadResult> filled =
      co_await run({.order = loadgen::DriveLoad::Order::kSequential,
                    .read_share = 0,
                    .request_size = kFillSize,
                    .depth = kFillDepth,
                    .duration = 3600_s,
                    .requests_max = args_.bytes / kFillSize});
  if (!filled) co_return fail(filled.error());
  co_return co_await drive_->flush();
}

Task<Result<void>> Subject::begin_volume() {
  Result<std::unique_ptr<SpecMedia>> media = SpecMedia::make(env_, args_.drives, args_.drive);
  if (!media) co_return fail(media.error());
  Result<std::unique_ptr<PoolScene>> pool = co_await PoolScene::make(env_, std::move(*media));
  if (!pool) co_return fail(pool.error());
  pool_ = std::move(*pool);
  const Result<void> created =
      co_await pool_->create(std::string(kName), args_.bytes, args_.replicas);
  if (!created) co_return created;
  Result<std::unique_ptr<volume::VolumeDrive>> opened = co_await pool_->open(std::string(kName));
  if (!opened) co_return fail(opened.error());
  drive_ = std::move(*opened);
  co_return Result<void>();
}

Task<Result<void>> Subject::begin_stack() {
  std::string text = args_.drive.text();
  if (args_.layout == Layout::kStripe) {
    std::string all;
    for (size_t i = 0; i < args_.drives; ++i) all += text + ", ";
    text = "stripe(" + all + "chunk=64K)";  // as LVM has it by default
  }
  drive::Opened opened = co_await drive::open_stack(env_, text, leaves_);
  if (!opened) co_return fail(Errc::kInvalid, "the drives that are compared with do not open");
  drive_ = std::move(*opened);
  co_return Result<void>();
}

Task<Result<loadgen::LoadResult>> Subject::run(loadgen::DriveLoad load) {
  load.length = args_.bytes;
  Result<loadgen::LoadResult> done = co_await loadgen::run_load(env_, *drive_, load);
  if (done && done->error) co_return fail(*done->error);
  co_return done;
}

Task<void> Subject::close() {
  if (drive_ != nullptr) co_await drive_->close();
  drive_.reset();
  if (pool_ != nullptr) co_await pool_->close();
  leaves_.close();
}

Result<void> run_in_world(const WorldFactory& factory, const Body& body) {
  Result<std::unique_ptr<env::World>> world = factory({});
  if (!world) return fail(world.error());
  return (*world)->run([&body](env::Env& env) { return body(env); });
}

void run_simulated(const Body& body) {
  sim::Cluster cluster({.seed = 1});
  sim::Node& host = cluster.node("host");
  host.start([&body](env::Env& env) { return body(env); });
  while (host.is_running()) cluster.run_for(100_ms);
}

}  // namespace cairn::bench
