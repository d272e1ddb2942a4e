// SPDX-License-Identifier: Apache-2.0
// Random requests, answered by the store and by a model of a few lines, which must agree on every
// answer, on every past revision and on what watches saw.
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "meta/suite.h"

namespace cairn::meta_tests {
namespace {

META_TEST_SUITE(RandomRequests);

// Every revision with all its entries: too simple to be wrong.
class Model {
 public:
  explicit Model(Revision first) : revision_(first) { past_[revision_] = {}; }

  Committed commit(const Batch& batch) {
    for (size_t i = 0; i < batch.preconditions.size(); ++i) {
      if (!holds(batch.preconditions[i])) return {revision_, i};
    }
    Change change{.revision = meta::next(revision_), .events = {}};
    for (const meta::Write& write : batch.writes) {
      const auto found = now_.find(write.key);
      if (write.value) {
        const Revision created = found == now_.end() ? change.revision : found->second.created;
        now_[write.key] = {write.key, *write.value, created, change.revision, write.lease};
        change.events.push_back({now_[write.key], false});
      } else if (found != now_.end()) {
        now_.erase(found);
        change.events.push_back(removal(write.key, change.revision));
      }
    }
    return keep(std::move(change));
  }
  void end_lease(LeaseId lease) {
    Change change{.revision = meta::next(revision_), .events = {}};
    for (const auto& [key, entry] : std::map(now_)) {
      if (entry.lease != lease) continue;
      now_.erase(key);
      change.events.push_back(removal(key, change.revision));
    }
    keep(std::move(change));
  }
  std::vector<Entry> list(const Range& range, Revision at) const {
    std::vector<Entry> entries;
    for (const auto& [key, entry] : past_.at(at)) {
      if (range.holds(key)) entries.push_back(entry);
    }
    return entries;
  }
  std::vector<Change> changes(const Range& range) const {
    std::vector<Change> seen;
    for (const Change& change : changes_) {
      Change part{.revision = change.revision, .events = {}};
      for (const meta::Event& event : change.events) {
        if (range.holds(event.entry.key)) part.events.push_back(event);
      }
      if (!part.events.empty()) seen.push_back(std::move(part));
    }
    return seen;
  }
  const std::map<std::string, Entry>& now() const { return now_; }
  Revision revision() const { return revision_; }

 private:
  static meta::Event removal(const std::string& key, Revision by) {
    return {Entry{.key = key, .value = {}, .created = {}, .modified = by, .lease = {}}, true};
  }
  bool holds(const meta::Precondition& condition) const {
    using Kind = meta::Precondition::Kind;
    const auto found = now_.find(condition.key);
    if (found == now_.end()) return condition.kind == Kind::kAbsent;
    const Entry& entry = found->second;
    return (condition.kind == Kind::kModified && entry.modified == condition.revision) ||
           (condition.kind == Kind::kCreated && entry.created == condition.revision) ||
           (condition.kind == Kind::kValue && entry.value == condition.value);
  }
  Committed keep(Change change) {
    if (!change.events.empty()) {
      revision_ = change.revision;
      changes_.push_back(std::move(change));
      past_[revision_] = now_;
    }
    return {revision_, std::nullopt};
  }

  Revision revision_;
  std::map<std::string, Entry> now_;
  std::map<Revision, std::map<std::string, Entry>> past_;
  std::vector<Change> changes_;
};

class Player {
 public:
  Player(Place& place, Revision first, uint64_t seed)
      : place_(place), model_(first), first_(first), rng_(seed) {}

  Task<void> play(int steps) {
    for (int step = 0; step < steps && !testing::Test::HasFailure(); ++step) {
      const uint64_t kind = rng_.below(20);
      if (kind == 0) {
        const meta::Lease lease = co_await sure(store().grant(3600_s));
        leases_.push_back(lease.id);
      } else if (kind == 1 && !leases_.empty()) {
        const LeaseId lease = leases_[rng_.below(leases_.size())];
        std::erase(leases_, lease);
        co_await sure(store().revoke(lease));
        model_.end_lease(lease);
      } else if (kind < 6) {
        co_await compare_page();
      } else {
        co_await compare_commit();
      }
    }
  }

  Task<void> compare_history() {
    for (const Range& range : {Range::all(), Range::prefix("b"), Range::one("a")}) {
      const std::vector<Change> expected = model_.changes(range);
      const std::unique_ptr<Watch> watching =
          co_await watch(place_.client(1), range, meta::next(first_));
      const std::vector<Change> seen = co_await take(*watching, expected.size());
      EXPECT_EQ(seen, expected);
      co_await watching->close();
    }
  }

 private:
  Store& store() { return place_.client(rng_.below(2)); }
  // Few keys, so that requests meet; some a prefix of others, some at the ends of the order.
  std::string key() {
    static constexpr const char* kKeys[] = {"a", "aa", "b", "b/", "b/1", "b\xff", "c", "\xff"};
    return kKeys[rng_.below(std::size(kKeys))];
  }
  Range range() {
    switch (rng_.below(4)) {
      case 0:
        return Range::all();
      case 1:
        return Range::prefix(key());
      case 2:
        return Range::one(key());
      default:
        break;
    }
    const std::string one = key();
    const std::string other = key();
    return one == other ? Range::one(one) : Range{std::min(one, other), std::max(one, other)};
  }
  void require_something(Batch& batch) {
    const auto found = model_.now().find(key());
    if (found == model_.now().end() || rng_.bernoulli(0.2)) {
      batch.if_absent(key());
      return;
    }
    const Entry& entry = found->second;
    const bool wrong = rng_.bernoulli(0.2);
    switch (rng_.below(3)) {
      case 0:
        batch.if_modified(entry.key, wrong ? meta::next(entry.modified) : entry.modified);
        break;
      case 1:
        batch.if_created(entry.key, wrong ? meta::next(entry.created) : entry.created);
        break;
      default:
        batch.if_value(entry.key, wrong ? entry.value + "x" : entry.value);
    }
  }

  Task<void> compare_commit() {
    Batch batch;
    for (uint64_t i = rng_.below(3); i > 0; --i) require_something(batch);
    std::map<std::string, bool> written;
    for (uint64_t i = rng_.between(1, 4); i > 0; --i) {
      const std::string where = key();
      if (!written.emplace(where, true).second) continue;
      if (rng_.bernoulli(0.3)) {
        batch.remove(where);
      } else {
        const bool leased = !leases_.empty() && rng_.bernoulli(0.3);
        batch.put(where, std::to_string(rng_.below(1000)),
                  leased ? leases_[rng_.below(leases_.size())] : LeaseId());
      }
    }
    const Committed answered = co_await sure(store().commit(batch));
    EXPECT_EQ(answered, model_.commit(batch));
  }

  Task<void> compare_page() {
    const uint64_t past = model_.revision().value() - first_.value();
    const Revision at(first_.value() + rng_.below(past + 1));
    const Range some = range();
    const size_t limit = rng_.between(1, 9);
    const Page page = co_await sure(store().list({.range = some, .limit = limit, .at = at}));
    std::vector<Entry> expected = model_.list(some, at);
    EXPECT_EQ(page.more, expected.size() > limit);
    if (expected.size() > limit) expected.resize(limit);
    EXPECT_EQ(page.entries, expected);
  }

  Place& place_;
  Model model_;
  Revision first_;
  Rng rng_;
  std::vector<LeaseId> leases_;
};

META_TEST(RandomRequests, AreAnsweredAsByAModel) {
  const Page empty = co_await sure(place.store().list({.range = Range::all()}));
  Player player(place, empty.revision, place.env().rng().next());
  co_await player.play(400);
  co_await player.compare_history();
}

}  // namespace
}  // namespace cairn::meta_tests
