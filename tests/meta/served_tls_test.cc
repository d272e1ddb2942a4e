// SPDX-License-Identifier: Apache-2.0
// A server with keys and those who come to it: clients of both roles, clients that are not known,
// and strangers who say nothing, in the simulator.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "env/io.h"
#include "meta/local_store.h"
#include "meta/remote_store.h"
#include "meta/server.h"
#include "meta/test_keys.h"
#include "task/deadline.h"
#include "task/gate.h"
#include "task/sync.h"
#include "world/sim/cluster.h"

namespace cairn::meta_tests {
namespace {

using env::Env;
using meta::Batch;
using meta::Range;
using task::Task;

constexpr uint16_t kPort = 4431;

// Opens connections and says nothing; counts those that the server ends.
Task<void> be_silent(Env& env, env::Address at, size_t count, size_t& ended) {
  std::vector<std::unique_ptr<env::Stream>> streams;
  for (size_t i = 0; i < count; ++i) {
    auto stream = co_await env::connect_stream(env, at);
    if (stream) streams.push_back(std::move(*stream));
  }
  for (const std::unique_ptr<env::Stream>& stream : streams) {
    std::array<std::byte, 64> bytes;
    Result<size_t> got = size_t{1};
    while (got && *got > 0) got = co_await stream->read(bytes, env.stop_token());
    ended += env.stop_token().requested() ? 0 : 1;
  }
}

// A server on a node, and clients on others.
class Served {
 public:
  explicit Served(const sim::ClusterOptions& options = {}) : cluster(options) {}

  using Errand = std::function<Task<void>(meta::Store&)>;

  Task<void> serve(Env& env) {
    const std::unique_ptr<meta::Store> store = meta::local_store(env, state);
    meta::Server server(
        env, *store, {.clients = clients, .on_refused = [this](const rpc::RefusedClient& refused) {
                        refusals.push_back(refused);
                      }});
    EXPECT_TRUE(server.listen(at).has_value());
    task::Event never;
    [[maybe_unused]] const Result<void> stopped = co_await never.wait(env.stop_token());
    co_await server.close();
    co_await store->close();
  }

  Task<void> ask(Env& env, std::shared_ptr<const rpc::Security> security, Errand errand,
                 bool& done) {
    const std::unique_ptr<meta::Store> store = meta::remote_store(
        env, {.servers = {at}, .security = security, .on_refused = [this](auto who) {
                told.push_back(std::move(who));
              }});
    co_await errand(*store);
    co_await store->close();
    done = true;
  }

  // A client on a node of its own.
  void start_client(const char* node, std::shared_ptr<const rpc::Security> security, Errand errand,
                    bool& done) {
    cluster.node(node).start([this, security = std::move(security), errand = std::move(errand),
                              &done](Env& env) { return ask(env, security, errand, done); });
  }
  // And to its end; how long that took.
  Duration run_client(const char* node, std::shared_ptr<const rpc::Security> security,
                      Errand errand) {
    const Time begin = cluster.now();
    bool done = false;
    start_client(node, std::move(security), std::move(errand), done);
    EXPECT_TRUE(cluster.run_until([&] { return done; }, 100_s)) << cluster.report();
    return cluster.now() - begin;
  }

  void start_server() {
    cluster.node("server").start([this](Env& env) { return serve(env); });
    cluster.run_for(1_ms);
  }
  void end() {
    for (sim::Node* node : cluster.nodes()) node->stop();
    EXPECT_TRUE(cluster.run_until_idle(100_s)) << cluster.report();
  }

  // Silent strangers, and a client that comes when they are there, at one address.
  Task<void> be_neighbours(Env& env, Errand errand, size_t& ended, bool& done) {
    task::Gate gate;
    gate.spawn(be_silent(env, at, 400, ended));
    [[maybe_unused]] const Result<void> slept = co_await task::sleep_for(env, 100_ms);
    co_await ask(env, as_client("w"), std::move(errand), done);
    co_await gate.close();
  }

  static Task<void> get_into(meta::Store& store, std::optional<Error>& error) {
    const auto got = co_await store.get("a");
    if (!got) error = got.error();
  }
  static Task<void> commit_into(meta::Store& store, std::optional<Error>& error) {
    Batch batch;
    batch.put("a", "1");
    const auto committed = co_await store.commit(std::move(batch));
    if (!committed) error = committed.error();
  }
  // What a client is told when it gets and when it commits.
  std::optional<Error> get_as(const char* node, std::shared_ptr<const rpc::Security> security) {
    std::optional<Error> error;
    took = run_client(node, std::move(security),
                      [&](meta::Store& store) { return get_into(store, error); });
    return error;
  }
  std::optional<Error> commit_as(const char* node, std::shared_ptr<const rpc::Security> security) {
    std::optional<Error> error;
    took = run_client(node, std::move(security),
                      [&](meta::Store& store) { return commit_into(store, error); });
    return error;
  }
  bool has_key() const { return state.get("a", state.revision()).has_value(); }

  sim::Cluster cluster;
  env::Address at = cluster.node("server").address(kPort);
  std::shared_ptr<const rpc::ClientKeys> clients = known_clients();
  meta::State state;
  std::vector<rpc::RefusedClient> refusals;  // what the server says of them
  std::vector<std::string> told;             // who is told that it was refused
  Duration took;
};

class ServedTls : public testing::Test, public Served {
 protected:
  void TearDown() override { end(); }
};

Task<void> try_all_writes(meta::Store& store, std::vector<Error>& errors) {
  Batch batch;
  batch.put("a", "1");
  const auto committed = co_await store.commit(std::move(batch));
  if (!committed) errors.push_back(committed.error());
  const auto granted = co_await store.grant(10_s);
  if (!granted) errors.push_back(granted.error());
  const auto kept = co_await store.keep_alive(meta::LeaseId(1));
  if (!kept) errors.push_back(kept.error());
  const auto revoked = co_await store.revoke(meta::LeaseId(1));
  if (!revoked) errors.push_back(revoked.error());
  const auto compacted = co_await store.compact(meta::Revision(1));
  if (!compacted) errors.push_back(compacted.error());
}

Task<void> try_all_reads(meta::Store& store, size_t& succeeded) {
  const auto got = co_await store.get("a");
  succeeded += got.has_value() ? 1 : 0;
  const auto page = co_await store.list({.range = Range::all()});
  succeeded += page.has_value() ? 1 : 0;
  auto watch = co_await store.watch(Range::all(), meta::Revision(1));
  if (!watch) co_return;
  const auto changes = co_await (*watch)->next();
  succeeded += changes.has_value() ? 1 : 0;
  co_await (*watch)->close();
}

TEST_F(ServedTls, WriterWritesAndReaderReadsOnly) {
  start_server();
  EXPECT_FALSE(commit_as("a", as_client("w")).has_value());
  size_t reads = 0;
  run_client("b", as_client("r"), [&](meta::Store& store) { return try_all_reads(store, reads); });
  EXPECT_EQ(reads, 3u);
  EXPECT_TRUE(refusals.empty());

  const meta::Revision before = state.revision();
  std::vector<Error> errors;
  run_client("c", as_client("r"),
             [&](meta::Store& store) { return try_all_writes(store, errors); });
  ASSERT_EQ(errors.size(), 5u);
  for (const Error& error : errors) EXPECT_EQ(error, Errc::kDenied) << error.text();
  EXPECT_EQ(state.revision(), before);
  ASSERT_EQ(refusals.size(), 5u);
  EXPECT_EQ(refusals[0].name, "r");
  EXPECT_EQ(refusals[0].why, "it may not commit: its role is reader");
  ASSERT_FALSE(told.empty());
  EXPECT_EQ(told[0], "'r'");
}

TEST_F(ServedTls, WhoIsNotKnownIsToldSoonAndSoIsTheServer) {
  start_server();
  const std::optional<Error> unknown = commit_as("a", as_client("x"));
  ASSERT_TRUE(unknown.has_value());
  EXPECT_EQ(*unknown, Errc::kDenied) << unknown->text();
  EXPECT_LT(took, 5_s);
  ASSERT_FALSE(refusals.empty());
  EXPECT_EQ(refusals[0].name, "");
  EXPECT_EQ(refusals[0].identity, "x 1");
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0], "'x'");
  EXPECT_FALSE(has_key());
}

TEST_F(ServedTls, WrongKeyIsToldSoon) {
  start_server();
  const std::optional<Error> other = get_as("a", as_client("w", 2));
  ASSERT_TRUE(other.has_value());
  EXPECT_EQ(*other, Errc::kDenied) << other->text();
  EXPECT_LT(took, 5_s);
}

// An identity can be read on the wire; the key cannot.
TEST_F(ServedTls, AnothersIdentityIsNoKey) {
  start_server();
  rpc::NamedKey key = key_of("w", 2);
  key.identity = "w 1";
  const std::optional<Error> error =
      commit_as("a", std::make_shared<rpc::KeySecurity>(std::move(key)));
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(*error, Errc::kDenied) << error->text();
  EXPECT_LT(took, 5_s);
  ASSERT_FALSE(refusals.empty());
  EXPECT_EQ(refusals[0].why, "the peer has another TLS key");
  EXPECT_FALSE(has_key());
}

TEST_F(ServedTls, PlainClientIsToldThatTheServerDemandsTls) {
  start_server();
  for (const bool commits : {false, true}) {
    refusals.clear();
    const char* node = commits ? "a" : "b";
    const std::optional<Error> error = commits ? commit_as(node, nullptr) : get_as(node, nullptr);
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(*error, Errc::kUnsupported) << error->text();
    EXPECT_NE(error->text().find("demands TLS"), std::string::npos) << error->text();
    EXPECT_LT(took, 5_s);
    ASSERT_FALSE(refusals.empty());
    EXPECT_EQ(refusals[0].why, "it speaks without TLS, and this server demands it");
  }
  EXPECT_FALSE(has_key());
}

TEST_F(ServedTls, TlsClientIsToldThatTheServerHasNoKeys) {
  clients = nullptr;
  start_server();
  const std::optional<Error> error = commit_as("a", as_client("w"));
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(*error, Errc::kUnsupported) << error->text();
  EXPECT_NE(error->text().find("without TLS"), std::string::npos) << error->text();
  EXPECT_LT(took, 5_s);
  ASSERT_FALSE(refusals.empty());
  EXPECT_EQ(refusals[0].why, "it speaks TLS, and this server has no keys");
  EXPECT_FALSE(has_key());
}

TEST_F(ServedTls, SilentStrangersEndAtTheDeadlineAndKeepNobodyOut) {
  start_server();
  size_t ended = 0;
  cluster.node("stranger").start([&](Env& env) { return be_silent(env, at, 400, ended); });
  cluster.run_for(100_ms);
  EXPECT_FALSE(commit_as("friend", as_client("w")).has_value());
  EXPECT_LT(took, 1_s);
  EXPECT_TRUE(cluster.run_until([&] { return ended == 400; }, 20_s)) << ended;
}

TEST_F(ServedTls, NorDoTheyWhereThereAreNoKeys) {
  clients = nullptr;
  start_server();
  size_t ended = 0;
  cluster.node("stranger").start([&](Env& env) { return be_silent(env, at, 400, ended); });
  cluster.run_for(100_ms);
  EXPECT_FALSE(commit_as("friend", nullptr).has_value());
  EXPECT_LT(took, 1_s);
  EXPECT_TRUE(cluster.run_until([&] { return ended == 400; }, 20_s)) << ended;
}

// The stranger's machine has a client too: the oldest of those who say nothing makes room for it.
TEST_F(ServedTls, SilentStrangersDoNotKeepOutTheirNeighbourEither) {
  start_server();
  size_t ended = 0;
  bool done = false;
  std::optional<Error> error;
  const Errand errand = [&](meta::Store& store) { return commit_into(store, error); };
  cluster.node("shared").start([&](Env& env) { return be_neighbours(env, errand, ended, done); });
  EXPECT_TRUE(cluster.run_until([&] { return done; }, 9_s));
  EXPECT_FALSE(error.has_value());
  const auto made_room = [](const rpc::RefusedClient& refused) {
    return refused.why == "it has proven nothing, and others of its address want to come in";
  };
  EXPECT_GT(std::ranges::count_if(refusals, made_room), 0) << "they have one address";
}

// Again and again, whatever becomes of connections, until it is done.
Task<void> commit_at_last(meta::Store& store, bool& is_right) {
  while (!is_right) {
    Batch batch;
    batch.if_absent("a").put("a", "1");
    const auto committed = co_await store.commit(std::move(batch));
    is_right = committed.has_value();
    if (!committed && committed.error() != Errc::kReset) co_return;
  }
}

// False: the conversation was too short to be cut there.
bool converse_cut_at(const sim::WireCut& cut) {
  sim::ClusterOptions options;
  options.network.jitter_max = 0_s;
  options.network.cut = cut;
  options.trace_capacity = 16;
  Served served(options);
  served.start_server();
  bool is_right = false;
  served.run_client("a", as_client("w"),
                    [&](meta::Store& store) { return commit_at_last(store, is_right); });
  EXPECT_TRUE(is_right);
  EXPECT_TRUE(served.has_key());
  EXPECT_TRUE(served.told.empty()) << served.told[0];
  served.end();
  return served.cluster.was_cut();
}

class ServedTlsCut : public testing::TestWithParam<std::tuple<bool, bool>> {};

TEST_P(ServedTlsCut, AtEveryByteHarmsNothing) {
  const auto [to_server, breaks] = GetParam();
  uint64_t position = 1;
  while (!HasFailure() &&
         converse_cut_at(
             {.connection = 0, .to_server = to_server, .position = position, .breaks = breaks})) {
    ++position;
  }
  EXPECT_FALSE(HasFailure()) << "cut at byte " << position;
  EXPECT_GT(position, 200u) << "the conversation was never so short";
}

INSTANTIATE_TEST_SUITE_P(Ways, ServedTlsCut, testing::Combine(testing::Bool(), testing::Bool()));

Task<void> commit_forever(meta::Store& store) {
  for (bool goes_on = true; goes_on;) {
    Batch batch;
    batch.put("b", "1");
    const auto committed = co_await store.commit(std::move(batch));
    goes_on = committed.has_value() || committed.error() == Errc::kReset;
  }
}

TEST_F(ServedTls, ClientsThatDieAtAnyStepLeaveNothingBehind) {
  start_server();
  bool done = false;
  for (Duration life = 10_us; life < 2_ms; life = life + 37_us) {
    start_client("a", as_client("w"), commit_forever, done);
    cluster.run_for(life);
    cluster.node("a").kill();
    cluster.run_for(1_ms);
  }
  EXPECT_FALSE(commit_as("b", as_client("w")).has_value());
}

}  // namespace
}  // namespace cairn::meta_tests
