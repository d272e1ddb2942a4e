// SPDX-License-Identifier: Apache-2.0
// What the conformance suite cannot see: that a state comes back from its mutations, whatever was
// compacted meanwhile; that one which cannot have been is refused; and its own limits.
#include "meta/state.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"

namespace cairn::meta {
namespace {

// What a journal would hold.
struct Kept {
  std::map<RowId, Row> rows;
  std::map<LeaseId, Lease> leases;
  Revision revision{1};
  Revision compacted;
  LeaseId last_lease;

  void keep(const Mutation& mutation) {
    for (const Row& row : mutation.rows) {
      rows[{row.entry.modified, row.index}] = row;
      revision = row.entry.modified;
    }
    if (mutation.granted) {
      leases[mutation.granted->id] = *mutation.granted;
      last_lease = mutation.granted->id;
    }
    leases.erase(mutation.ended);
    for (const RowId row : mutation.dropped) EXPECT_EQ(rows.erase(row), 1U);
    if (mutation.compacted != Revision()) compacted = mutation.compacted;
  }

  Result<void> restore(State& state) const {
    for (const auto& [id, lease] : leases) {
      if (const Result<void> done = state.restore(lease); !done) return done;
    }
    for (const auto& [place, row] : rows) {
      if (const Result<void> done = state.restore(row); !done) return done;
    }
    return state.restored(revision, compacted, last_lease, Time{0});
  }
};

// Everything a state can say.
std::string everything(const State& state) {
  std::string all = std::to_string(state.revision().value()) + "/" +
                    std::to_string(state.compacted().value()) + "/" + std::to_string(state.bytes());
  for (uint64_t at = std::max<uint64_t>(1, state.compacted().value());
       at <= state.revision().value(); ++at) {
    all += "\n" + std::to_string(at) + ":";
    for (const Entry& entry : state.list(Range::all(), kPageMax, Revision(at)).entries) {
      all += " " + entry.key + "=" + entry.value + "@" + std::to_string(entry.created.value()) +
             "," + std::to_string(entry.modified.value()) + "," +
             std::to_string(entry.lease.value());
    }
  }
  Revision from = next(state.compacted());
  const Result<std::vector<Change>> changes = state.changes(Range::all(), from, state.revision());
  for (const Change& change : changes.value()) {
    for (const Event& event : change.events) {
      all += "\n" + std::to_string(change.revision.value()) + (event.removed ? " -" : " +") +
             event.entry.key + "=" + event.entry.value;
    }
  }
  return all;
}

class Writer {
 public:
  Writer(State& state, Kept& kept, uint64_t seed) : state_(state), kept_(kept), rng_(seed) {}

  void step() {
    Mutation mutation;
    const uint64_t kind = rng_.below(12);
    if (kind == 0) {
      leases_.push_back(state_.grant(5_s, Time{0}, mutation)->id);
    } else if (kind == 1 && !leases_.empty()) {
      const LeaseId lease = leases_[rng_.below(leases_.size())];
      std::erase(leases_, lease);
      ASSERT_TRUE(state_.revoke(lease, mutation));
    } else if (kind == 2 && rng_.bernoulli(0.3)) {
      const uint64_t low = state_.compacted().value() + 1;
      if (low <= state_.revision().value()) {
        ASSERT_TRUE(
            state_.compact(Revision(rng_.between(low, state_.revision().value())), mutation));
      }
    } else {
      ASSERT_TRUE(state_.commit(some_batch(), mutation));
      state_.forget(state_.revision(), mutation);
    }
    kept_.keep(mutation);
  }

 private:
  Batch some_batch() {
    Batch batch;
    for (char key = 'a'; key < 'h'; ++key) {
      if (rng_.bernoulli(0.6)) continue;
      if (rng_.bernoulli(0.3)) {
        batch.remove(std::string(1, key));
      } else {
        const bool leased = !leases_.empty() && rng_.bernoulli(0.5);
        batch.put(std::string(1, key), std::to_string(rng_.below(100)),
                  leased ? leases_[rng_.below(leases_.size())] : LeaseId());
      }
    }
    return batch;
  }

  State& state_;
  Kept& kept_;
  Rng rng_;
  std::vector<LeaseId> leases_;
};

TEST(State, ComesBackFromItsMutations) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    State state({.history_max = 20});
    Kept kept;
    Writer writer(state, kept, seed);
    for (int step = 0; step < 100; ++step) {
      writer.step();
      if (step % 10 != 9) continue;
      State again;
      ASSERT_TRUE(kept.restore(again));
      ASSERT_EQ(everything(again), everything(state)) << "seed " << seed;
      // Leases too: when all have ended, the same is left.
      State copy;
      ASSERT_TRUE(kept.restore(copy));
      for (const auto& [id, lease] : kept.leases) {
        Mutation ignored;
        ASSERT_TRUE(copy.revoke(id, ignored));
      }
      for (const Entry& entry : copy.list(Range::all(), kPageMax, copy.revision()).entries) {
        ASSERT_EQ(entry.lease, LeaseId());
      }
    }
  }
}

TEST(State, ThatLacksARowIsRefusedOrSaysSo) {
  State state;
  Kept kept;
  Writer writer(state, kept, 7);
  for (int step = 0; step < 60; ++step) writer.step();
  for (const auto& [place, row] : kept.rows) {
    if (place.revision <= kept.compacted) continue;
    Kept broken = kept;
    broken.rows.erase(place);
    State again;
    const Result<void> restored = broken.restore(again);
    // The last row of a commit leaves no gap; every other one does.
    const bool was_last = !kept.rows.contains({place.revision, place.index + 1}) && place.index > 0;
    EXPECT_TRUE(was_last || !restored);
    if (!restored) EXPECT_EQ(restored.error().code(), Errc::kCorrupt);
  }
}

TEST(State, ThatCannotHaveBeenIsCorrupt) {
  const Row put{{"a", "1", Revision(2), Revision(2), LeaseId()}, false, 0};
  const auto refuses = [](const std::vector<Row>& rows, Revision revision,
                          Revision compacted = {}) {
    State state;
    Result<void> done;
    for (const Row& row : rows) {
      if (done) done = state.restore(row);
    }
    if (done) done = state.restored(revision, compacted, LeaseId(), Time{0});
    return !done && done.error() == Errc::kCorrupt;
  };
  EXPECT_FALSE(refuses({put}, Revision(2)));
  EXPECT_TRUE(refuses({put}, Revision(3))) << "a commit is missing";
  EXPECT_TRUE(refuses({put}, Revision(1))) << "a commit too much";
  EXPECT_TRUE(refuses({put, put}, Revision(2))) << "twice";
  EXPECT_TRUE(refuses({}, Revision(0)));
  EXPECT_TRUE(refuses({}, Revision(1), Revision(2)));
  Row row = put;
  row.entry.key = "";
  EXPECT_TRUE(refuses({row}, Revision(2)));
  row = put;
  row.entry.value.assign(kValueMax + 1, 'x');
  EXPECT_TRUE(refuses({row}, Revision(2)));
  row = put;
  row.entry.created = Revision(3);
  EXPECT_TRUE(refuses({row}, Revision(2)));
  row = put;
  row.entry.lease = LeaseId(1);
  EXPECT_TRUE(refuses({row}, Revision(2))) << "a lease that is not there";
  row = put;
  row.index = 1;
  EXPECT_TRUE(refuses({row}, Revision(2)));
  const Row removal{{"a", "", Revision(), Revision(2), LeaseId()}, true, 0};
  EXPECT_TRUE(refuses({removal}, Revision(2))) << "of what was not there";
  State state;
  EXPECT_FALSE(state.restore(Lease{LeaseId(), 5_s}));
  EXPECT_FALSE(state.restore(Lease{LeaseId(1), 0_s}));
  EXPECT_TRUE(state.restore(Lease{LeaseId(1), 5_s}));
  EXPECT_FALSE(state.restore(Lease{LeaseId(1), 5_s}));
  EXPECT_FALSE(state.restored(Revision(1), Revision(), LeaseId(), Time{0}));
}

TEST(State, KeepsAsMuchHistoryAsItsLimitsAllow) {
  State state({.history_max = 10, .history_bytes_max = 1000});
  const auto put = [&](size_t size) {
    Mutation mutation;
    ASSERT_TRUE(state.commit(Batch().put("a", std::string(size, 'x')), mutation));
    state.forget(state.revision(), mutation);
  };
  for (int i = 0; i < 30; ++i) put(1);
  EXPECT_EQ(state.revision().value() - state.compacted().value(), 10U);
  for (int i = 0; i < 30; ++i) put(199);
  EXPECT_EQ(state.revision().value() - state.compacted().value(), 5U);
}

TEST(State, IsFullAtItsLimitAndNotWhenKeysShrink) {
  State state({.bytes_max = 100});
  Mutation mutation;
  EXPECT_TRUE(state.commit(Batch().put("a", std::string(99, 'x')), mutation));
  const Result<Committed> more = state.commit(Batch().put("b", ""), mutation);
  EXPECT_EQ(more.error().code(), Errc::kNoSpace);
  EXPECT_TRUE(state.commit(Batch().put("a", std::string(98, 'x')), mutation));
  EXPECT_TRUE(state.commit(Batch().put("b", ""), mutation));
  EXPECT_TRUE(state.commit(Batch().remove("a").put("c", std::string(98, 'x')), mutation));
  EXPECT_EQ(state.bytes(), 100U);
}

TEST(State, LimitsLeasesAndTheirKeys) {
  State state;
  Mutation mutation;
  const LeaseId lease = state.grant(5_s, Time{0}, mutation)->id;
  for (size_t i = 0; i < kLeaseKeysMax; ++i) {
    Mutation one;
    ASSERT_TRUE(state.commit(Batch().put(std::to_string(i), "", lease), one));
  }
  Mutation ignored;
  const Result<Committed> more = state.commit(Batch().put("more", "", lease), ignored);
  EXPECT_EQ(more.error().code(), Errc::kLimit);
  EXPECT_TRUE(state.commit(Batch().put("0", "again", lease), ignored));
  for (size_t i = 1; i < kLeasesMax; ++i) ASSERT_TRUE(state.grant(5_s, Time{0}, ignored));
  EXPECT_EQ(state.grant(5_s, Time{0}, ignored).error().code(), Errc::kLimit);
}

}  // namespace
}  // namespace cairn::meta
