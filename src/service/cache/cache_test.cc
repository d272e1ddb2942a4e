// SPDX-License-Identifier: Apache-2.0
#include "service/cache/cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <list>
#include <string>
#include <string_view>
#include <vector>

#include "base/rng.h"
#include "service/cache/lru.h"
#include "testing/sim_test.h"
#include "testing/stack/stacks.h"

namespace cairn::drive {
namespace {

// What everybody means by LRU: a list, the last used first.
class Reference {
 public:
  explicit Reference(size_t capacity) : capacity_(capacity) {}
  bool use(uint64_t block) {
    const auto found = std::ranges::find(blocks_, block);
    const bool is_hit = found != blocks_.end();
    if (is_hit) blocks_.erase(found);
    blocks_.push_front(block);
    if (blocks_.size() > capacity_) blocks_.pop_back();
    return is_hit;
  }

 private:
  size_t capacity_;
  std::list<uint64_t> blocks_;
};

constexpr uint64_t kBlocks = 256;
constexpr size_t kCapacity = 64;
constexpr std::string_view kStack = "cache(mem:size=1M, memory=256K)";

// The probability of block i as 1 / (i + 1)^s.
class Zipf {
 public:
  explicit Zipf(double s) {
    double sum = 0;
    for (uint64_t i = 0; i < kBlocks; ++i) sums_.push_back(sum += std::pow(i + 1.0, -s));
  }
  uint64_t draw(Rng& rng) const {
    const double at = rng.uniform() * sums_.back();
    return static_cast<uint64_t>(std::ranges::upper_bound(sums_, at) - sums_.begin());
  }

 private:
  std::vector<double> sums_;
};

template <class Draw>
task::Task<void> compare_hits(env::Env& env, const Draw& draw, uint64_t& hits) {
  SourceLeaves leaves;
  std::unique_ptr<Drive> drive = co_await must_open(env, std::string(kStack), leaves);
  Reference reference(kCapacity);
  Rng rng(7);
  std::vector<std::byte> memory(4096);
  uint64_t reads = 0;
  for (int i = 0; i < 20'000; ++i) {
    const uint64_t block = std::min(draw(rng), kBlocks - 1);
    if (rng.bernoulli(0.2)) {
      const Result<void> written = co_await drive->write(Lba(block), memory);
      EXPECT_TRUE(written);
      reference.use(block);
      continue;
    }
    ++reads;
    if (reference.use(block)) ++hits;
    const Result<void> read = co_await drive->read(Lba(block), memory);
    EXPECT_TRUE(read);
    if (fact(*drive, "hits") != hits) {
      ADD_FAILURE() << "request " << i;
      break;
    }
  }
  EXPECT_EQ(fact(*drive, "hits"), hits);
  EXPECT_EQ(fact(*drive, "misses"), reads - hits);
  co_await drive->close();
}

TEST(Cache, HitsOfARandomTraceEqualThoseOfAnLru) {
  uint64_t hits = 0;
  const auto draw = [](Rng& rng) { return rng.below(kBlocks); };
  run_in_sim([&](env::Env& env) { return compare_hits(env, draw, hits); });
  EXPECT_NEAR(static_cast<double>(hits), 16'000.0 * kCapacity / kBlocks, 200);
}

TEST(Cache, HitsOfAZipfTraceEqualThoseOfAnLru) {
  uint64_t hits = 0;
  const Zipf zipf(1.1);
  const auto draw = [&zipf](Rng& rng) { return zipf.draw(rng); };
  run_in_sim([&](env::Env& env) { return compare_hits(env, draw, hits); });
  EXPECT_GT(hits, 16'000U * 6 / 10);
}

TEST(Lru, TakesEmptySlotsFirstAndThenTheOldestThatMayGo) {
  Lru lru(3);
  const auto any = [](uint32_t) { return true; };
  for (uint64_t key = 10; key < 13; ++key) lru.put(lru.oldest(any), key);
  lru.use(lru.find(10));
  EXPECT_EQ(lru.key(lru.oldest(any)), 11U);
  const uint32_t kept = lru.find(11);
  EXPECT_EQ(lru.key(lru.oldest([&](uint32_t slot) { return slot != kept; })), 12U);
  EXPECT_EQ(lru.oldest([](uint32_t) { return false; }), Lru::kNone);
  lru.drop(lru.find(10));
  EXPECT_EQ(lru.find(10), Lru::kNone);
  EXPECT_FALSE(lru.is_used(lru.oldest(any)));
  EXPECT_EQ(lru.oldest([&](uint32_t slot) { return slot == kept; }, 1), Lru::kNone);
  EXPECT_EQ(lru.used(), 2U);
}

SIM_TEST(Cache, ReadsWhatLacksBelowAndTheRestInMemory) {
  SourceLeaves leaves;
  std::unique_ptr<Drive> drive = co_await must_open(env, std::string(kStack), leaves);
  const std::vector<std::byte> data = blocks_of(5, 1);
  for (const uint64_t block : {11U, 13U}) {
    const Result<void> written = co_await drive->write(Lba(block), data);
    EXPECT_TRUE(written);
  }
  std::vector<std::byte> memory = blocks_of(9, 5);
  const Request request{.lba = Lba(10), .blocks = 5};
  const MutableBytes pieces[] = {MutableBytes(memory).first(5000),
                                 MutableBytes(memory).subspan(5000)};
  EXPECT_FALSE(drive->try_now(request, pieces).has_value());
  const Result<void> read = co_await drive->submit(request, pieces);
  EXPECT_TRUE(read);
  EXPECT_EQ(fact(*drive, "hits"), 2U);
  EXPECT_EQ(fact(*drive, "misses"), 3U);
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(memory[i * 4096], std::byte{i % 2 == 1 ? uint8_t{5} : uint8_t{0}});
  }
  std::ranges::fill(memory, std::byte{9});
  const std::optional<Result<void>> now = drive->try_now(request, pieces);
  EXPECT_TRUE(now && *now && memory[4096] == std::byte{5} && memory[0] == std::byte{0});
  const Result<void> discarded = co_await drive->discard(Lba(0), 256);
  EXPECT_TRUE(discarded);
  EXPECT_EQ(fact(*drive, "blocks_used"), 0U);
  co_await drive->close();
}

}  // namespace
}  // namespace cairn::drive
