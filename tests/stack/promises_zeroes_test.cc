// SPDX-License-Identifier: Apache-2.0
// The promises about discards and write-zeroes, for every service and every pair: their blocks read
// as zeroes, at once and after the drive was opened again, and no other block changes. All memory
// that a service can get has been used before, so that what it forgets to clear shows.
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/rng.h"
#include "stack/subjects.h"
#include "testing/stack/files.h"
#include "testing/stack/stacks.h"
#include "world/sim/cluster.h"
#include "world/sim/scenario/scenario.h"

namespace cairn::stack {
namespace {

using drive::Request;
using Kind = Request::Kind;

constexpr std::byte kDirt{0xd5};

// Leaves a core's buffers as if others had used them; of each size at most so many.
void dirty(env::Env& env, size_t max) {
  for (size_t size = BufferPool::kAlignment; size <= env.buffers().size_max(); size *= 4) {
    std::vector<Buffer> taken;
    while (taken.size() < max) {
      Result<Buffer> buffer = env.buffers().allocate(size);
      if (!buffer) break;
      std::ranges::fill(buffer->bytes(), kDirt);
      taken.push_back(std::move(*buffer));
    }
  }
}

// A drive, and what each block of it must hold: a number in every word; 0: zeroes.
class Contents {
 public:
  explicit Contents(drive::Drive& drive)
      : drive_(drive), size_(drive.geometry().block_size), words_(drive.geometry().blocks) {}
  // Where the same drive is open again.
  Contents(drive::Drive& drive, Contents before)
      : drive_(drive), size_(before.size_), words_(std::move(before.words_)) {}

  uint64_t blocks() const { return words_.size(); }

  task::Task<void> write(uint64_t first, uint64_t count) {
    const uint64_t max = std::min<uint64_t>(drive_.geometry().transfer_blocks, 64);
    for (uint64_t at = first; at < first + count; at += max) {
      const uint64_t here = std::min(max, first + count - at);
      std::vector<std::byte> data(here * size_);
      for (uint64_t i = 0; i < here; ++i) {
        words_[at + i] = next_++;
        for (size_t word = 0; word < size_; word += sizeof(uint64_t)) {
          store(MutableBytes(data).subspan(i * size_ + word), words_[at + i]);
        }
      }
      co_await drive::write_bytes(drive_, at, data);
    }
  }
  void zeroed(uint64_t first, uint64_t count) { std::fill_n(words_.begin() + first, count, 0); }

  // Empty, or which block is wrong.
  task::Task<std::string> check(uint64_t first, uint64_t count) const {
    const uint64_t max = std::min<uint64_t>(drive_.geometry().transfer_blocks, 64);
    for (uint64_t at = first; at < first + count; at += max) {
      const uint64_t here = std::min(max, first + count - at);
      const std::vector<std::byte> data = co_await drive::read_bytes(drive_, at, here);
      for (size_t word = 0; word < data.size(); word += sizeof(uint64_t)) {
        const auto got = load<uint64_t>(Bytes(data).subspan(word));
        const uint64_t block = at + word / size_;
        if (got != words_[block]) {
          co_return fmt::format("block {} holds {:#x}, not {:#x}", block, got, words_[block]);
        }
      }
    }
    co_return "";
  }
  task::Task<std::string> check_around(uint64_t first, uint64_t count) const {
    const uint64_t from = first - std::min<uint64_t>(first, 20);
    co_return co_await check(from, std::min(first + count + 20, blocks()) - from);
  }

 private:
  drive::Drive& drive_;
  const uint32_t size_;
  std::vector<uint64_t> words_;
  uint64_t next_ = 0x1000;
};

// The ways in which callers ask: a request's kind says what it is, whatever memory comes with it.
constexpr size_t kWays = 6;
task::Task<Result<void>> ask(drive::Drive& drive, size_t way, uint64_t first, uint64_t count) {
  Request request{.kind = way % 2 == 0 ? Kind::kDiscard : Kind::kWriteZeroes,
                  .lba = Lba(first),
                  .blocks = count};
  std::vector<std::byte> junk(count * drive.geometry().block_size, kDirt);
  const MutableBytes piece = junk;
  if (way == 0) co_return co_await drive.discard(Lba(first), count);
  if (way == 1) co_return co_await drive.write_zeroes(Lba(first), count);
  request.durable = way == 3;
  request.keep_space = way == 5;
  if (way < 4) co_return co_await drive.submit(request, {});
  co_return co_await drive.submit(request, {&piece, 1});
}

struct Zeroing {
  std::string stack;
  uint64_t seed = 1;
  size_t rounds = 1;
  std::string failure;
};

task::Task<void> zero_here_and_there(env::Env& env, Zeroing& run) {
  drive::LeavesWithFiles leaves({{"drive.key", drive::testing_key(1)}});
  Rng rng(run.seed);
  std::unique_ptr<drive::Drive> drive = co_await drive::must_open(env, run.stack, leaves);
  CO_ASSERT_TRUE(drive != nullptr);
  dirty(env, SIZE_MAX);
  Contents contents(*drive);
  co_await contents.write(0, contents.blocks());
  constexpr uint64_t kCounts[] = {1, 2, 3, 7, 16, 17, 40, 150};
  for (size_t i = 0; i < run.rounds * kWays * std::size(kCounts) && run.failure.empty(); ++i) {
    const size_t way = i % kWays;
    const uint64_t count = std::min(kCounts[i / kWays % std::size(kCounts)], contents.blocks());
    // Every other one begins where chunks of any size do.
    uint64_t first = rng.below(contents.blocks() - count + 1);
    if (rng.bernoulli(0.3)) first -= first % 16;
    dirty(env, 40);
    const Result<void> done = co_await ask(*drive, way, first, count);
    if (!done) run.failure = done.error().text();
    contents.zeroed(first, count);
    dirty(env, 40);
    if (run.failure.empty()) run.failure = co_await contents.check_around(first, count);
    if (!run.failure.empty()) {
      run.failure += fmt::format(" after way {} of {} blocks at {}", way, count, first);
    }
    if (rng.bernoulli(0.5)) {
      const uint64_t some = std::min<uint64_t>(rng.between(1, 30), contents.blocks());
      co_await contents.write(rng.below(contents.blocks() - some + 1), some);
    }
  }
  if (run.failure.empty()) run.failure = co_await contents.check(0, contents.blocks());
  co_await drive->close();
  drive = nullptr;
  leaves.close();
  drive = co_await drive::must_open(env, run.stack, leaves);
  CO_ASSERT_TRUE(drive != nullptr);
  dirty(env, SIZE_MAX);
  const Contents again(*drive, std::move(contents));
  if (run.failure.empty()) run.failure = co_await again.check(0, again.blocks());
  co_await drive->close();
}

void expect_zeroes(const std::string& stack, uint64_t seeds, size_t rounds) {
  mallopt(M_PERTURB, 0x2a);  // the heap's memory is not clean either
  for (const uint64_t seed : sim::seeds_to_run(seeds)) {
    Zeroing run{.stack = stack, .seed = seed, .rounds = rounds};
    sim::Cluster cluster({.seed = seed});
    drive::run_in_sim(cluster, [&run](env::Env& env) { return zero_here_and_there(env, run); });
    EXPECT_EQ(run.failure, "") << stack << ", seed " << seed;
  }
  mallopt(M_PERTURB, 0);
}

class EveryServiceZeroes : public testing::TestWithParam<Subject> {};
TEST_P(EveryServiceZeroes, DiscardedAndZeroedBlocksReadAsZeroes) {
  expect_zeroes(GetParam().stack, 3, 2);
}
INSTANTIATE_TEST_SUITE_P(Promises, EveryServiceZeroes, testing::ValuesIn(every_service()),
                         subject_name);

class EveryPairZeroes : public testing::TestWithParam<Subject> {};
TEST_P(EveryPairZeroes, DiscardedAndZeroedBlocksReadAsZeroes) {
  expect_zeroes(GetParam().stack, 1, 1);
}
INSTANTIATE_TEST_SUITE_P(Promises, EveryPairZeroes, testing::ValuesIn(every_pair()), subject_name);

}  // namespace
}  // namespace cairn::stack
