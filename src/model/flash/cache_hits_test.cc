// SPDX-License-Identifier: Apache-2.0
// What the drive's caches find, against lists of recently used pages written for this test alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <list>
#include <map>

#include "base/rng.h"
#include "model/flash/model.h"

namespace cairn::flash {
namespace {

// Fast enough that a whole test passes within one period of the write filter.
Parameters quick_drive(CacheMode mode) {
  Parameters p;
  p.channels = 2;
  p.chips_per_channel = 1;
  p.dies_per_chip = 1;
  p.planes_per_die = 1;
  p.blocks_per_plane = 256;
  p.pages_per_block = 64;
  p.page_bytes = 4096;
  p.over_provisioning = 0.2;
  p.read_ns.fill(1'000);
  p.program_ns.fill(2'000);
  p.cache_bytes = 100 * 4096;
  p.mapping_cache_bytes = 4096;
  p.streams[0].cache = mode;
  return p;
}

enum class Draw { kUniform, kZipf };

// Page numbers below `pages`, evenly or with the first ones far more often.
class PageSource {
 public:
  PageSource(Draw draw, uint32_t pages, uint64_t seed) : draw_(draw), rng_(seed) {
    double sum = 0;
    for (uint32_t i = 0; i < pages; ++i) below_.push_back(sum += 1 / std::pow(i + 1, 0.9));
  }
  uint32_t next() {
    if (draw_ == Draw::kUniform) return static_cast<uint32_t>(rng_.below(below_.size()));
    const double at = rng_.uniform() * below_.back();
    return static_cast<uint32_t>(std::ranges::lower_bound(below_, at) - below_.begin());
  }
  bool bernoulli(double of) { return rng_.bernoulli(of); }

 private:
  Draw draw_;
  Rng rng_;
  std::vector<double> below_;
};

// The least recently used go first; each page has a flag, "dirty".
class RecentlyUsed {
 public:
  explicit RecentlyUsed(size_t capacity) : capacity_(capacity) {}
  // True when the page was there. It is the most recent one afterwards.
  bool use(uint32_t page, bool dirty) {
    const bool was_there = where_.contains(page);
    if (was_there) {
      dirty |= where_[page]->second;
      order_.erase(where_[page]);
    } else if (order_.size() == capacity_) {
      dirty_evictions += order_.back().second ? 1 : 0;
      where_.erase(order_.back().first);
      order_.pop_back();
    }
    order_.emplace_front(page, dirty);
    where_[page] = order_.begin();
    return was_there;
  }
  bool touch_if_there(uint32_t page) { return where_.contains(page) && use(page, false); }
  uint64_t dirty_evictions = 0;

 private:
  size_t capacity_;
  std::list<std::pair<uint32_t, bool>> order_;
  std::map<uint32_t, std::list<std::pair<uint32_t, bool>>::iterator> where_;
};

class Ignore final : public CompletionSink {
 public:
  void completed(const Completion&) override {}
};

void ask(FlashModel& model, Op op, uint32_t page) {
  Ignore ignore;
  model.submit({.op = op, .lba = uint64_t{page} * 8, .sectors = 8}, model.now());
  model.advance(kNever, ignore);
}

TEST(MappingCacheHits, AreThoseOfTheMostRecentlyUsedEntries) {
  for (const Draw draw : {Draw::kUniform, Draw::kZipf}) {
    FlashModel model(quick_drive(CacheMode::kOff));
    RecentlyUsed expected(model.mapping_cache().capacity());
    PageSource source(draw, 3000, 5);
    uint64_t hits[2] = {};
    uint64_t all[2] = {};
    for (int i = 0; i < 8000; ++i) {
      const uint32_t page = source.next();
      const bool write = source.bernoulli(0.3);
      ++all[write];
      hits[write] += expected.use(page, write) ? 1 : 0;
      ask(model, write ? Op::kWrite : Op::kRead, page);
    }
    const Counters& counted = model.counters();
    EXPECT_EQ(counted.gc_executions, 0u) << "the collector uses entries too";
    EXPECT_EQ(counted.mapping_read_hits, hits[0]);
    EXPECT_EQ(counted.mapping_write_hits, hits[1]);
    EXPECT_EQ(counted.mapping_read_misses, all[0] - hits[0]);
    EXPECT_EQ(counted.mapping_write_misses, all[1] - hits[1]);
    EXPECT_EQ(counted.mapping_hits, hits[0] + hits[1]);
    EXPECT_EQ(counted.mapping_queries, 8000u);
    EXPECT_GT(hits[0], 100u);
    EXPECT_GT(all[0] - hits[0], 100u);
  }
}

// Pages written a second time within the filter's period stay in the cache until others push them
// out; a page written for the first time only passes through.
TEST(DataCacheHits, AreThoseOfTheMostRecentlyUsedPages) {
  constexpr uint32_t kPages = 400;
  for (const CacheMode mode : {CacheMode::kWrite, CacheMode::kRead, CacheMode::kReadWrite}) {
    for (const Draw draw : {Draw::kUniform, Draw::kZipf}) {
      const bool keeps_writes = mode != CacheMode::kRead;
      const bool keeps_reads = mode != CacheMode::kWrite;
      FlashModel model(quick_drive(mode));
      ask(model, Op::kWrite, kPages + 1);  // starts the period
      for (uint32_t page = 0; page < kPages; ++page) ask(model, Op::kWrite, page);
      EXPECT_EQ(model.cache().used(), 0u);
      RecentlyUsed expected(model.cache().capacity());
      PageSource source(draw, kPages, 9);
      uint64_t hits = 0;
      uint64_t reads = 0;
      for (int i = 0; i < 6000; ++i) {
        const uint32_t page = source.next();
        const bool write = source.bernoulli(0.3);
        ask(model, write ? Op::kWrite : Op::kRead, page);
        if (write) {
          if (keeps_writes) expected.use(page, true);
          continue;
        }
        ++reads;
        const bool hit = keeps_reads ? expected.use(page, false) : expected.touch_if_there(page);
        hits += hit ? 1 : 0;
      }
      ASSERT_LT(model.now(), 1'000'000'000) << "one period";
      const std::string what = "mode " + std::to_string(static_cast<int>(mode));
      EXPECT_EQ(model.counters().cache_read_hits, hits) << what;
      EXPECT_EQ(model.counters().cache_read_misses, reads - hits) << what;
      EXPECT_EQ(model.counters().cache_evictions, expected.dirty_evictions) << what;
      EXPECT_EQ(expected.dirty_evictions > 0, keeps_writes);
      EXPECT_GT(hits, 100u);
      EXPECT_GT(reads - hits, 100u);
    }
  }
}

TEST(DataCacheHits, NoCacheFindsAndKeepsNothing) {
  FlashModel model(quick_drive(CacheMode::kOff));
  for (uint32_t page = 0; page < 50; ++page) {
    ask(model, Op::kWrite, page % 5);
    ask(model, Op::kRead, page % 5);
  }
  EXPECT_EQ(model.counters().cache_read_hits + model.counters().cache_read_misses, 0u);
  EXPECT_EQ(model.counters().user_pages_programmed, 50u);
  EXPECT_EQ(model.counters().user_pages_read, 50u);
  EXPECT_EQ(model.cache().used(), 0u);
}

}  // namespace
}  // namespace cairn::flash
