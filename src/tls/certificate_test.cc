// SPDX-License-Identifier: Apache-2.0
// Both ends with certificates, made here: who is trusted, for which name, until when; and what each
// end is told.
#include "tls/certificate.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/check.h"
#include "crypto/with.h"
#include "env/io.h"
#include "tls/stream.h"
#include "world/sim/cluster.h"

namespace cairn::tls {
namespace {

using task::Task;

constexpr int64_t kNow = 1'800'000'000;  // seconds since 1970
constexpr int64_t kDay = int64_t{24} * 60 * 60;

using Key = std::unique_ptr<EVP_PKEY, crypto::With<EVP_PKEY_free>>;
using Cert = std::unique_ptr<X509, crypto::With<X509_free>>;
using Memory = std::unique_ptr<BIO, crypto::With<BIO_free>>;

std::string text_in(const Memory& memory) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(memory.get(), &data);
  return {data, static_cast<size_t>(size)};
}

struct Wish {
  std::string subject;
  std::string names;  // subjectAltName; empty: none
  int64_t from = kNow - kDay;
  int64_t until = kNow + kDay;
};

// A certificate and its key, which may sign others.
class Signed {
 public:
  Signed(const Wish& wish, const Signed* signer) : key_(EVP_EC_gen("P-256")), cert_(X509_new()) {
    X509* cert = cert_.get();
    X509_set_version(cert, 2);
    ASN1_INTEGER_set(
        X509_get_serialNumber(cert),
        static_cast<long>(std::hash<std::string>()(wish.subject + wish.names) % 1'000'000));
    ASN1_TIME_set(X509_getm_notBefore(cert), wish.from);
    ASN1_TIME_set(X509_getm_notAfter(cert), wish.until);
    X509_set_pubkey(cert, key_.get());
    X509_NAME_add_entry_by_txt(X509_get_subject_name(cert), "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(wish.subject.c_str()), -1, -1,
                               0);
    const Signed& by = signer == nullptr ? *this : *signer;
    X509_set_issuer_name(cert, X509_get_subject_name(by.cert_.get()));
    extend(NID_basic_constraints, signer == nullptr ? "critical,CA:TRUE" : "CA:FALSE");
    if (!wish.names.empty()) extend(NID_subject_alt_name, wish.names.c_str());
    CHECK(X509_sign(cert, by.key_.get(), EVP_sha256()) > 0);
  }

  std::string chain() const {
    const Memory memory(BIO_new(BIO_s_mem()));
    CHECK(PEM_write_bio_X509(memory.get(), cert_.get()) == 1);
    return text_in(memory);
  }
  std::string key() const {
    const Memory memory(BIO_new(BIO_s_mem()));
    CHECK(PEM_write_bio_PrivateKey(memory.get(), key_.get(), nullptr, nullptr, 0, nullptr,
                                   nullptr) == 1);
    return text_in(memory);
  }

 private:
  void extend(int kind, const char* value) {
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, cert_.get(), cert_.get(), nullptr, nullptr, 0);
    const std::unique_ptr<X509_EXTENSION, crypto::With<X509_EXTENSION_free>> extension(
        X509V3_EXT_conf_nid(nullptr, &context, kind, value));
    CHECK(extension != nullptr && X509_add_ext(cert_.get(), extension.get(), -1) == 1);
  }

  Key key_;
  Cert cert_;
};

class Certificates : public testing::Test {
 protected:
  Certificates() {
    server.chain = of_server.chain();
    server.key = of_server.key();
    server.clients = ca.chain();
    client.ca = ca.chain();
    client.chain = of_client.chain();
    client.key = of_client.key();
  }
  void show(const Signed& shown) {
    server.chain = shown.chain();
    server.key = shown.key();
  }

  static bool move(Engine& from, Engine& to) {
    const Bytes bytes = from.output();
    const MutableBytes room = to.input_room();
    const size_t count = std::min(bytes.size(), room.size());
    std::ranges::copy(bytes.first(count), room.begin());
    to.input_came(count);
    from.output_left(count);
    return count > 0;
  }
  // Both ends shake hands, and the client then reads: what each says in the end.
  void meet(const std::string& name) {
    ASSERT_TRUE(check(server).has_value());
    ASSERT_TRUE(check(client).has_value());
    const Context server_context(server);
    const Context client_context(client);
    Engine at_server(server_context);
    Engine at_client(client_context, ServerName{name});
    at_server.judge_at({kNow * 1'000'000'000});
    at_client.judge_at({kNow * 1'000'000'000});
    bool moved = true;
    while (moved) {
      const Engine::Step client_step = at_client.shake_hands();
      if (client_step == Engine::Step::kDone) {
        std::byte got{};
        size_t count = 0;
        [[maybe_unused]] const Engine::Step read = at_client.read({&got, 1}, count);
      }
      moved = move(at_client, at_server);
      [[maybe_unused]] const Engine::Step server_step = at_server.shake_hands();
      moved = move(at_server, at_client) || moved;
    }
    client_says = at_client.failure() ? at_client.failure()->text() : "ok";
    server_says = at_server.failure() ? at_server.failure()->text() : "ok";
    client_error = at_client.failure();
  }

  Signed ca{{.subject = "the CA"}, nullptr};
  Signed of_server{{.subject = "etcd", .names = "DNS:etcd.example,IP:10.0.0.1"}, &ca};
  Signed of_client{{.subject = "box7"}, &ca};
  Certificate server;
  ClientCertificate client;
  std::string client_says;
  std::string server_says;
  std::optional<Error> client_error;
};

TEST_F(Certificates, BothEndsKnowEachOther) {
  for (const char* name : {"etcd.example", "10.0.0.1"}) {
    meet(name);
    EXPECT_EQ(client_says, "ok") << name;
    EXPECT_EQ(server_says, "ok") << name;
  }
}

TEST_F(Certificates, AnotherNameOrAddressIsRefused) {
  // The subject is no name: only those in subjectAltName are.
  for (const char* name : {"etcd", "other.example", "10.0.0.2", "a.etcd.example"}) {
    meet(name);
    EXPECT_EQ(client_says, "the peer's certificate is for another name or address: denied") << name;
    EXPECT_NE(server_says, "ok") << name;
  }
}

TEST_F(Certificates, NoNameAtAllIsNoWildcard) {
  meet("");
  EXPECT_EQ(client_says, "no name that a server can have: invalid");
}

TEST_F(Certificates, AnotherSignerIsRefused) {
  const Signed other({.subject = "the CA"}, nullptr);
  const Signed impostor({.subject = "etcd", .names = "IP:10.0.0.1"}, &other);
  show(impostor);
  meet("10.0.0.1");
  EXPECT_EQ(client_says, "the peer's certificate is not signed by ours: denied");
  const Signed alone({.subject = "etcd", .names = "IP:10.0.0.1"}, nullptr);
  show(alone);
  meet("10.0.0.1");
  EXPECT_EQ(client_says, "the peer's certificate is not signed by ours: denied");
}

TEST_F(Certificates, AnOldOneAndAFutureOneAreRefused) {
  const Signed old(
      {.subject = "etcd", .names = "IP:10.0.0.1", .from = kNow - 2 * kDay, .until = kNow - 1}, &ca);
  show(old);
  meet("10.0.0.1");
  EXPECT_EQ(client_says, "the peer's certificate has expired: denied");
  const Signed future({.subject = "etcd", .names = "IP:10.0.0.1", .from = kNow + 60}, &ca);
  show(future);
  meet("10.0.0.1");
  EXPECT_EQ(client_says, "the peer's certificate is not valid yet: denied");
}

TEST_F(Certificates, AClientWithoutOneHearsThatItNeedsOne) {
  client.chain.clear();
  client.key.clear();
  meet("10.0.0.1");
  EXPECT_EQ(server_says, "the peer shows no certificate: denied");
  ASSERT_TRUE(client_error.has_value());
  EXPECT_EQ(*client_error, Errc::kDenied) << client_says;
}

TEST_F(Certificates, AClientWithAStrangersOneIsRefused) {
  const Signed other({.subject = "another CA"}, nullptr);
  const Signed stranger({.subject = "box7"}, &other);
  client.chain = stranger.chain();
  client.key = stranger.key();
  meet("10.0.0.1");
  EXPECT_EQ(server_says, "the peer's certificate is not signed by ours: denied");
  ASSERT_TRUE(client_error.has_value());
  EXPECT_EQ(*client_error, Errc::kDenied) << client_says;
}

TEST_F(Certificates, WhatIsNoneIsToldBeforeItIsUsed) {
  client.ca = "nothing";
  EXPECT_EQ(check(client).error(), Errc::kInvalid);
  client.ca = ca.chain();
  client.key = of_server.key();
  EXPECT_EQ(check(client).error(), Errc::kInvalid) << "another's key";
  client.chain = "nothing";
  EXPECT_EQ(check(client).error(), Errc::kInvalid);
}

// No pre-shared key is taken from a client whose server shows certificates, and the other way
// round.
struct NoKeys final : PskKeeper {
  Task<Result<Psk>> choose(std::vector<std::string>) override {
    co_return fail(Errc::kDenied, "there are none");
  }
};

// In the simulator, by whose clock certificates are judged.
class CertificateStreams : public Certificates {
 protected:
  Task<void> serve(env::Env& env, env::Address at) {
    const auto listener = env.listen(at).value();
    Result<env::Connection> accepted = co_await listener->accept(env.stop_token());
    if (!accepted) co_return;
    const Context context(server);
    task::Gate lingering;
    NoKeys keys;
    PskKeeper& keeper = keys;
    {
      TlsStream stream(env, env.open(std::move(*accepted)), context, keeper, lingering);
      served = co_await stream.shake_hands();
      std::array<std::byte, 4> bytes{};
      if (served) served = co_await env::read_exactly(stream, bytes);
      if (served) served = co_await stream.write(Bytes(bytes));
    }
    co_await lingering.close();
  }
  Task<void> connect(env::Env& env, env::Address to) {
    auto plain = co_await env::connect_stream(env, to);
    const Context context(client);
    task::Gate lingering;
    {
      TlsStream stream(env, std::move(*plain), context, ServerName{"10.0.0.1"}, lingering);
      asked = co_await stream.shake_hands();
      if (asked) asked = co_await stream.write(as_bytes("ping"));
      if (asked) asked = co_await env::read_exactly(stream, answer);
    }
    co_await lingering.close();
    done = true;
  }
  void run(Duration wall_offset) {
    sim::Cluster cluster;
    cluster.node("server").step_clock(wall_offset);
    cluster.node("client").step_clock(wall_offset);
    const env::Address at = cluster.node("server").address(2379);
    cluster.node("server").start([this, at](env::Env& env) { return serve(env, at); });
    cluster.run_for(1_ms);
    cluster.node("client").start([this, at](env::Env& env) { return connect(env, at); });
    EXPECT_TRUE(cluster.run_until([this] { return done; }, 100_s)) << cluster.report();
    for (sim::Node* node : cluster.nodes()) node->stop();
    EXPECT_TRUE(cluster.run_until_idle(100_s));
  }

  // To kNow from where simulated wall clocks begin.
  static Duration to_now() {
    sim::Cluster cluster;
    WallTime begin;
    cluster.node("a").start([&begin](env::Env& env) { return look(env, begin); });
    cluster.run_for(1_ms);
    return Duration{kNow * 1'000'000'000 - begin.ns};
  }
  static Task<void> look(env::Env& env, WallTime& begin) {
    begin = env.wall_now();
    co_return;
  }

  bool done = false;
  Result<void> served = fail(Errc::kInvalid, "never");
  Result<void> asked = fail(Errc::kInvalid, "never");
  std::array<std::byte, 4> answer{};
};

TEST_F(CertificateStreams, CarryBytesBothWays) {
  run(to_now());
  EXPECT_TRUE(asked.has_value()) << asked.error().text();
  EXPECT_TRUE(served.has_value()) << served.error().text();
  EXPECT_EQ(as_text(answer), "ping");
}

TEST_F(CertificateStreams, AreRefusedByTheClockOfTheWorld) {
  run(to_now() + Duration::from_seconds(2.0 * kDay));
  ASSERT_FALSE(asked.has_value());
  EXPECT_EQ(asked.error().text(), "the peer's certificate has expired: denied");
  EXPECT_FALSE(served.has_value());
}

}  // namespace
}  // namespace cairn::tls
