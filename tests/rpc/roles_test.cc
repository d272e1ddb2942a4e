// SPDX-License-Identifier: Apache-2.0
// Who may call what: a server with keys, and clients with the right one, another one and none.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "crypto/secret.h"
#include "rpc/security.h"
#include "rpc/test_service.h"

namespace cairn::rpc_tests {
namespace {

using rpc::ClientKeys;
using rpc::NamedKey;
using rpc::Role;

NamedKey key_of(const std::string& name, uint8_t fill = 1) {
  crypto::Digest key(32);
  std::ranges::fill(key.mutable_bytes(), std::byte{fill});
  return {.name = name,
          .identity = name + "'s key",
          .hash = crypto::Hash::kSha256,
          .key = crypto::KeptSecret(key.bytes())};
}

class RpcRoles : public testing::Test, public Stage {
 protected:
  void SetUp() override {
    auto keys = std::make_shared<ClientKeys>();
    EXPECT_TRUE(keys->add(key_of("writer"), Role::kWriter));
    EXPECT_TRUE(keys->add(key_of("reader"), Role::kReader));
    server_options.clients = std::move(keys);
    start_server();
  }
  static Task<void> call_into(rpc::Client& client, uint16_t method, Result<Reply>& reply) {
    reply = co_await client.call({.method = method, .body = "x"}, {}, {});
  }
  Result<Reply> call_as(const char* node, std::shared_ptr<const rpc::Security> security,
                        uint16_t method) {
    Result<Reply> reply = fail(Errc::kInvalid, "not tried");
    change_client = [&](rpc::ClientOptions& options) { options.security = security; };
    run_client(node, [&](Env&, rpc::Client& client) { return call_into(client, method, reply); });
    return reply;
  }
  static std::shared_ptr<const rpc::Security> as(const std::string& name, uint8_t fill = 1) {
    return std::make_shared<rpc::KeySecurity>(key_of(name, fill));
  }
};

TEST_F(RpcRoles, WriterCallsAllAndReaderWhatTheServiceSays) {
  const Result<Reply> added = call_as("a", as("writer"), TestMethods::kAdd);
  ASSERT_TRUE(added) << added.error().text();
  EXPECT_FALSE(added->refusal);
  EXPECT_EQ(counts["x"], 1u);
  const Result<Reply> echoed = call_as("b", as("reader"), TestMethods::kEcho);
  ASSERT_TRUE(echoed) << echoed.error().text();
  EXPECT_EQ(echoed->body, "x");
  EXPECT_TRUE(refused.empty());
  const Result<Reply> denied = call_as("c", as("reader"), TestMethods::kAdd);
  ASSERT_TRUE(denied) << denied.error().text();
  EXPECT_EQ(denied->refusal, Errc::kDenied);
  EXPECT_EQ(counts["x"], 1u) << "the service did not hear of it";
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_EQ(refused[0], "it may not do it: its role is reader");
}

TEST_F(RpcRoles, UnknownAndWrongKeysAreDenied) {
  for (const auto& security : {as("nobody"), as("writer", 2)}) {
    const Result<Reply> reply = call_as("a", security, TestMethods::kEcho);
    ASSERT_FALSE(reply);
    EXPECT_EQ(reply.error(), Errc::kDenied) << reply.error().text();
  }
}

TEST_F(RpcRoles, ClientWithoutAKeyIsToldThatTheServerDemandsTls) {
  const Result<Reply> reply = call_as("a", nullptr, TestMethods::kEcho);
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error(), Errc::kUnsupported);
  EXPECT_STREQ(reply.error().what(), rpc::ErrorTexts().demands_tls);
}

}  // namespace
}  // namespace cairn::rpc_tests
