// SPDX-License-Identifier: Apache-2.0
// Every service, alone and over every other, used from memory that somebody scribbles over all the
// time. What is in such a block afterwards is anything that was in the memory; everything else must
// hold as ever.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

#include "stack/scribbler.h"
#include "stack/services.h"
#include "stack/stack.h"
#include "stack/subjects.h"
#include "task/deadline.h"
#include "task/when_all.h"
#include "testing/stack/redundant.h"
#include "world/sim/cluster.h"

namespace cairn::stack {
namespace {

using drive::Request;
using Kind = Request::Kind;

constexpr uint64_t kRaced = 48;  // blocks from 0 on that are written from such memory
constexpr uint64_t kQuiet = 48;  // after them: those that are only read into such memory
constexpr uint64_t kBlocks = kRaced + kQuiet;
constexpr uint64_t kBlocksAtOnceMax = 6;
constexpr int kRequests = 60;  // of each worker
constexpr uint64_t kSeed = 5;

// The table, and what the examples there leave out.
std::vector<drive::Service> variants() {
  std::vector<drive::Service> all;
  for (const drive::Service* service : drive::services()) all.push_back(*service);
  drive::Service cache = *drive::find_service("cache");
  cache.example = "cache({}, memory=256K)";
  all.push_back(cache);
  cache.example = "cache({}, {}, mode=through)";
  all.push_back(cache);
  return all;
}

struct Case {
  std::string name;
  std::string stack;
  std::vector<std::string> inner;  // the stacks below the top, if it stands on services
};

void PrintTo(const Case& one, std::ostream* out) { *out << one.stack; }

std::string name_of(const drive::Service& service) {
  if (service.example.find("memory=") != std::string_view::npos) return "cache_in_memory";
  if (service.example.find("through") != std::string_view::npos) return "cache_through";
  return std::string(service.name);
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const Subject& one : every_service()) cases.push_back({one.name, one.stack, {}});
  for (const drive::Service& above : variants()) {
    if (!above.leaf_only.empty()) continue;
    int files = 0;
    const auto leaf = [&files](const drive::Service& service) {
      return drive::testing_leaf(service, fmt::format("d{}", files++));
    };
    for (const drive::Service& below : variants()) {
      files = 0;
      Case one{.name = name_of(above) + "_over_" + name_of(below), .stack = "", .inner = {}};
      one.stack = drive::example_over(above, [&] {
        one.inner.push_back(drive::example_over(below, [&] { return leaf(below); }));
        return one.inner.back();
      });
      cases.push_back(one);
    }
  }
  return cases;
}

// A guest, somebody else who reads the same blocks, and what both find.
class Guest {
 public:
  Guest(const Case& stack, uint32_t block_size)
      : case_(stack), block_size_(block_size), scribbler_(kSeed, block_size), rng_(kSeed) {}

  task::Task<void> live(env::Env& env) {
    for (const std::string& inner : case_.inner) co_await settle(env, inner);
    co_await load(env);
    if (failure_.empty()) co_await check(env, case_.stack, true);
    for (const std::string& inner : case_.inner) {
      if (failure_.empty()) co_await check(env, inner, false);
    }
    if (failure_.empty() && case_.inner.empty()) co_await check(env, case_.stack, false);
  }
  const std::string& failure() const { return failure_; }
  const Scribbler& scribbler() const { return scribbler_; }

 private:
  void wrong(std::string text) {
    if (failure_.empty()) failure_ = fmt::format("{}: {}", case_.stack, text);
  }
  void expect(const Result<void>& done, std::string_view what, uint64_t block) {
    if (!done) wrong(fmt::format("{} of block {}: {}", what, block, done.error().text()));
  }
  void fill(MutableBytes memory, uint64_t first) const {
    for (size_t at = 0; at < memory.size(); at += sizeof(uint64_t)) {
      store(memory.subspan(at), Scribbler::word_of(first + at / block_size_, 0));
    }
  }

  // A new service that makes its drives alike does that before anybody writes: it would hide what
  // writes made different.
  task::Task<void> settle(env::Env& env, std::string stack) {
    ScribbledLeaves leaves(scribbler_);
    drive::Opened drive = co_await drive::open_stack(env, stack, leaves);
    if (!drive) co_return wrong("it does not open: " + drive.error().text);
    co_await drive::until_settled(env, **drive);
    co_await (*drive)->close();
  }

  task::Task<void> load(env::Env& env) {
    ScribbledLeaves leaves(scribbler_);
    drive::Opened drive = co_await drive::open_stack(env, case_.stack, leaves);
    if (!drive) co_return wrong("it does not open: " + drive.error().text);
    co_await drive::until_settled(env, **drive);
    std::vector<std::byte> all(kBlocks * block_size_);
    fill(all, 0);
    const Result<void> filled = co_await (*drive)->write(Lba(0), all);
    expect(filled, "write", 0);
    bool is_over = false;
    task::Task<void> scribbling = scribbler_.keep_scribbling(env, is_over);
    std::vector<task::Task<void>> workers;
    for (int i = 0; i < 3; ++i) workers.push_back(use(env, **drive));
    workers.push_back(look(env, **drive));
    co_await task::when_all(std::move(workers));
    is_over = true;
    co_await scribbling;
    co_await (*drive)->close();
  }

  task::Task<void> use(env::Env& env, drive::Drive& drive) {
    for (int i = 0; i < kRequests && failure_.empty(); ++i) {
      const uint64_t draw = rng_.below(10);
      const Kind kind = draw < 4   ? Kind::kWrite
                        : draw < 8 ? Kind::kRead
                        : draw < 9 ? Kind::kCompare
                                   : Kind::kCompareAndWrite;
      const uint64_t count = rng_.between(1, kBlocksAtOnceMax);
      const uint64_t max = kind == Kind::kRead ? kBlocks : kRaced;
      const uint64_t first = rng_.below(max - count + 1);
      co_await request(drive, {.kind = kind,
                               .durable = kind == Kind::kWrite && rng_.bernoulli(0.2),
                               .unstable_memory = true,
                               .lba = Lba(first),
                               .blocks = count});
      const Result<void> slept = co_await task::sleep_for(env, 30_us);
      if (!slept) co_return;
    }
  }

  task::Task<void> request(drive::Drive& drive, Request request) {
    const uint64_t first = request.lba.value();
    std::vector<std::byte> data(request.blocks * block_size_);
    std::vector<std::byte> second(data.size());
    fill(data, first);
    fill(second, first);
    const bool two = request.kind == Kind::kCompareAndWrite;
    if (two) {
      // What is compared is not scribbled over, so that it may be equal.
      const Result<void> read = co_await drive.read(request.lba, data);
      expect(read, "read", first);
    }
    const MutableBytes pieces[] = {MutableBytes(data).first(data.size() / 2 + 8),
                                   MutableBytes(data).subspan(data.size() / 2 + 8)};
    const MutableBytes others[] = {MutableBytes(second)};
    const Scribbler::Loan loan(scribbler_, first, two ? second : data, request.kind == Kind::kRead);
    const Result<void> done = co_await drive.submit(
        request, pieces,
        two ? std::span<const MutableBytes>(others) : std::span<const MutableBytes>());
    const bool compares = two || request.kind == Kind::kCompare;
    if (compares && !done && done.error() == Errc::kMismatch) co_return;
    expect(done, request.writes() ? "write" : compares ? "compare" : "read", first);
  }

  // Memory of its own: everything must be as it is on the drive.
  task::Task<void> look(env::Env& env, drive::Drive& drive) {
    for (int i = 0; i < 2 * kRequests && failure_.empty(); ++i) {
      const uint64_t count = rng_.between(1, kBlocksAtOnceMax);
      const uint64_t first = rng_.below(kBlocks - count + 1);
      co_await look_at(drive, first, count);
      const Result<void> slept = co_await task::sleep_for(env, 20_us);
      if (!slept) co_return;
    }
  }
  task::Task<void> look_at(drive::Drive& drive, uint64_t first, uint64_t count) {
    std::vector<std::byte> data(count * block_size_);
    const Result<void> done = co_await drive.read(Lba(first), data);
    expect(done, "read by another", first);
    for (size_t at = 0; done && at < data.size(); at += sizeof(uint64_t)) {
      const uint64_t block = first + at / block_size_;
      const auto word = load_word(data, at);
      const bool is_right =
          block < kRaced ? Scribbler::names(word, block) : word == Scribbler::word_of(block, 0);
      if (!is_right) wrong(fmt::format("block {} holds {:x} at {}", block, word, at % block_size_));
    }
  }
  static uint64_t load_word(Bytes data, size_t at) {
    return cairn::load<uint64_t>(data.subspan(at));
  }

  // The stack once more; its contents, or whether all of its copies of each block are alike.
  task::Task<void> check(env::Env& env, std::string stack, bool has_contents) {
    ScribbledLeaves leaves(scribbler_);
    drive::Opened drive = co_await drive::open_stack(env, stack, leaves);
    if (!drive) co_return wrong("it does not open again: " + drive.error().text);
    if (has_contents) {
      co_await look_at(**drive, 0, kBlocks);
    } else if ((*drive)->geometry().copies > 1) {
      co_await compare_copies(**drive);
    }
    co_await (*drive)->close();
  }
  task::Task<void> compare_copies(drive::Drive& drive) {
    const drive::Geometry& shape = drive.geometry();
    std::vector<std::byte> all[2] = {std::vector<std::byte>(shape.block_size),
                                     std::vector<std::byte>(shape.block_size)};
    for (uint64_t block = 0; block < shape.blocks && failure_.empty(); ++block) {
      for (uint8_t copy = 1; copy <= shape.copies; ++copy) {
        const MutableBytes piece(all[copy == 1 ? 0 : 1]);
        const Result<void> read =
            co_await drive.submit({.copy = copy, .lba = Lba(block), .blocks = 1}, {&piece, 1});
        expect(read, "reading a copy", block);
        if (copy > 1 && all[0] != all[1]) {
          wrong(fmt::format("copies of block {} differ", block));
        }
      }
    }
  }

  const Case& case_;
  const uint32_t block_size_;
  Scribbler scribbler_;
  Rng rng_;
  std::string failure_;
};

class UnstableMemory : public testing::TestWithParam<Case> {};

TEST_P(UnstableMemory, UnstableMemoryHarmsNothingButWhatIsWrittenFromIt) {
  Guest guest(GetParam(), 4096);
  sim::Cluster cluster({.seed = kSeed});
  sim::Node& node = cluster.node("host");
  node.start([&guest](env::Env& env) { return guest.live(env); });
  ASSERT_TRUE(cluster.run_until([&] { return !node.is_running(); }, 1000_s)) << cluster.report();
  EXPECT_EQ(guest.failure(), "") << cluster.report();
}

INSTANTIATE_TEST_SUITE_P(Promises, UnstableMemory, testing::ValuesIn(all_cases()),
                         [](const testing::TestParamInfo<Case>& info) { return info.param.name; });

// What is on the drive is a secret from whoever has no key, the reader included until it is plain.
TEST(UnstableMemoryOfReaders, IsNeverWhereEncryptDecrypts) {
  const Case one{.name = "", .stack = "encrypt(file:d0,size=4M, key=drive.key)", .inner = {}};
  Guest guest(one, 4096);
  sim::Cluster cluster({.seed = kSeed});
  sim::Node& node = cluster.node("host");
  node.start([&guest](env::Env& env) { return guest.live(env); });
  ASSERT_TRUE(cluster.run_until([&] { return !node.is_running(); }, 1000_s)) << cluster.report();
  EXPECT_EQ(guest.failure(), "");
  EXPECT_FALSE(guest.scribbler().has_leaf_read_into_it());
}

}  // namespace
}  // namespace cairn::stack
