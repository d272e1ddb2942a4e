// SPDX-License-Identifier: Apache-2.0
#include "bench/leapio/channels.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "bench/leapio/big_drive.h"
#include "stack/stack.h"
#include "task/deadline.h"
#include "task/gate.h"
#include "world/sim/cluster.h"

namespace cairn::bench::leapio {

namespace {

using drive::Drive;

constexpr uint64_t kReadSize = 4_KiB;
constexpr double kReadsPerSecond = 20'000;
// About a third of what half the drive can write.
constexpr uint64_t kWriteSize = 64_KiB;
constexpr double kWritesPerSecond = 12'500;
constexpr double kOccupancy = 0.8;
constexpr Duration kPlayMax = 3600_s;

// One modelled drive, for all stacks that name "flash:".
class OneDrive final : public drive::Leaves {
 public:
  explicit OneDrive(const Stage& stage) : stage_(stage) {}

  task::Task<Leaf> open(env::Env& env, std::string /*text*/) override {
    if (source_ == nullptr) {
      Result<std::unique_ptr<drive::Source>> made =
          make_part(env, {.drive = stage_.drive,
                          .drive_bytes = stage_.drive_bytes,
                          .bytes = stage_.used_bytes,
                          .occupancy = kOccupancy});
      if (!made) co_return std::unexpected(made.error().text());
      source_ = std::move(*made);
    }
    Result<std::unique_ptr<Drive>> opened = source_->open(env);
    if (!opened) co_return std::unexpected(opened.error().text());
    co_return std::move(*opened);
  }
  void close() { source_.reset(); }

 private:
  const Stage& stage_;
  std::unique_ptr<drive::Source> source_;
};

class Tenants {
 public:
  Tenants(const Tenancy& tenancy, const Stage& stage)
      : tenancy_(tenancy), stage_(stage), drive_(stage), memory_(kWriteSize) {}

  Result<Played> run() {
    sim::Cluster cluster({.seed = stage_.seed});
    cluster.node("host").start([this](env::Env& env) { return live(env); });
    const bool ended = cluster.run_until([this] { return is_done_; }, kPlayMax);
    for (sim::Node* node : cluster.nodes()) node->stop();
    (void)cluster.run_until_idle(kPlayMax);
    if (!ended)
      return fail(Errc::kTimedOut, "two tenants did not end in an hour of their own time");
    if (failure_) return fail(*failure_);
    return std::move(played_);
  }

 private:
  std::string stack_of(uint32_t tenant) const {
    const uint32_t channels = stage_.drive->channels / 2;
    if (tenancy_.apart) {
      return fmt::format("channels(flash:, first={}, count={})", tenant * channels, channels);
    }
    const uint64_t bytes = stage_.used_bytes / 2;
    return fmt::format("slice(flash:, offset={}, length={})", tenant * bytes, bytes);
  }

  task::Task<void> live(env::Env& env) {
    drive::Opened reader = co_await drive::open_stack(env, stack_of(0), drive_);
    drive::Opened writer = co_await drive::open_stack(env, stack_of(1), drive_);
    if (reader && writer) {
      co_await read_through(**reader);
      co_await read_through(**writer);
      task::Gate gate;
      if (tenancy_.neighbour) gate.spawn(write_on(env, **writer));
      const Time start = env.now();
      co_await read_on(env, **reader);
      played_.batch_bytes_per_second =
          static_cast<double>(written_) / (env.now() - start).seconds();
      is_over_ = true;
      co_await gate.close();
    } else {
      note(Error(Errc::kInvalid, "a modelled drive that two tenants cannot share"));
    }
    for (drive::Opened* opened : {&reader, &writer}) {
      if (!*opened) continue;
      co_await (**opened)->close();
      (*opened)->reset();
    }
    drive_.close();
    is_done_ = true;
  }

  // Drives of this class keep their table of pages in memory; this is how the model's gets there.
  task::Task<void> read_through(Drive& drive) {
    const uint64_t blocks = kWriteSize / drive.geometry().block_size;
    for (uint64_t at = 0; at + blocks <= drive.geometry().blocks && !failure_; at += blocks) {
      const Result<void> done = co_await drive.read(Lba(at), memory_);
      if (!done) note(done.error());
    }
  }

  task::Task<void> read_on(env::Env& env, Drive& drive) {
    Rng rng(stage_.seed);
    const uint64_t blocks = kReadSize / drive.geometry().block_size;
    const uint64_t places = drive.geometry().blocks / blocks;
    const Time start = env.now();
    task::Gate gate;
    for (double at = 0; at < stage_.seconds && !failure_;
         at += rng.exponential(1 / kReadsPerSecond)) {
      const Result<void> slept =
          co_await task::sleep_until(env, start + Duration::from_seconds(at));
      if (!slept) break;
      gate.spawn(read_one(env, drive, Lba(rng.below(places) * blocks)));
    }
    co_await gate.close();
  }
  // What is read is not looked at, so all reads share their memory.
  task::Task<void> read_one(env::Env& env, Drive& drive, Lba lba) {
    const Time start = env.now();
    const Result<void> done = co_await drive.read(lba, MutableBytes(memory_).first(kReadSize));
    if (!done) note(done.error());
    played_.lookup_us.push_back((env.now() - start).us());
  }

  // One place after the other, so that nothing is written again while the drive's cache has it.
  task::Task<void> write_on(env::Env& env, Drive& drive) {
    Rng rng(stage_.seed + 1);
    const uint64_t blocks = kWriteSize / drive.geometry().block_size;
    const uint64_t places = drive.geometry().blocks / blocks;
    const Time start = env.now();
    task::Gate gate;
    double at = 0;
    for (uint64_t i = 0; !is_over_ && !failure_; ++i) {
      at += rng.exponential(1 / kWritesPerSecond);
      const Result<void> slept =
          co_await task::sleep_until(env, start + Duration::from_seconds(at));
      if (!slept) break;
      gate.spawn(write_one(drive, Lba(i % places * blocks)));
    }
    co_await gate.close();
  }
  task::Task<void> write_one(Drive& drive, Lba lba) {
    const Result<void> done = co_await drive.write(lba, memory_);
    if (!done) note(done.error());
    written_ += kWriteSize;
  }

  void note(const Error& error) {
    if (!failure_) failure_ = error;
  }

  const Tenancy& tenancy_;
  const Stage& stage_;
  OneDrive drive_;
  std::vector<std::byte> memory_;
  std::optional<Error> failure_;
  Played played_;
  uint64_t written_ = 0;
  bool is_over_ = false;
  bool is_done_ = false;
};

}  // namespace

Result<Played> read_beside(const Tenancy& tenancy, const Stage& stage) {
  Tenants tenants(tenancy, stage);
  return tenants.run();
}

}  // namespace cairn::bench::leapio
