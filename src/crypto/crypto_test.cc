// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "base/rng.h"
#include "crypto/base64.h"
#include "crypto/dh.h"
#include "crypto/hash.h"
#include "crypto/hkdf.h"
#include "crypto/secret.h"

namespace cairn::crypto {
namespace {

std::string hex_of(Bytes bytes) {
  std::string text;
  for (const std::byte byte : bytes) {
    constexpr char kDigits[] = "0123456789abcdef";
    text += kDigits[std::to_integer<unsigned>(byte) >> 4];
    text += kDigits[std::to_integer<unsigned>(byte) & 15];
  }
  return text;
}

DhSecret drawn_secret(uint64_t seed) {
  Rng rng(seed);
  DhSecret secret(kDhSecretSize);
  for (std::byte& byte : secret.mutable_bytes()) byte = static_cast<std::byte>(rng.below(256));
  return secret;
}

constexpr DhGroup kGroups[] = {DhGroup::kFfdhe2048, DhGroup::kFfdhe3072, DhGroup::kFfdhe4096,
                               DhGroup::kFfdhe6144, DhGroup::kFfdhe8192};

// Computed with Python's hmac.
TEST(Hkdf, DerivesTheKnownKeys) {
  EXPECT_EQ(hex_of(hkdf_derive(Hash::kSha256, as_bytes("key"), "label", {}).bytes()),
            "282264afaec0a08c5c6938e179ca09d4515f2a33ac58bd756706a3e47503fa74");
  EXPECT_EQ(
      hex_of(hkdf_derive(Hash::kSha384, as_bytes("key"), "label", as_bytes("context")).bytes()),
      "fb21f252c2795dfbf889259a91be3df86486cf4e6b72b836f2db96f0e90b7070"
      "e9ff7d0d6636a785b3c6cebe76aafad7");
}

// FIPS 180-4, "abc".
TEST(Hash, DigestsTheKnownMessage) {
  EXPECT_EQ(hex_of(digest(Hash::kSha256, {as_bytes("abc")}).bytes()),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex_of(digest(Hash::kSha384, {as_bytes("a"), as_bytes("bc")}).bytes()),
            "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed"
            "8086072ba1e7cc2358baeca134c825a7");
}

// RFC 4231, test case 2.
TEST(Hash, HmacMatchesRfc4231) {
  const auto mac = [](Hash hash) {
    return hex_of(
        hmac(hash, as_bytes("Jefe"), {as_bytes("what do ya want "), as_bytes("for nothing?")})
            .bytes());
  };
  EXPECT_EQ(mac(Hash::kSha256), "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(mac(Hash::kSha384),
            "af45d2e376484031617f78d2b58a6b1b9c7ef464f5a01b47e42ec3736322445e"
            "8e2240ca5e69e2c78b3239ecfab21649");
  EXPECT_EQ(mac(Hash::kSha512),
            "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea250554"
            "9758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737");
}

TEST(Dh, BothSidesFindTheSameSecret) {
  for (const DhGroup group : kGroups) {
    const DhSecret mine = drawn_secret(1);
    const DhSecret yours = drawn_secret(2);
    const auto here = dh_shared(group, mine, dh_public(group, yours).bytes());
    const auto there = dh_shared(group, yours, dh_public(group, mine).bytes());
    ASSERT_TRUE(here && there);
    EXPECT_EQ(here->size(), dh_size(group));
    EXPECT_TRUE(is_equal(here->bytes(), there->bytes()));
  }
}

TEST(Dh, ExponentOneGivesTheGeneratorPadded) {
  DhSecret one(kDhSecretSize);
  one.mutable_bytes().back() = std::byte{1};
  const DhValue value = dh_public(DhGroup::kFfdhe2048, one);
  EXPECT_EQ(hex_of(value.bytes()), std::string(510, '0') + "02");
}

TEST(Dh, PublicValuesOutsideTheGroupAreRefused) {
  const DhSecret secret = drawn_secret(3);
  std::array<std::byte, 256> value{};
  EXPECT_FALSE(dh_shared(DhGroup::kFfdhe2048, secret, value)) << "0";
  value.back() = std::byte{1};
  EXPECT_FALSE(dh_shared(DhGroup::kFfdhe2048, secret, value)) << "1";
  value.fill(std::byte{0xff});
  EXPECT_FALSE(dh_shared(DhGroup::kFfdhe2048, secret, value)) << "above the prime";
  EXPECT_FALSE(dh_shared(DhGroup::kFfdhe2048, secret, Bytes(value).first(255))) << "too short";
  EXPECT_FALSE(dh_shared(DhGroup::kFfdhe3072, secret, value)) << "of another group";
}

TEST(Base64, RoundTripsEveryLength) {
  std::string bytes;
  for (int i = 0; i < 70; ++i) {
    const std::string text = to_base64(as_bytes(bytes));
    const auto back = from_base64(text);
    ASSERT_TRUE(back) << text;
    EXPECT_EQ(as_text(*back), bytes);
    bytes += static_cast<char>(i * 37);
  }
  EXPECT_EQ(to_base64(as_bytes("foobar")), "Zm9vYmFy");
}

TEST(Base64, OtherFormsAreRefused) {
  for (const char* text :
       {"Zg=", "Z===", "====", "Zm 9", " Zm9", "Zm9\n", "Zh==", "Zm9vYg=a", "-_Zg"}) {
    EXPECT_FALSE(from_base64(text)) << text;
  }
}

TEST(Secret, ComparesAllBytesAndTheLength) {
  EXPECT_TRUE(is_equal(as_bytes("secret"), as_bytes("secret")));
  EXPECT_FALSE(is_equal(as_bytes("secret"), as_bytes("secres")));
  EXPECT_FALSE(is_equal(as_bytes("secret"), as_bytes("secre")));
  EXPECT_TRUE(is_equal({}, {}));
}

TEST(Secret, KeptOnesMoveAndKeepTheirBytes) {
  KeptSecret first(as_bytes("the key"));
  KeptSecret second(std::move(first));
  EXPECT_EQ(as_text(second.bytes()), "the key");
  KeptSecret third;
  third = std::move(second);
  EXPECT_EQ(as_text(third.bytes()), "the key");
}

}  // namespace
}  // namespace cairn::crypto
