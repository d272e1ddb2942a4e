// SPDX-License-Identifier: Apache-2.0
#include "rack/client_keys.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

namespace cairn::rack {
namespace {

std::string key_text(uint8_t fill) {
  const std::vector<std::byte> bytes(32, std::byte{fill});
  return nvme::TlsKey::make(crypto::Hash::kSha256, bytes).text();
}

TEST(ClientKeys, AFileNamesClientsAndTheirRoles) {
  const Result<rpc::ClientKeys> keys = parse_client_keys(fmt::format(
      "# who may do what\n\nwriter box7 {}\r\n \treader\tgraph  {}", key_text(1), key_text(2)));
  ASSERT_TRUE(keys.has_value()) << keys.error().text();
  EXPECT_EQ(keys->size(), 2u);
  EXPECT_TRUE(keys->has_name("box7"));
  const Result<nvme::TlsKey> key = nvme::TlsKey::parse(key_text(2));
  const Result<rpc::NamedKey> client = named_key("graph", *key);
  ASSERT_TRUE(client.has_value());
  const Result<tls::Psk> psk = keys->choose({"another", client->identity});
  ASSERT_TRUE(psk.has_value());
  EXPECT_TRUE(crypto::is_equal(psk->key.bytes(), client->key.bytes())) << "both ends have the same";
  EXPECT_EQ(keys->client_of(client->identity).role, rpc::Role::kReader);
  EXPECT_EQ(keys->client_of(client->identity).name, "graph");
  EXPECT_EQ(name_in(client->identity), "graph");
}

TEST(ClientKeys, AKeyIsAnotherUnderAnotherName) {
  const Result<nvme::TlsKey> key = nvme::TlsKey::parse(key_text(1));
  const Result<rpc::NamedKey> one = named_key("a", *key);
  const Result<rpc::NamedKey> other = named_key("b", *key);
  EXPECT_NE(one->identity, other->identity);
  EXPECT_FALSE(crypto::is_equal(one->key.bytes(), other->key.bytes()));
  const Result<nvme::TlsPsk> on_fabric = key->psk_of(
      {.host = "a", .subsystem = "nqn.2026-11.io.cairn:a"}, nvme::TlsIdentityVersion::k1);
  EXPECT_FALSE(crypto::is_equal(one->key.bytes(), on_fabric->key.bytes()));
  EXPECT_EQ(name_in(on_fabric->identity.text()), std::nullopt);
}

TEST(ClientKeys, WhatIsWrongIsToldWithItsLine) {
  const std::string good = "writer a " + key_text(1) + "\n";
  for (const std::string& bad : {
           "writer b\n" + good,
           good + "writer b",
           good + "writer b " + key_text(2) + " more",
           good + "owner b " + key_text(2),
           good + "writer a " + key_text(2),
           good + "writer a/b " + key_text(2),
           good + "writer b NVMeTLSkey-1:01:AAAA:",
           good + "writer b " + key_text(2).substr(0, 40),
       }) {
    const Result<rpc::ClientKeys> keys = parse_client_keys(bad);
    ASSERT_FALSE(keys.has_value()) << bad;
    EXPECT_EQ(keys.error().detail(), bad.starts_with(good) ? 2 : 1) << bad;
  }
  EXPECT_FALSE(parse_client_keys("").has_value());
  EXPECT_FALSE(parse_client_keys("# nobody\n").has_value());
}

TEST(ClientKeys, ThereAreNotMoreThanTheLimit) {
  std::string text;
  for (size_t i = 0; i < kClientsMax; ++i) text += fmt::format("reader c{} {}\n", i, key_text(1));
  EXPECT_TRUE(parse_client_keys(text).has_value());
  EXPECT_EQ(parse_client_keys(text + "reader more " + key_text(1)).error(), Errc::kLimit);
}

}  // namespace
}  // namespace cairn::rack
