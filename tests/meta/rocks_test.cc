// SPDX-License-Identifier: Apache-2.0
// What is particular to a metadata folder: it lasts, also when its process is killed at any moment,
// and what is not one is refused and left alone.
#include <rocksdb/db.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>  // lint: allow(a child to be killed)

#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "meta/folder.h"
#include "meta/suite.h"
#include "task/when_all.h"
#include "world/epoll/world.h"
#include "world/rocks/rocks_store.h"
#include "world/rocks/rows_format.h"
#include "world/sim/cluster.h"

namespace cairn::meta_tests {
namespace {

using Body = Task<void> (*)(env::Env&, const std::string&);

void in_world(const std::string& folder, Body body) {
  epoll::EpollWorld world({});
  const Result<void> ran = world.run([&folder, body](env::Env& env) { return body(env, folder); });
  ASSERT_TRUE(ran.has_value());
}

Task<std::unique_ptr<Store>> opened(env::Env& env, std::string folder,
                                    meta::StateLimits limits = {}) {
  co_return co_await sure(
      rocks::open_rocks_store(env, {.folder = std::move(folder), .limits = limits}));
}
Task<std::string> open_outcome(env::Env& env, std::string folder) {
  Result<std::unique_ptr<Store>> store =
      co_await rocks::open_rocks_store(env, {.folder = std::move(folder)});
  if (store) co_await (*store)->close();
  co_return outcome(store);
}

Task<void> write_some(env::Env& env, const std::string& folder) {
  const std::unique_ptr<Store> store = co_await opened(env, folder, {.history_max = 5});
  for (int i = 0; i < 10; ++i) {
    Batch batch;
    batch.put("a", std::to_string(i)).put("b" + std::to_string(i), "x");
    co_await sure(store->commit(batch));
  }
  const meta::Lease lease = co_await sure(store->grant(60_s));
  co_await put(*store, "leased", "1", lease.id);
  co_await remove(*store, "b0");
  co_await store->close();
}

Task<void> find_all(env::Env& env, const std::string& folder) {
  const std::unique_ptr<Store> store = co_await opened(env, folder);
  const Page page = co_await sure(store->list({.range = Range::all()}));
  EXPECT_EQ(page.revision, Revision(13));
  const std::string all = co_await keys(*store, Range::all());
  EXPECT_EQ(all, "a b1 b2 b3 b4 b5 b6 b7 b8 b9 leased");
  const std::optional<Entry> a = co_await sure(store->get("a"));
  EXPECT_EQ(a, (Entry{"a", "9", Revision(2), Revision(11), LeaseId()}));
  // History goes on where it was, and what was forgotten stays so.
  const std::unique_ptr<Watch> watching = co_await watch(*store, Range::all(), Revision(12));
  const std::vector<Change> changes = co_await take(*watching, 2);
  EXPECT_EQ(texts(changes), (std::vector<std::string>{"put leased=1", "remove b0"}));
  co_await watching->close();
  const Result<Page> old = co_await store->list({.range = Range::all(), .at = Revision(5)});
  EXPECT_EQ(outcome(old), "not_found");
  // The lease is there, with all its time and its key.
  const std::optional<Entry> leased = co_await sure(store->get("leased"));
  const Duration ttl = co_await sure(store->keep_alive(leased->lease));
  EXPECT_EQ(ttl, 60_s);
  const meta::Lease another = co_await sure(store->grant(60_s));
  EXPECT_GT(another.id, leased->lease);
  co_await sure(store->revoke(leased->lease));
  const std::string left = co_await value_of(*store, "leased");
  EXPECT_EQ(left, "(none)");
  co_await store->close();
}

TEST(MetadataFolder, HasEverythingAfterARestart) {
  const Folder folder;
  in_world(folder.file("meta"), &write_some);
  in_world(folder.file("meta"), &find_all);
}

Task<void> end_lease(env::Env& env, const std::string& folder) {
  const std::unique_ptr<Store> store = co_await opened(env, folder);
  const std::optional<Entry> entry = co_await sure(store->get("leased"));
  if (!entry) {
    const meta::Lease lease = co_await sure(store->grant(1_s));
    co_await put(*store, "leased", "1", lease.id);
  } else {
    const std::unique_ptr<Watch> watching =
        co_await watch(*store, Range::all(), meta::next(entry->modified));
    const std::vector<Change> changes = co_await take(*watching, 1);
    EXPECT_EQ(texts(changes), (std::vector<std::string>{"remove leased"}));
    co_await watching->close();
  }
  co_await store->close();
}

TEST(MetadataFolder, EndsLeasesThatNobodyKeepsAliveAfterARestart) {
  const Folder folder;
  in_world(folder.file("meta"), &end_lease);
  in_world(folder.file("meta"), &end_lease);
}

Task<void> open_twice(env::Env& env, const std::string& folder) {
  const std::unique_ptr<Store> store = co_await opened(env, folder);
  const std::string second = co_await open_outcome(env, folder);
  EXPECT_EQ(second, "exists");
  co_await put(*store, "a", "1");
  co_await store->close();
  const std::string after = co_await open_outcome(env, folder);
  EXPECT_EQ(after, "ok");
}

TEST(MetadataFolder, BelongsToOneAtATime) {
  const Folder folder;
  in_world(folder.file("meta"), &open_twice);
}

// Changes one value in the RocksDB, as a fault or another program would.
void tamper(const std::string& folder, const std::string& key, const std::string& value) {
  rocksdb::Options options;
  options.create_if_missing = true;
  rocksdb::DB* db = nullptr;
  ASSERT_TRUE(rocksdb::DB::Open(options, folder, &db).ok());
  const std::unique_ptr<rocksdb::DB> owned(db);
  if (value.empty()) {
    ASSERT_TRUE(db->Delete({}, key).ok());
  } else {
    ASSERT_TRUE(db->Put({}, key, value).ok());
  }
}

Task<void> note_outcome(env::Env& env, std::string folder, std::string& found) {
  found = co_await open_outcome(env, std::move(folder));
}

void expect_outcome(const std::string& folder, const std::string& expected) {
  epoll::EpollWorld world({});
  std::string found;
  ASSERT_TRUE(world.run([&](env::Env& env) { return note_outcome(env, folder, found); }));
  EXPECT_EQ(found, expected);
}

TEST(MetadataFolder, OfSomethingElseOrDamagedIsRefused) {
  const Folder folder;
  const std::string foreign = folder.file("foreign");
  tamper(foreign, "somebody", "else's");
  expect_outcome(foreign, "unsupported");
  expect_outcome(folder.path(), "unsupported");  // a folder with other things in it
  expect_outcome(folder.file("no/such/parent"), "not_found");

  const std::string newer = folder.file("newer");
  in_world(newer, &write_some);
  tamper(newer, "f", std::string("cairn metadata\2\0\0\0", 18));
  expect_outcome(newer, "unsupported");
  tamper(newer, "f", rocks::format_value());
  expect_outcome(newer, "ok");

  tamper(newer, "zzz", "odd");
  expect_outcome(newer, "corrupt");
  tamper(newer, "zzz", "");
  expect_outcome(newer, "ok");
  tamper(newer, rocks::row_key({Revision(12), 0}), "damaged");
  expect_outcome(newer, "corrupt");
  tamper(newer, rocks::row_key({Revision(12), 0}), "");
  expect_outcome(newer, "corrupt");
}

TEST(MetadataFolder, NeedsARealWorld) {
  std::string found;
  sim::Cluster cluster;
  cluster.node("a").start([&](env::Env& env) { return note_outcome(env, "meta", found); });
  ASSERT_TRUE(cluster.run_until_idle(10_s));
  EXPECT_EQ(found, "unsupported");
}

// The child: commits without end, several at a time, and tells each that was answered.
Task<void> commit_without_end(Store& store, int writer, int tell) {
  for (int i = 0;; ++i) {
    const std::string key = "w" + std::to_string(writer);
    Batch batch;
    batch.put(key, std::to_string(i)).put(key + "/copy", std::to_string(i));
    const Result<Committed> done = co_await store.commit(std::move(batch));
    if (!done) ::_exit(3);
    const std::array<int, 2> told = {writer, i};
    if (::write(tell, told.data(), sizeof(told)) != sizeof(told)) {  // lint: allow(pipe)
      ::_exit(4);
    }
  }
}

Task<void> be_killed(env::Env& env, std::string folder, int tell) {
  const std::unique_ptr<Store> store = co_await opened(env, std::move(folder), {.history_max = 50});
  std::vector<Task<void>> writers;
  for (int i = 0; i < 4; ++i) writers.push_back(commit_without_end(*store, i, tell));
  co_await task::when_all(std::move(writers));
}

// Starts a child, takes in what it tells until it has told enough, kills it, takes in the rest.
void kill_one(const std::string& folder, uint64_t enough, std::array<int, 4>& told) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::close(ends[0]);  // lint: allow(pipe)
    epoll::EpollWorld world({});
    const Result<void> ran =
        world.run([&](env::Env& env) { return be_killed(env, folder, ends[1]); });
    ::_exit(ran ? 5 : 6);
  }
  ::close(ends[1]);  // lint: allow(pipe)
  std::array<int, 2> one{};
  for (uint64_t count = 0;
       ::read(ends[0], one.data(), sizeof(one)) == sizeof(one);) {  // lint: allow(pipe)
    told[one[0]] = one[1];
    if (++count == enough) ::kill(child, SIGKILL);
  }
  ::close(ends[0]);  // lint: allow(pipe)
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status)) << "the child ended by itself: " << status;
}

Task<void> compare(env::Env& env, std::string folder, const std::array<int, 4>& told) {
  const std::unique_ptr<Store> store = co_await opened(env, std::move(folder));
  for (size_t i = 0; i < told.size(); ++i) {
    const std::string key = "w" + std::to_string(i);
    const std::string value = co_await value_of(*store, key);
    const std::string copy = co_await value_of(*store, key + "/copy");
    EXPECT_EQ(value, copy) << "half a batch";
    // The last one of a writer may be there though nobody was told.
    if (told[i] >= 0) EXPECT_GE(std::stoi(value), told[i]);
    if (told[i] >= 0) EXPECT_LE(std::stoi(value), told[i] + 1);
  }
  co_await store->close();
}

TEST(MetadataFolder, LosesNothingThatWasAnsweredWhenKilled) {
  const Folder folder;
  Rng rng(11);
  for (int round = 0; round < 8 && !HasFailure(); ++round) {
    std::array<int, 4> told = {-1, -1, -1, -1};
    kill_one(folder.file("meta"), rng.between(1, 120), told);
    epoll::EpollWorld world({});
    ASSERT_TRUE(world.run([&](env::Env& env) { return compare(env, folder.file("meta"), told); }));
  }
}

}  // namespace
}  // namespace cairn::meta_tests
