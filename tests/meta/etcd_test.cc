// SPDX-License-Identifier: Apache-2.0
// What is particular to etcd: it goes away and comes back, and there may be several.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "epoll/world.h"
#include "meta/etcd/etcd_store.h"
#include "meta/etcd_process.h"
#include "meta/suite.h"

namespace cairn::meta_tests {
namespace {

using meta::EtcdStore;
using Body = Task<void> (*)(env::Env&, EtcdProcess&);

void with_etcd(Body body) {
  if (!EtcdProcess::is_installed()) GTEST_SKIP() << "apt-get install etcd-server";
  EtcdProcess etcd;
  epoll::EpollWorld world({});
  const Result<void> ran = world.run([&](env::Env& env) { return body(env, etcd); });
  ASSERT_TRUE(ran.has_value());
}

// Until it was done: an etcd that comes back may say that it has no leader yet.
Task<void> put_for_sure(Store& store, std::string key, std::string value) {
  while (true) {
    const Result<Committed> done = co_await store.commit(Batch().if_absent(key).put(key, value));
    if (done) co_return;
  }
}

Task<void> kill_under_watch(env::Env& env, EtcdProcess& etcd) {
  EtcdStore store(env, {.servers = {etcd.address()}, .timeout = 60_s});
  const std::unique_ptr<Watch> watching = co_await watch(store, Range::prefix("k"));
  std::vector<std::string> expected;
  std::vector<std::string> seen;
  for (int round = 0; round < 4; ++round) {
    // Some are seen before the end of the connection and some only after it.
    for (int i = 0; i < 6; ++i) {
      const std::string key = "k" + std::to_string(round) + std::to_string(i);
      co_await put_for_sure(store, key, "1");
      expected.push_back("put " + key + "=1");
      if (i != 3) continue;
      const std::vector<Change> some = co_await sure(watching->next());
      for (const std::string& text : texts(some)) seen.push_back(text);
    }
    etcd.kill();
    etcd.start();
    const std::string kept = co_await value_of(store, "k" + std::to_string(round) + "5");
    EXPECT_EQ(kept, "1") << "answered, and gone after the restart";
  }
  while (seen.size() < expected.size()) {
    const std::vector<Change> more = co_await sure(watching->next());
    for (const std::string& text : texts(more)) seen.push_back(text);
  }
  EXPECT_EQ(seen, expected);
  co_await watching->close();
  co_await store.close();
}

TEST(Etcd, KilledAndStartedAgainLosesNoCommitAndNoWatchAnyChange) { with_etcd(&kill_under_watch); }

Task<void> use_the_second(env::Env& env, EtcdProcess& etcd) {
  // Nobody listens at the first, and the third stays unused.
  const env::Address dead = env::Address::loopback(1);
  EtcdStore store(env, {.servers = {dead, etcd.address(), dead}, .timeout = 60_s});
  co_await put(store, "a", "1");
  const std::string value = co_await value_of(store, "a");
  EXPECT_EQ(value, "1");
  const std::unique_ptr<Watch> watching = co_await watch(store, Range::all(), Revision(1));
  const std::vector<Change> changes = co_await take(*watching, 1);
  EXPECT_EQ(texts(changes), (std::vector<std::string>{"put a=1"}));
  co_await watching->close();
  co_await store.close();
}

TEST(Etcd, ThatIsDeadIsLeftForTheNext) { with_etcd(&use_the_second); }

Task<void> find_nobody(env::Env& env, std::string& read, std::string& written) {
  EtcdStore store(env, {.servers = {env::Address::loopback(1)}, .timeout = 200_ms});
  const auto got = co_await store.get("a", {});
  read = outcome(got);
  const auto committed = co_await store.commit(Batch().put("a", "1"), {});
  written = outcome(committed);
  co_await store.close();
}

TEST(Etcd, ThatIsNotThereIsUnreachable) {
  std::string read;
  std::string written;
  epoll::EpollWorld world({});
  ASSERT_TRUE(world.run([&](env::Env& env) { return find_nobody(env, read, written); }));
  EXPECT_EQ(read, "unreachable");
  EXPECT_EQ(written, "unreachable");
}

}  // namespace
}  // namespace cairn::meta_tests
