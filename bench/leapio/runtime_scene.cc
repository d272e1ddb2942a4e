// SPDX-License-Identifier: Apache-2.0
#include "bench/leapio/runtime_scene.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "bench/leapio/big_drive.h"
#include "bench/leapio/one_box.h"
#include "fabric/host/remote_drive.h"
#include "fabric/host/uri.h"
#include "loadgen/drive_load.h"
#include "task/deadline.h"
#include "world/sim/cluster.h"

namespace cairn::bench::leapio {

namespace {

using drive::Drive;

constexpr uint16_t kPort = 4420;
constexpr uint64_t kFillSize = 64_KiB;
constexpr uint32_t kFillDepth = 16;
// Until the drive has written what it was given.
constexpr Duration kSettle = 20_s;
constexpr double kWarmUp = 0.25;  // of the measured time, before it
constexpr Duration kPlayMax = 3600_s;
constexpr const char* kNqn = "nqn.2026-11.io.cairn:leapio";

class Play {
 public:
  Play(const RuntimeScene& scene, const Stage& stage) : scene_(scene), stage_(stage) {}

  Result<RuntimePlayed> run() {
    sim::Cluster cluster({.seed = stage_.seed});
    sim::Node& host = cluster.node("host", machine());
    std::optional<env::Address> box;
    if (scene_.remote) {
      sim::Node& node = cluster.node("box", machine());
      box = node.address(kPort);
      node.start([this, box](env::Env& env) { return serve(env, *box); });
    }
    host.start([this, box](env::Env& env) { return live(env, box); });
    const bool ended = cluster.run_until([this] { return is_done_; }, kPlayMax);
    for (sim::Node* node : cluster.nodes()) node->stop();
    (void)cluster.run_until_idle(kPlayMax);
    if (!box_) return fail(box_.error());
    if (!ended) return fail(Errc::kTimedOut, "a scene did not end in an hour of its own time");
    if (failure_) return fail(*failure_);
    return std::move(played_);
  }

 private:
  Result<std::unique_ptr<drive::Source>> make_source(env::Env& env) const {
    Result<std::unique_ptr<drive::Source>> source = make_part(
        env,
        {.drive = stage_.drive, .drive_bytes = stage_.drive_bytes, .bytes = stage_.used_bytes});
    if (!source || scene_.runtime == Placement::kNone) return source;
    return with_runtime(std::move(*source), costs_of(scene_));
  }

  task::Task<void> serve(env::Env& env, env::Address at) {
    Result<std::unique_ptr<drive::Source>> source = make_source(env);
    if (!source) {
      box_ = fail(source.error());
      co_return;
    }
    co_await serve_one(env, {.at = std::move(at), .nqn = kNqn}, **source, box_);
  }

  task::Task<void> live(env::Env& env, std::optional<env::Address> box) {
    std::unique_ptr<drive::Source> source;
    Result<std::unique_ptr<Drive>> drive = fail(Errc::kInvalid, "no drive");
    if (box) {
      const fabric::Uri uri{.paths = {*box}, .nqn = kNqn};
      Result<std::unique_ptr<fabric::RemoteDrive>> remote =
          co_await fabric::RemoteDrive::open(env, uri);
      drive = remote ? Result<std::unique_ptr<Drive>>(std::move(*remote)) : fail(remote.error());
    } else {
      Result<std::unique_ptr<drive::Source>> made = make_source(env);
      drive = made ? (*made)->open(env) : fail(made.error());
      if (made) source = std::move(*made);
    }
    if (drive) {
      co_await load(env, **drive);
      co_await (*drive)->close();
      drive->reset();
    } else {
      failure_ = drive.error();
    }
    if (source != nullptr) co_await source->close(env);
    source.reset();
    is_done_ = true;
  }

  // Written through once, so that every read finds a page.
  task::Task<void> load(env::Env& env, Drive& drive) {
    const uint64_t bytes = drive.geometry().bytes();
    const loadgen::DriveLoad fill{.order = loadgen::DriveLoad::Order::kSequential,
                                  .read_share = 0,
                                  .request_size = kFillSize,
                                  .depth = kFillDepth,
                                  .duration = kPlayMax,
                                  .requests_max = bytes / kFillSize};
    const Result<loadgen::LoadResult> filled = co_await loadgen::run_load(env, drive, fill);
    const Result<void> rested = co_await task::sleep_for(env, kSettle);
    const loadgen::DriveLoad threads{.read_share = scene_.reads,
                                     .depth = scene_.threads,
                                     .warm_up = Duration::from_seconds(stage_.seconds * kWarmUp),
                                     .duration = Duration::from_seconds(stage_.seconds),
                                     .seed = stage_.seed};
    const Result<loadgen::LoadResult> done = co_await loadgen::run_load(env, drive, threads);
    if (!filled || !done || !rested) {
      failure_ = !filled ? filled.error() : !done ? done.error() : rested.error();
    } else if (filled->error || done->error) {
      failure_ = filled->error ? filled->error : done->error;
    } else {
      played_ = {.per_second = done->per_second, .latency_ns = done->latency_ns()};
    }
  }

  const RuntimeScene& scene_;
  const Stage& stage_;
  Result<void> box_;
  std::optional<Error> failure_;
  RuntimePlayed played_;
  bool is_done_ = false;
};

}  // namespace

RuntimeCosts costs_of(const RuntimeScene& scene) {
  const bool is_card = scene.runtime == Placement::kCoprocessor;
  const double whole = static_cast<double>((scene.remote ? kBoxCost : kRuntimeCost).ns) /
                       (is_card ? kCoprocessorSpeed : 1);
  const Duration half{static_cast<int64_t>(whole / 2)};
  return {
      .access = is_card && !scene.remote ? kQueueAccess : 0_s, .submit = half, .complete = half};
}

Result<RuntimePlayed> play(const RuntimeScene& scene, const Stage& stage) {
  Play playing(scene, stage);
  return playing.run();
}

}  // namespace cairn::bench::leapio
