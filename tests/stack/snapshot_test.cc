// SPDX-License-Identifier: Apache-2.0
// Versions under load: what a reader is pinned to stays as it was while the writer advances, takes,
// removes, clones and rolls back, and power fails at any moment.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <charconv>
#include <expected>
#include <map>
#include <set>
#include <vector>

#include "stack/stack.h"
#include "task/deadline.h"
#include "task/when_all.h"
#include "world/sim/cluster.h"
#include "world/sim/scenario/scenario.h"

namespace cairn::stack {
namespace {

using Contents = std::vector<uint64_t>;  // by block
using Told = std::expected<std::string, std::string>;

// Outlives the program's crashes. One writer, so that it knows what a version must hold; readers
// beside it.
class Versions {
 public:
  explicit Versions(std::string stack) : stack_(std::move(stack)) {}

  task::Task<void> live(env::Env& env) {
    drive::SourceLeaves leaves;
    drive::Opened opened = co_await drive::open_stack(env, stack_, leaves);
    if (!opened) {
      if (!env.stop_token().requested()) wrong(opened.error().text);
      co_return;
    }
    drive::Drive& drive = **opened;
    now_ = co_await read_all(drive);
    if (!now_.empty()) co_await check_all(env, drive);
    std::vector<task::Task<void>> tasks;
    tasks.push_back(write(env, drive));
    for (int i = 0; i < 3; ++i) tasks.push_back(watch(env, drive));
    co_await task::when_all(std::move(tasks));
    if (ends_ && goes_on(env)) co_await take_down(drive);
    co_await drive.close();
  }

  // The next life is short, and then everything is removed: no space may stay in use.
  void end() { ends_ = true; }
  bool has_ended() const { return is_down_; }
  const std::string& failure() const { return failure_; }
  uint64_t looks() const { return looks_; }
  uint64_t taken() const { return taken_; }

 private:
  static constexpr size_t kVersionsMax = 6;

  void wrong(std::string text) {
    if (failure_.empty()) failure_ = std::move(text);
  }
  bool goes_on(env::Env& env) const { return failure_.empty() && !env.stop_token().requested(); }
  static uint64_t fact(const drive::Drive& drive, std::string_view name) {
    for (const drive::Fact& fact : drive.facts()) {
      if (fact.name == name) return fact.value;
    }
    return UINT64_MAX;
  }

  task::Task<Contents> read_all(drive::Drive& drive) {
    Contents contents;
    std::vector<std::byte> memory(64 * 4096);
    for (uint64_t first = 0; first < drive.geometry().blocks; first += 64) {
      const uint64_t count = std::min<uint64_t>(64, drive.geometry().blocks - first);
      const Result<void> done =
          co_await drive.read(Lba(first), MutableBytes(memory).first(count * 4096));
      if (!done) co_return Contents();
      for (uint64_t i = 0; i < count; ++i) {
        const Bytes block = Bytes(memory).subspan(i * 4096, 4096);
        const auto value = load<uint64_t>(block);
        const bool is_whole = load<uint64_t>(block.last(8)) == value;
        contents.push_back(is_whole ? value : UINT64_MAX);
      }
    }
    co_return contents;
  }

  // Everything that was promised before the last crash.
  task::Task<void> check_all(env::Env& env, drive::Drive& drive) {
    for (auto& [version, contents] : leaving_) {
      const Result<std::unique_ptr<drive::Drive>> view =
          drive.open_view(fmt::format("{}", version));
      if (!view) continue;
      co_await (*view)->close();
      versions_[version] = std::move(contents);
    }
    leaving_.clear();
    for (const auto& [version, contents] : versions_) {
      co_await check(env, drive, fmt::format("{}", version), contents);
    }
    for (auto& [name, contents] : clones_) {
      co_await check(env, drive, "clone:" + name, contents);
    }
  }
  task::Task<void> check(env::Env& env, drive::Drive& drive, std::string name,
                         const Contents& contents) {
    Result<std::unique_ptr<drive::Drive>> view = drive.open_view(name);
    if (!view) {
      wrong(fmt::format("{} is gone: {}", name, view.error().text()));
      co_return;
    }
    const Contents found = co_await read_all(**view);
    for (size_t i = 0; goes_on(env) && i < found.size(); ++i) {
      if (found[i] == contents[i] || (name[0] == 'c' && clone_maybe_.contains({i, found[i]}))) {
        continue;
      }
      wrong(fmt::format("{} block {} holds {}, not {}", name, i, found[i], contents[i]));
    }
    if (name[0] == 'c' && found.size() == contents.size()) clones_[name.substr(6)] = found;
    co_await (*view)->close();
  }

  task::Task<void> watch(env::Env& env, drive::Drive& drive) {
    Rng& rng = env.rng();
    std::vector<std::byte> memory(16 * 4096);
    while (goes_on(env) && !is_over_) {
      const Result<void> slept = co_await task::sleep_for(env, 100_us, env.stop_token());
      if (!slept || versions_.empty()) continue;
      const auto picked =
          std::next(versions_.begin(), static_cast<ptrdiff_t>(rng.below(versions_.size())));
      const Contents contents = picked->second;
      const uint32_t version = picked->first;
      Result<std::unique_ptr<drive::Drive>> view = drive.open_view(fmt::format("{}", version));
      if (!view) {
        wrong(fmt::format("version {}: {}", version, view.error().text()));
        co_return;
      }
      for (int i = 0; i < 20 && goes_on(env); ++i) {
        const uint64_t count = rng.between(1, 16);
        const uint64_t first = rng.below(contents.size() - count + 1);
        const Result<void> done =
            co_await (*view)->read(Lba(first), MutableBytes(memory).first(count * 4096));
        for (uint64_t j = 0; done && j < count; ++j) {
          const auto value = load<uint64_t>(Bytes(memory).subspan(j * 4096));
          if (value != contents[first + j]) {
            wrong(fmt::format("a reader of version {} saw {} in block {}, not {}", version, value,
                              first + j, contents[first + j]));
          }
        }
        ++looks_;
      }
      co_await (*view)->close();
    }
  }

  task::Task<void> write(env::Env& env, drive::Drive& drive) {
    Rng& rng = env.rng();
    is_over_ = false;
    for (int step = 0; goes_on(env) && (!ends_ || step < 100); ++step) {
      const uint64_t draw = rng.below(100);
      if (draw < 70) {
        co_await write_some(rng, drive, now_, rng.bernoulli(0.2));
      } else if (draw < 74) {
        const Result<void> done = co_await drive.flush();
        if (!done) break;
      } else if (draw < 82) {
        co_await take(drive);
      } else if (draw < 86) {
        co_await remove(rng, drive);
      } else if (draw < 88) {
        co_await rollback(rng, drive);
      } else if (draw < 91) {
        co_await make_clone(rng, drive);
      } else if (draw < 98) {
        co_await write_clone(rng, drive);
      } else {
        co_await drop_clone(rng, drive);
      }
    }
    is_over_ = true;
  }

  task::Task<void> write_some(Rng& rng, drive::Drive& drive, Contents& contents, bool durable) {
    const uint64_t count = rng.between(1, rng.bernoulli(0.8) ? 4 : 40);
    const uint64_t first = rng.below(contents.size() - count + 1);
    const bool discards = rng.bernoulli(0.15);
    std::vector<std::byte> data(count * 4096);
    Contents values(count);
    for (uint64_t i = 0; i < count && !discards; ++i) {
      values[i] = next_++;
      for (size_t at = 0; at < 4096; at += 8) {
        store(MutableBytes(data).subspan(i * 4096 + at), values[i]);
      }
    }
    const MutableBytes pieces[] = {data};
    using Kind = drive::Request::Kind;
    const drive::Request request{.kind = discards ? Kind::kDiscard : Kind::kWrite,
                                 .durable = durable && !discards,
                                 .lba = Lba(first),
                                 .blocks = count};
    if (&contents != &now_) {
      for (uint64_t i = 0; i < count; ++i) {
        clone_maybe_.insert({first + i, values[i]});
        clone_maybe_.insert({first + i, contents[first + i]});
      }
    }
    const Result<void> done = co_await drive.submit(
        request, discards ? std::span<const MutableBytes>() : std::span(pieces));
    if (done) {
      std::ranges::copy(values, contents.begin() + static_cast<ptrdiff_t>(first));
    } else if (done.error() == Errc::kNoSpace) {
      // Some of it may be there: what, a reading tells.
      Contents found = co_await read_all(drive);
      if (found.empty()) co_return;
      contents = std::move(found);
      if (&contents == &now_) co_await remove(rng, drive);
    }
  }

  task::Task<void> take(drive::Drive& drive) {
    if (versions_.size() >= kVersionsMax) co_return;
    const auto answer = co_await drive.tell({"take"});
    if (!answer) co_return;
    uint32_t version = 0;
    std::from_chars(answer->data() + 8, answer->data() + answer->size(), version);
    versions_[version] = now_;
    ++taken_;
  }
  // Writes go on meanwhile: should a crash undo the removal, they must not have changed the
  // version.
  task::Task<void> remove(Rng& rng, drive::Drive& drive) {
    if (versions_.empty()) co_return;
    const auto picked =
        std::next(versions_.begin(), static_cast<ptrdiff_t>(rng.below(versions_.size())));
    const uint32_t version = picked->first;
    leaving_[version] = std::move(picked->second);
    versions_.erase(picked);
    task::Task<Told> removal = drive.tell({"remove", fmt::format("{}", version)});
    for (int i = 0; i < 3 && !now_.empty(); ++i) co_await write_some(rng, drive, now_, false);
    const Told answer = co_await removal;
    if (!answer && answer.error().find("a crash may") != std::string::npos) co_return;
    if (!answer) versions_[version] = std::move(leaving_[version]);
    leaving_.erase(version);
  }
  task::Task<void> rollback(Rng& rng, drive::Drive& drive) {
    if (versions_.empty()) co_return;
    const auto picked =
        std::next(versions_.begin(), static_cast<ptrdiff_t>(rng.below(versions_.size())));
    const uint32_t version = picked->first;
    const std::map<uint32_t, Contents> later(std::next(picked), versions_.end());
    leaving_.insert(later.begin(), later.end());
    versions_.erase(std::next(picked), versions_.end());
    const Told answer = co_await drive.tell({"rollback", fmt::format("{}", version)});
    if (!answer && answer.error().find("a crash may") != std::string::npos) co_return;
    if (answer) now_ = versions_[version];
    if (!answer) versions_.insert(later.begin(), later.end());
    for (const auto& [gone, contents] : later) leaving_.erase(gone);
  }

  task::Task<void> make_clone(Rng& rng, drive::Drive& drive) {
    if (versions_.empty() || clones_.size() >= 2) co_return;
    const auto picked =
        std::next(versions_.begin(), static_cast<ptrdiff_t>(rng.below(versions_.size())));
    const std::string name = fmt::format("c{}", next_++);
    const Contents contents = picked->second;
    const auto answer = co_await drive.tell({"clone", fmt::format("{}", picked->first), name});
    if (answer) clones_[name] = contents;
  }
  // Flushed, so that it is known after a crash but for what was on its way.
  task::Task<void> write_clone(Rng& rng, drive::Drive& drive) {
    if (clones_.empty()) co_return;
    const auto picked =
        std::next(clones_.begin(), static_cast<ptrdiff_t>(rng.below(clones_.size())));
    Result<std::unique_ptr<drive::Drive>> view = drive.open_view("clone:" + picked->first);
    if (!view) {
      wrong(fmt::format("clone {}: {}", picked->first, view.error().text()));
      co_return;
    }
    clone_maybe_.clear();
    for (int i = 0; i < 3; ++i) co_await write_some(rng, **view, picked->second, true);
    const Result<void> done = co_await (*view)->flush();
    if (done) clone_maybe_.clear();
    co_await (*view)->close();
  }
  task::Task<void> drop_clone(Rng& rng, drive::Drive& drive) {
    if (clones_.empty()) co_return;
    const auto picked =
        std::next(clones_.begin(), static_cast<ptrdiff_t>(rng.below(clones_.size())));
    const std::string name = picked->first;
    clones_.erase(picked);
    const auto answer = co_await drive.tell({"remove", "clone:" + name});
    if (!answer && answer.error().find("crash") == std::string::npos) wrong(answer.error());
  }

  task::Task<void> take_down(drive::Drive& drive) {
    const auto list = co_await drive.tell({"list"});
    // Also those that a crash left there without anybody being told.
    std::vector<std::string> names;
    for (size_t at = list->find("clone:"); at != std::string::npos;
         at = list->find("clone:", at + 1)) {
      names.push_back(list->substr(at, list->find(' ', at) - at));
    }
    for (size_t at = list->find("version "); at != std::string::npos;
         at = list->find("version ", at + 1)) {
      if (at > 0 && (*list)[at - 1] == ' ') continue;  // "of version"
      names.push_back(list->substr(at + 8, list->find('\n', at) - at - 8));
    }
    for (const std::string& name : names) {
      const auto answer = co_await drive.tell({"remove", name});
      if (!answer) wrong(fmt::format("{}: {}", name, answer.error()));
    }
    const Result<void> discarded = co_await drive.discard(Lba(0), drive.geometry().blocks);
    const Result<void> flushed = co_await drive.flush();
    if (!discarded || !flushed) wrong("it cannot be discarded");
    if (const uint64_t used = fact(drive, "chunks_used"); used != 0) {
      wrong(fmt::format("{} chunks stay in use", used));
    }
    is_down_ = true;
  }

  const std::string stack_;
  Contents now_;
  std::map<uint32_t, Contents> versions_;
  std::map<uint32_t, Contents> leaving_;  // being removed: gone after a crash, or as they were
  std::map<std::string, Contents> clones_;
  std::set<std::pair<uint64_t, uint64_t>>
      clone_maybe_;  // block, value: before and after what is not yet durable
  uint64_t next_ = 1;
  uint64_t looks_ = 0;
  uint64_t taken_ = 0;
  bool is_over_ = false;
  bool ends_ = false;
  bool is_down_ = false;
  std::string failure_;
};

void run_versions(uint64_t seed, const std::string& stack) {
  Versions versions(stack);
  Rng rng(seed);
  sim::Cluster cluster({.seed = seed});
  sim::Node& node = cluster.node("host");
  node.start([&versions](env::Env& env) { return versions.live(env); });
  for (int life = 0; life < 12 && versions.failure().empty(); ++life) {
    cluster.run_for(Duration{static_cast<int64_t>(rng.below(60'000'000))});
    node.crash();
    if (life == 11) versions.end();
    node.restart();
  }
  ASSERT_TRUE(cluster.run_until([&] { return !node.is_running(); }, 1000_s)) << cluster.report();
  EXPECT_EQ(versions.failure(), "") << cluster.report();
  EXPECT_TRUE(versions.has_ended());
  EXPECT_GT(versions.looks(), 100u);
  EXPECT_GT(versions.taken(), 10u);
}

task::Task<void> remove_and_write(env::Env& env, bool& has_begun) {
  drive::SourceLeaves leaves;
  drive::Opened drive = co_await drive::open_stack(env, "snapshot(file:d,size=4M)", leaves);
  if (!drive) co_return;
  const std::vector<std::byte> first(4096, std::byte{1});
  const std::vector<std::byte> second(4096, std::byte{2});
  for (uint64_t block = 0; block < 64; ++block) {
    const Result<void> done = co_await (*drive)->write(Lba(block), first);
    EXPECT_TRUE(done.has_value());
  }
  const Told taken = co_await (*drive)->tell({"take"});
  EXPECT_TRUE(taken.has_value());
  has_begun = true;
  task::Task<Told> removal = (*drive)->tell({"remove", "1"});
  for (uint64_t block = 0; block < 64; ++block) {
    [[maybe_unused]] const Result<void> done = co_await (*drive)->write(Lba(block), second);
  }
  [[maybe_unused]] const Told removed = co_await removal;
  co_await (*drive)->close();
}

// Whether the version is there; then it must hold what it held.
task::Task<void> look_at_version(env::Env& env, bool& is_there) {
  drive::SourceLeaves leaves;
  drive::Opened drive = co_await drive::open_stack(env, "snapshot(file:d,size=4M)", leaves);
  if (!drive) co_return;
  Result<std::unique_ptr<drive::Drive>> view = (*drive)->open_view("1");
  is_there = view.has_value();
  for (uint64_t block = 0; is_there && block < 64; ++block) {
    std::vector<std::byte> data(4096);
    const Result<void> done = co_await (*view)->read(Lba(block), data);
    EXPECT_TRUE(done.has_value());
    EXPECT_EQ(std::to_integer<int>(data[0]), 1) << "block " << block;
  }
  if (is_there) co_await (*view)->close();
  co_await (*drive)->close();
}

TEST(SnapshotLoad, ARemovalThatACrashUndoesLeavesTheVersionAsItWas) {
  size_t undone = 0;
  const std::vector<uint64_t> seeds = sim::seeds_to_run(60);
  for (const uint64_t seed : seeds) {
    sim::Cluster cluster({.seed = seed});
    sim::Node& node = cluster.node("host");
    bool has_begun = false;
    node.start([&](env::Env& env) { return remove_and_write(env, has_begun); });
    ASSERT_TRUE(cluster.run_until([&] { return has_begun; }, 1000_s));
    cluster.run_for(Duration{static_cast<int64_t>(Rng(seed).below(400'000))});
    node.crash();
    bool is_there = false;
    node.start([&](env::Env& env) { return look_at_version(env, is_there); });
    ASSERT_TRUE(cluster.run_until([&] { return !node.is_running(); }, 1000_s)) << cluster.report();
    if (is_there) ++undone;
  }
  if (seeds.size() < 60) return;
  EXPECT_GT(undone, 5u);
  EXPECT_LT(undone, seeds.size());
}

TEST(SnapshotLoad, PinnedReadersSeeTheirVersionThroughPowerLosses) {
  for (const uint64_t seed : sim::seeds_to_run(6)) run_versions(seed, "snapshot(file:d,size=4M)");
}

// Its map is so large that a checkpoint takes many writes, and changes and commands go on between.
TEST(SnapshotLoad, SoDoThoseOfALargeMap) {
  for (const uint64_t seed : sim::seeds_to_run(3)) {
    run_versions(seed, "snapshot(file:d,size=6M, chunk=4K)");
  }
}

TEST(SnapshotLoad, SoDoThoseOverAMirror) {
  for (const uint64_t seed : sim::seeds_to_run(2)) {
    run_versions(seed, "snapshot(mirror(file:d0,size=4M, file:d1,size=4M), chunk=4K)");
  }
}

}  // namespace
}  // namespace cairn::stack
