// SPDX-License-Identifier: Apache-2.0
#include "bench/volume/subject.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stack/stack.h"
#include "world/sim/cluster.h"

namespace cairn::bench {

using task::Task;

namespace {

constexpr uint64_t kFillSize = 256_KiB;
constexpr uint32_t kFillDepth = 8;  // for each drive
constexpr std::string_view kName = "v";
constexpr std::string_view kLeaf = "mem:size=1M";  // stands for the next drive

}  // namespace

// Each leaf is the next of the drives, whatever its text says.
class Subject::MediaLeaves final : public drive::Leaves {
 public:
  explicit MediaLeaves(std::unique_ptr<Media> media)
      : media_(std::move(media)), uris_(media_->uris()) {}
  Task<Leaf> open(env::Env& /*env*/, std::string /*text*/) override {
    if (next_ == uris_.size()) co_return std::unexpected("there are no more drives");
    Result<std::unique_ptr<drive::Drive>> drive =
        co_await media_->open(uris_[next_++], "host", task::CancelToken());
    if (!drive) co_return std::unexpected(drive.error().text());
    co_return std::move(*drive);
  }
  Task<void> close(env::Env& env) { return media_->close(env); }

 private:
  std::unique_ptr<Media> media_;
  std::vector<std::string> uris_;
  size_t next_ = 0;
};

Subject::Subject(env::Env& env, SubjectArgs args) : env_(env), args_(std::move(args)) {}
Subject::~Subject() = default;

Task<Result<std::unique_ptr<Subject>>> Subject::open(env::Env& env, SubjectArgs args) {
  auto subject = std::make_unique<Subject>(env, std::move(args));
  const Result<void> begun = co_await subject->begin();
  if (begun) co_return subject;
  co_await subject->close();
  co_return fail(begun.error());
}

Result<std::unique_ptr<Media>> Subject::make_media() {
  if (args_.flash != nullptr) {
    return FlashMedia::make(env_, args_.drives, args_.drive_bytes, *args_.flash);
  }
  return SpecMedia::make(env_, args_.drives,
                         {.kind = drive::Spec::Kind::kMemory, .size = args_.drive_bytes});
}

Task<Result<void>> Subject::begin() {
  Result<std::unique_ptr<Media>> media = make_media();
  if (!media) co_return fail(media.error());
  Result<void> done;
  if (args_.layout == Layout::kVolume) {
    done = co_await begin_volume(std::move(*media));
  } else {
    done = co_await begin_stack(std::move(*media));
  }
  if (!done) co_return done;
  loadgen::DriveLoad fill{.order = loadgen::DriveLoad::Order::kSequential,
                          .read_share = 0,
                          .request_size = kFillSize,
                          .depth = kFillDepth * static_cast<uint32_t>(args_.drives),
                          .duration = 3600_s,
                          .requests_max = args_.bytes / kFillSize};
  const Result<loadgen::LoadResult> filled = co_await run(fill);
  if (!filled) co_return fail(filled.error());
  if (args_.flash != nullptr) {
    // Where blocks lie on flash follows from the order of their writes: in none, of all subjects.
    fill.order = loadgen::DriveLoad::Order::kRandom;
    const Result<loadgen::LoadResult> mixed = co_await run(fill);
    if (!mixed) co_return fail(mixed.error());
  }
  co_return co_await drive_->flush();
}

Task<Result<void>> Subject::begin_volume(std::unique_ptr<Media> media) {
  Result<std::unique_ptr<PoolScene>> pool = co_await PoolScene::make(env_, std::move(media));
  if (!pool) co_return fail(pool.error());
  pool_ = std::move(*pool);
  if (args_.leaves_last) {
    const Result<arbiter::ArbiterHost::Use> arbiter = pool_->host().use();
    if (!arbiter) co_return fail(arbiter.error());
    const volume::MegaVolId last(static_cast<uint16_t>(args_.drives - 1));
    const Result<void> left = co_await (*arbiter)->drain(last, true);
    if (!left) co_return left;
  }
  const Result<void> created =
      co_await pool_->create(std::string(kName), args_.bytes, args_.replicas);
  if (!created) co_return created;
  Result<std::unique_ptr<volume::VolumeDrive>> opened = fail(Errc::kClosed, "not tried");
  if (args_.is_steered) {
    opened = co_await pool_->open_steered(std::string(kName));
  } else {
    opened = co_await pool_->open(std::string(kName));
  }
  if (!opened) co_return fail(opened.error());
  drive_ = std::move(*opened);
  co_return Result<void>();
}

Task<Result<void>> Subject::begin_stack(std::unique_ptr<Media> media) {
  leaves_ = std::make_unique<MediaLeaves>(std::move(media));
  std::string text(kLeaf);
  if (args_.layout == Layout::kStripe) {
    std::string all;
    for (size_t i = 0; i < args_.drives; ++i) all += text + ", ";
    text = "stripe(" + all + "chunk=64K)";  // as LVM has it by default
  }
  drive::Opened opened = co_await drive::open_stack(env_, text, *leaves_);
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
  if (leaves_ != nullptr) co_await leaves_->close(env_);
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
