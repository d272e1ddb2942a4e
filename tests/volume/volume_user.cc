// SPDX-License-Identifier: Apache-2.0
#include "tests/volume/volume_user.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "task/deadline.h"
#include "task/when_all.h"

namespace cairn::volume_tests {

using task::Task;
using volume::TestMedium;

namespace {

constexpr size_t kWorkers = 3;
constexpr Duration kOpLimit = 4_s;

// A block full of one value.
std::vector<std::byte> block_of(uint64_t value) {
  std::vector<std::byte> block(TestMedium::kBlock);
  for (size_t at = 0; at < block.size(); at += sizeof value) {
    store(MutableBytes(block).subspan(at), value);
  }
  return block;
}

}  // namespace

// All of it, when it is healed in the end.
Task<void> VolumeUser::read_snapshot(const std::string& name) {
  for (int i = 0; facts_.is_resting && i < 400 && !drive_.jobs().empty() && drive_.is_held(); ++i) {
    co_await nap(env_, 50_ms);
  }
  if (facts_.is_resting && !drive_.jobs().empty()) co_return;
  SnapshotFacts& snapshot = facts_.snapshots[name];
  for (uint64_t block = 0; block < kVolumeExtents * kExtentBlocks; ++block) {
    std::vector<std::byte> data(TestMedium::kBlock);
    const Result<void> done = co_await drive_.read(Lba(block), data);
    if (!done) co_return;
    const auto value = load<uint64_t>(data);
    if (data != block_of(value)) {
      co_return facts_.fail_with(fmt::format("a block of {} has parts of two writes", name));
    }
    if (!snapshot.may_hold(block, value)) {
      co_return facts_.fail_with(fmt::format("block {} of {} reads as {}{}", block, name, value,
                                             snapshot.has_one_holder ? ", with one holder" : ""));
    }
    const uint64_t first = snapshot.seen.try_emplace(block, value).first->second;
    if (first != value) {
      co_return facts_.fail_with(
          fmt::format("block {} of {} reads as {}, and was {}", block, name, value, first));
    }
  }
  snapshot.is_checked |= facts_.is_resting;
  ++facts_.snapshots_read;
}

Task<void> VolumeUser::use(VolumeFacts& volume) {
  if (facts_.is_resting) co_return co_await check(volume);
  const Time until =
      env_.now() + Duration{static_cast<int64_t>(env_.rng().between(200'000'000, 6'000'000'000))};
  std::vector<Task<void>> workers;
  workers.reserve(kWorkers);
  for (uint64_t i = 0; i < kWorkers; ++i) workers.push_back(work(volume, i, until));
  co_await task::when_all(std::move(workers));
}

// Each has extents of its own, so that there is an order of what happens to a block.
Task<void> VolumeUser::work(VolumeFacts& volume, uint64_t worker, Time until) {
  constexpr uint64_t kOwn = kVolumeExtents / kWorkers;
  while (!env_.stop_token().requested() && drive_.is_held() && env_.now() < until &&
         !facts_.is_resting) {
    const uint64_t extent = worker * kOwn + env_.rng().below(kOwn);
    const uint64_t block = extent * kExtentBlocks + env_.rng().below(kExtentBlocks);
    const uint64_t what = env_.rng().below(100);
    if (what < 45) {
      co_await write(volume, block);
    } else if (what < 85) {
      co_await read(volume, block);
    } else if (what < 97) {
      co_await flush(volume);
    } else {
      co_await clear(volume, extent);
    }
    if (env_.rng().bernoulli(0.3)) co_await nap(env_, 2_ms);
  }
}

Task<void> VolumeUser::write(VolumeFacts& volume, uint64_t block) {
  const uint64_t value = ++facts_.last_write;
  const uint64_t epoch = drive_.session().epoch.value();
  const std::vector<std::byte> data = block_of(value);
  facts_.begin(volume, block, value, value);
  task::Deadline deadline(env_, env_.now() + (env_.rng().bernoulli(0.02) ? 100_us : kOpLimit),
                          env_.stop_token());
  const Result<void> done = co_await drive_.write(Lba(block), data, deadline.token());
  if (!done || epoch != volume.epoch) co_return;
  volume.oracle.acknowledge(block, value);
  ++facts_.writes;
}

Task<void> VolumeUser::clear(VolumeFacts& volume, uint64_t extent) {
  const uint64_t epoch = drive_.session().epoch.value();
  const uint64_t first = extent * kExtentBlocks;
  const uint64_t change = ++facts_.last_write;
  for (uint64_t i = 0; i < kExtentBlocks; ++i) facts_.begin(volume, first + i, change, 0);
  task::Deadline deadline(env_, env_.now() + kOpLimit, env_.stop_token());
  const Result<void> done = co_await drive_.discard(Lba(first), kExtentBlocks, deadline.token());
  if (!done || epoch != volume.epoch) co_return;
  for (uint64_t i = 0; i < kExtentBlocks; ++i) volume.oracle.acknowledge(first + i, change);
}

Task<void> VolumeUser::read(VolumeFacts& volume, uint64_t block) {
  const uint64_t epoch = drive_.session().epoch.value();
  std::vector<std::byte> data(TestMedium::kBlock);
  const Result<void> done = co_await drive_.read(Lba(block), data);
  // A holder that was expelled may not know it yet.
  if (!done || epoch != volume.epoch) co_return;
  const auto value = load<uint64_t>(data);
  if (data != block_of(value)) {
    facts_.fail_with(fmt::format("a block of {} has parts of two writes", volume.name));
  } else if (!volume.oracle.is_possible(block, value)) {
    facts_.fail_with(fmt::format("block {} of {} reads as {}, and should be {}", block, volume.name,
                                 value, volume.oracle.text(block)));
  }
}

Task<void> VolumeUser::flush(VolumeFacts& volume) {
  const uint64_t epoch = drive_.session().epoch.value();
  const Oracle::Promise promise = volume.oracle.promise();
  const Result<void> done = co_await drive_.flush();
  if (epoch != volume.epoch) co_return;
  // A loss that was told is not mended by the next flush.
  if (done) {
    volume.oracle.keep(promise);
  } else {
    volume.oracle.doubt();
  }
}

Task<void> VolumeUser::check(VolumeFacts& volume) {
  for (int i = 0; i < 400 && !drive_.jobs().empty() && drive_.is_held(); ++i) {
    co_await nap(env_, 50_ms);
  }
  if (!drive_.jobs().empty() || env_.stop_token().requested()) co_return;
  for (uint64_t block = 0; block < kVolumeExtents * kExtentBlocks; ++block) {
    std::vector<std::byte> data(TestMedium::kBlock);
    const Result<void> done = co_await drive_.read(Lba(block), data);
    if (!done) co_return;
    co_await read(volume, block);
  }
  volume.is_checked = true;
}

}  // namespace cairn::volume_tests
