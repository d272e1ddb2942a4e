// SPDX-License-Identifier: Apache-2.0
// What is particular to etcd: it goes away and comes back, and there may be several.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "meta/etcd/etcd_store.h"
#include "meta/etcd_process.h"
#include "meta/suite.h"
#include "world/epoll/world.h"

namespace cairn::meta_tests {
namespace {

using meta::etcd::etcd_store;
using Body = Task<void> (*)(env::Env&, EtcdProcess&);

void with_etcd(Body body, EtcdProcess::Tls tls = EtcdProcess::Tls::kNo) {
  if (!EtcdProcess::is_installed()) GTEST_SKIP() << "apt-get install etcd-server";
  EtcdProcess etcd(tls);
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
  const std::unique_ptr<Store> store = etcd_store(env, etcd.client_options());
  const std::unique_ptr<Watch> watching = co_await watch(*store, Range::prefix("k"));
  std::vector<std::string> expected;
  std::vector<std::string> seen;
  for (int round = 0; round < 4; ++round) {
    // Some are seen before the end of the connection and some only after it.
    for (int i = 0; i < 6; ++i) {
      const std::string key = "k" + std::to_string(round) + std::to_string(i);
      co_await put_for_sure(*store, key, "1");
      expected.push_back("put " + key + "=1");
      if (i != 3) continue;
      const std::vector<Change> some = co_await sure(watching->next());
      for (const std::string& text : texts(some)) seen.push_back(text);
    }
    etcd.kill();
    etcd.start();
    const std::string kept = co_await value_of(*store, "k" + std::to_string(round) + "5");
    EXPECT_EQ(kept, "1") << "answered, and gone after the restart";
  }
  while (seen.size() < expected.size()) {
    const std::vector<Change> more = co_await sure(watching->next());
    for (const std::string& text : texts(more)) seen.push_back(text);
  }
  EXPECT_EQ(seen, expected);
  co_await watching->close();
  co_await store->close();
}

TEST(Etcd, KilledAndStartedAgainLosesNoCommitAndNoWatchAnyChange) { with_etcd(&kill_under_watch); }

TEST(Etcd, NorThroughTls) { with_etcd(&kill_under_watch, EtcdProcess::Tls::kYes); }

Task<void> come_without(env::Env& env, EtcdProcess& etcd) {
  const std::unique_ptr<Store> store = etcd_store(env, etcd.client_options());
  co_await put(*store, "a", "1");
  const std::unique_ptr<Store> stranger =
      etcd_store(env, etcd.client_options(EtcdProcess::Shows::kNothing));
  const auto got = co_await stranger->get("a", {});
  EXPECT_EQ(outcome(got), "denied");
  const auto committed = co_await stranger->commit(Batch().put("a", "2"), {});
  EXPECT_EQ(outcome(committed), "denied");
  Result<std::unique_ptr<Watch>> watching = co_await stranger->watch(Range::all(), Revision(1), {});
  const auto changes = co_await (*watching)->next({});
  EXPECT_EQ(outcome(changes), "denied") << "a watch does not wait for ever";
  co_await (*watching)->close();
  co_await stranger->close();
  const std::unique_ptr<Store> plain =
      etcd_store(env, {.servers = {etcd.address()}, .timeout = 200_ms});
  const auto heard = co_await plain->get("a", {});
  EXPECT_EQ(outcome(heard), "timed_out");
  EXPECT_NE(heard.error().text().find("if it demands TLS"), std::string::npos);
  co_await plain->close();
  const std::string value = co_await value_of(*store, "a");
  EXPECT_EQ(value, "1");
  co_await store->close();
}

TEST(Etcd, ThatDemandsCertificatesGetsThemOrRefuses) {
  with_etcd(&come_without, EtcdProcess::Tls::kYes);
}

Task<void> use_the_second(env::Env& env, EtcdProcess& etcd) {
  // Nobody listens at the first, and the third stays unused.
  const env::Address dead = env::Address::loopback(1);
  const std::unique_ptr<Store> store =
      etcd_store(env, {.servers = {dead, etcd.address(), dead}, .timeout = 60_s});
  co_await put(*store, "a", "1");
  const std::string value = co_await value_of(*store, "a");
  EXPECT_EQ(value, "1");
  const std::unique_ptr<Watch> watching = co_await watch(*store, Range::all(), Revision(1));
  const std::vector<Change> changes = co_await take(*watching, 1);
  EXPECT_EQ(texts(changes), (std::vector<std::string>{"put a=1"}));
  co_await watching->close();
  co_await store->close();
}

TEST(Etcd, ThatIsDeadIsLeftForTheNext) { with_etcd(&use_the_second); }

Task<void> find_nobody(env::Env& env, std::string& read, std::string& written) {
  const std::unique_ptr<Store> store =
      etcd_store(env, {.servers = {env::Address::loopback(1)}, .timeout = 200_ms});
  const auto got = co_await store->get("a", {});
  read = outcome(got);
  const auto committed = co_await store->commit(Batch().put("a", "1"), {});
  written = outcome(committed);
  co_await store->close();
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
