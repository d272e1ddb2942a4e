// SPDX-License-Identifier: Apache-2.0
#include "bench/leapio/scene.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "base/rng.h"
#include "bench/leapio/big_drive.h"
#include "bench/leapio/one_box.h"
#include "bench/leapio/search_load.h"
#include "drive/source.h"
#include "fabric/host/remote_drive.h"
#include "fabric/host/uri.h"
#include "service/raid/mirror.h"
#include "stack/stack.h"
#include "task/deadline.h"
#include "task/gate.h"
#include "task/sync.h"
#include "world/sim/cluster.h"

namespace cairn::bench::leapio {

namespace {

using drive::Drive;
using drive::Request;

constexpr double kAged = 0.8;
constexpr uint16_t kPort = 4420;
// The index that is searched comes first; batch works behind it.
constexpr uint64_t index_bytes(const drive::Geometry& drive) { return drive.bytes() / 8; }
// As the index is written before it is searched. Each flash page once: pages that are written again
// within a second would stay in the drive's cache.
constexpr uint64_t kFillSize = 64_KiB;
constexpr uint64_t kFillDepth = 16;
// Rebuilding an index, beside the one in use or as a newer version of it: reads here and there, and
// writes one place after the other, so that none is written again while the drive's cache has it.
constexpr uint64_t kBatchDepth = 32;
constexpr uint64_t kBatchSize = 32_KiB;
// Until a new mirror has made its legs equal, and until drives have written what they were given.
constexpr Duration kSettle = 20_s;
// Of the time that is measured, before it: until search and batch have found their way.
constexpr double kWarmUp = 0.25;
constexpr Duration kPlayMax = 3600_s;

Part part_of(const Scene& scene, const Stage& stage) {
  auto flash = std::make_shared<flash::Parameters>(*stage.drive);
  if (scene.suspend_ns > 0) flash->suspend_program_ns = scene.suspend_ns;
  return {.drive = std::move(flash),
          .drive_bytes = stage.drive_bytes,
          .bytes = stage.used_bytes,
          .occupancy = scene.aged ? kAged : 0};
}

std::string nqn_of(size_t box) { return fmt::format("nqn.2026-11.io.cairn:leapio{}", box); }

// "flash:" is a modelled drive of this node, anything else the URI of one in a box.
class SceneLeaves final : public drive::Leaves {
 public:
  explicit SceneLeaves(Part part) : part_(std::move(part)) {}

  task::Task<Leaf> open(env::Env& env, std::string text) override {
    if (text.starts_with("nvme-tcp:")) {
      const auto uri = fabric::Uri::parse(text);
      if (!uri) co_return std::unexpected(uri.error());
      Result<std::unique_ptr<fabric::RemoteDrive>> remote =
          co_await fabric::RemoteDrive::open(env, *uri);
      if (!remote) co_return std::unexpected(remote.error().text());
      co_return std::move(*remote);
    }
    Result<std::unique_ptr<drive::Source>> source = make_part(env, part_);
    if (!source) co_return std::unexpected(source.error().text());
    Result<std::unique_ptr<Drive>> opened = (*source)->open(env);
    if (!opened) co_return std::unexpected(opened.error().text());
    sources_.push_back(std::move(*source));
    co_return std::move(*opened);
  }
  void close() { sources_.clear(); }

 private:
  const Part part_;
  std::vector<std::unique_ptr<drive::Source>> sources_;
};

// A box with one modelled drive, until it is asked to stop.
task::Task<void> serve(env::Env& env, env::Address at, std::string nqn, Part part,
                       Result<void>& outcome) {
  Result<std::unique_ptr<drive::Source>> source = make_part(env, part);
  if (!source) {
    outcome = fail(source.error());
    co_return;
  }
  co_await serve_one(env, {.at = std::move(at), .nqn = std::move(nqn)}, **source, outcome);
}

class Play {
 public:
  Play(const Scene& scene, const Stage& stage)
      : scene_(scene),
        stage_(stage),
        part_(part_of(scene, stage)),
        leaves_(part_),
        lookup_memory_(kLookupMax),
        written_(kFillSize, std::byte{0x5a}) {}

  Result<Played> run() {
    sim::Cluster cluster({.seed = stage_.seed});
    sim::Node& host = cluster.node("host", machine());
    const std::string stack = place_drives(cluster);
    host.start([this, stack](env::Env& env) { return live(env, stack); });
    const bool ended = cluster.run_until([this] { return is_done_; }, kPlayMax);
    for (sim::Node* node : cluster.nodes()) node->stop();
    (void)cluster.run_until_idle(kPlayMax);
    for (const Result<void>& box : boxes_) {
      if (!box) return fail(box.error());
    }
    if (!ended) return fail(Errc::kTimedOut, "a scene did not end in an hour of its own time");
    if (failure_) return fail(*failure_);
    return std::move(played_);
  }

 private:
  // Starts the boxes; gives the stack with its drives named.
  std::string place_drives(sim::Cluster& cluster) {
    std::string stack = scene_.stack;
    constexpr size_t kDrivesMax = 16;
    boxes_.reserve(kDrivesMax);
    for (size_t at = stack.find("{}"); at != std::string::npos; at = stack.find("{}")) {
      std::string leaf = "flash:";
      if (scene_.remote) {
        const size_t number = boxes_.size();
        boxes_.emplace_back();
        sim::Node& box = cluster.node(fmt::format("box{}", number), machine());
        const env::Address address = box.address(kPort);
        box.start([this, address, number](env::Env& env) {
          return serve(env, address, nqn_of(number), part_, boxes_[number]);
        });
        leaf = fabric::Uri{.paths = {address}, .nqn = nqn_of(number)}.text();
      }
      stack.replace(at, 2, leaf);
    }
    return stack;
  }

  task::Task<void> live(env::Env& env, std::string stack) {
    drive::Opened opened = co_await drive::open_stack(env, std::move(stack), leaves_);
    if (opened) {
      co_await use(env, **opened);
      co_await (*opened)->close();
      opened->reset();
    } else {
      note(Error(Errc::kInvalid, "the stack of a scene does not open"));
    }
    leaves_.close();
    is_done_ = true;
  }

  task::Task<void> use(env::Env& env, Drive& drive) {
    // What it copies later would be written twice, and stay in the drives' caches.
    if (scene_.stack.contains("mirror")) co_await rest(env);
    const std::optional<drive::MirrorStatus> mirror = drive::mirror_status(drive);
    if (mirror && mirror->regions_to_copy > 0) {
      note(Error(Errc::kTimedOut, "the mirror of a scene still makes its legs equal"));
    }
    task::Gate filling;
    for (uint64_t i = 0; i < kFillDepth; ++i) filling.spawn(fill(drive, i));
    co_await filling.close();
    std::unique_ptr<Drive> version;
    if (scene_.pinned) {
      const auto taken = co_await drive.tell({"take"});
      Result<std::unique_ptr<Drive>> view = drive.open_view("1");
      if (!taken || !view) {
        note(Error(Errc::kInvalid, "a version of the scene's drive cannot be taken"));
        co_return;
      }
      version = std::move(*view);
    }
    co_await rest(env);
    task::Gate batch;
    if (scene_.batch) {
      for (uint64_t i = 0; i < kBatchDepth; ++i) batch.spawn(work(drive, i));
    }
    co_await search(env, version == nullptr ? drive : *version);
    is_over_ = true;
    co_await batch.close();
    if (version != nullptr) co_await version->close();
  }

  task::Task<void> rest(env::Env& env) {
    const Result<void> rested = co_await task::sleep_for(env, kSettle);
    if (!rested) note(rested.error());
  }

  task::Task<void> fill(Drive& drive, uint64_t worker) {
    const uint64_t blocks = kFillSize / drive.geometry().block_size;
    const uint64_t places = index_bytes(drive.geometry()) / kFillSize;
    for (uint64_t i = worker; i < places && !failure_; i += kFillDepth) {
      const Result<void> done = co_await drive.write(Lba(i * blocks), written_);
      if (!done) note(done.error());
    }
  }

  task::Task<void> search(env::Env& env, Drive& drive) {
    const Duration warm_up = Duration::from_seconds(stage_.seconds * kWarmUp);
    const std::vector<Lookup> lookups = draw({.seconds = warm_up.seconds() + stage_.seconds,
                                              .per_second = scene_.lookups_per_second,
                                              .space = index_bytes(drive.geometry()),
                                              .seed = stage_.seed});
    const Time start = env.now();
    uint64_t before = 0;
    uint64_t bytes = 0;
    task::Gate gate;
    for (const Lookup& lookup : lookups) {
      const Result<void> slept = co_await task::sleep_until(env, start + lookup.at);
      if (!slept || failure_) break;
      if (!is_measured_ && lookup.at >= warm_up) {
        is_measured_ = true;
        before = batch_bytes_;
      }
      if (scene_.search) gate.spawn(look_up(env, drive, lookup));
      if (is_measured_) bytes += lookup.bytes;
    }
    co_await gate.close();
    const double seconds = std::max((env.now() - start - warm_up).seconds(), 1e-9);
    played_.lookup_bytes_per_second = scene_.search ? static_cast<double>(bytes) / seconds : 0;
    played_.batch_bytes_per_second = static_cast<double>(batch_bytes_ - before) / seconds;
  }

  // What is read is not looked at, so all lookups share their memory.
  task::Task<void> look_up(env::Env& env, Drive& drive, Lookup lookup) {
    const uint64_t block = drive.geometry().block_size;
    const uint64_t max = drive.geometry().transfer_blocks * block;
    const bool is_counted = is_measured_;
    const Time start = env.now();
    task::Gate parts;
    for (uint64_t at = 0; at < lookup.bytes; at += max) {
      const uint64_t size = std::min(max, lookup.bytes - at);
      parts.spawn(read_part(drive, Lba((lookup.offset + at) / block),
                            MutableBytes(lookup_memory_).subspan(at, size)));
    }
    co_await parts.close();
    if (is_counted) played_.lookup_us.push_back((env.now() - start).us());
  }
  task::Task<void> read_part(Drive& drive, Lba lba, MutableBytes into) {
    const Result<void> done = co_await drive.read(lba, into);
    if (!done) note(done.error());
  }

  task::Task<void> work(Drive& drive, uint64_t worker) {
    Rng rng(stage_.seed * 1000 + worker);
    std::vector<std::byte> memory(written_.begin(), written_.begin() + kBatchSize);
    const MutableBytes pieces[] = {memory};
    const uint64_t blocks = kBatchSize / drive.geometry().block_size;
    const uint64_t index = index_bytes(drive.geometry()) / kBatchSize;
    const uint64_t first = scene_.pinned ? 0 : index;
    const uint64_t places = scene_.pinned ? index : drive.geometry().bytes() / kBatchSize - index;
    while (!is_over_ && !failure_) {
      const bool reads = rng.uniform() < scene_.batch_reads;
      const uint64_t place = reads ? rng.below(places) : batch_writes_++ % places;
      const Request request{.kind = reads ? Request::Kind::kRead : Request::Kind::kWrite,
                            .priority = drive::Priority::kLow,
                            .lba = Lba((first + place) * blocks),
                            .blocks = blocks};
      const Result<void> done = co_await drive.submit(request, pieces);
      if (!done) note(done.error());
      batch_bytes_ += kBatchSize;
    }
  }

  void note(const Error& error) {
    if (!failure_) failure_ = error;
  }

  const Scene& scene_;
  const Stage& stage_;
  const Part part_;
  SceneLeaves leaves_;
  std::vector<std::byte> lookup_memory_;
  std::vector<std::byte> written_;
  std::vector<Result<void>> boxes_;
  std::optional<Error> failure_;
  Played played_;
  uint64_t batch_bytes_ = 0;
  uint64_t batch_writes_ = 0;
  bool is_measured_ = false;
  bool is_over_ = false;
  bool is_done_ = false;
};

}  // namespace

double Played::percentile_us(double part) const {
  if (lookup_us.empty()) return 0;
  std::vector<double> sorted = lookup_us;
  std::ranges::sort(sorted);
  const auto rank = static_cast<size_t>(std::ceil(part * static_cast<double>(sorted.size())));
  return sorted[std::clamp<size_t>(rank, 1, sorted.size()) - 1];
}

Result<Played> play(const Scene& scene, const Stage& stage) {
  Play playing(scene, stage);
  return playing.run();
}

}  // namespace cairn::bench::leapio
