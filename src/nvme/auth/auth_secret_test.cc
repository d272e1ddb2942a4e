// SPDX-License-Identifier: Apache-2.0
// Values here were computed with Python's hmac, hashlib and zlib, and integers for the DH group.
#include "nvme/auth/auth_secret.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "crypto/dh.h"
#include "nvme/auth/auth_message.h"
#include "nvme/auth/auth_proof.h"
#include "testing/nvme/hex.h"
#include "testing/nvme/two_ends.h"

namespace cairn::nvme {
namespace {

std::vector<std::byte> counted(size_t size) {
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i);
  return bytes;
}

TEST(AuthSecret, HasItsPrintedForm) {
  EXPECT_EQ(AuthSecret::make({}, counted(32)).text(),
            "DHHC-1:00:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:");
  EXPECT_EQ(AuthSecret::make(AuthHash::kSha384, counted(48)).text(),
            "DHHC-1:02:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vcSEgBQ==:");
  const auto parsed = AuthSecret::parse(
      "DHHC-1:03:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc4OTo7"
      "PD0+P4zODhA=:");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->hash(), AuthHash::kSha512);
  EXPECT_EQ(wire(parsed->key()), wire(counted(64)));
}

TEST(AuthSecret, OtherTextIsRefused) {
  const std::string sound = "DHHC-1:00:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:";
  ASSERT_TRUE(AuthSecret::parse(sound));
  for (size_t size = 0; size < sound.size(); ++size) {
    EXPECT_FALSE(AuthSecret::parse(sound.substr(0, size))) << size;
  }
  for (const char* text : {"DHHC-2:00:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:",
                           "DHHC-1:04:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:",
                           "DHHC-1:00::", "DHHC-1:00:AAEC:", "DHHC-1:", "DHHC-1:00:", ":"}) {
    EXPECT_EQ(AuthSecret::parse(text).error(), Errc::kInvalid) << text;
  }
  EXPECT_EQ(
      AuthSecret::parse("DHHC-1:00:BAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:").error(),
      Errc::kCorrupt);
}

TEST(AuthSecret, IsBoundToItsNameWhenItHasAHash) {
  const AuthSecret bound = AuthSecret::make(AuthHash::kSha256, counted(32));
  EXPECT_EQ(wire(bound.key_of(kAuthHost).bytes()),
            hex("6b4e04d229ff87dac6530c913e2ae4d041d665bdd2da28af014d0e9b88995267"));
  const AuthSecret plain = AuthSecret::make({}, counted(32));
  EXPECT_EQ(wire(plain.key_of(kAuthHost).bytes()), wire(counted(32)));
}

struct Vector {
  AuthHash hash;
  bool dh;
  const char* host;
  const char* controller;
};
const Vector kVectors[] = {
    {AuthHash::kSha256, false, "94a3adb7fe24b44dbfb82cf573a40f6b32055d052682cb2a1fdf74608d0a0348",
     "3e80d8d39d8c1db6bd0326fa0a3ac14bad4aa5c60d1f07b5ed56b20f61913e74"},
    {AuthHash::kSha256, true, "0ba08c2379a47fcaa53d793bc25fccc488334285a95e04a5aabda547562f471c",
     "46a69542bd2cb8b30877095900dd0d469804626ae44e3843fd9258d02bce1ee6"},
    {AuthHash::kSha384, true,
     "d9f37081f7e1275f6acdef1493df6e0c9e7cbe843bf6587e3f2dba3893515b59"
     "0e06971a0c1fcbb341281bd1973975eb",
     "95779edb11a150975d9d755013463a37d0283fcec14374597cf307e3c05eb2a1"
     "84f6dd4011121f9a9309cf21ea61c1c6"},
    {AuthHash::kSha512, true,
     "be808e135c61904dc2cbb2e53288e17730a6523295c63c8d4b25d32a1889b17f"
     "3d87bfbc3f7657db12d75306f5889e1f51b0cc0adaef8ef8c9182b09ffa51f6d",
     "32ec4ff3c7de68ca04e87da66bcf5e76b231ec9e07a0582009e9958c1ecfe297"
     "0f1c90e90c208b2ae6d024345b5fbc6880ecefda73f75bbca04e6da764006924"},
};

TEST(AuthProof, MatchesVectors) {
  const AuthSecret secret = AuthSecret::make(AuthHash::kSha256, counted(32));
  const auto group = crypto::DhGroup::kFfdhe2048;
  const AuthDraw host = test_draw(0x11);
  const AuthDraw controller = test_draw(0x22);
  const auto shared = crypto::dh_shared(group, host.exponent,
                                        crypto::dh_public(group, controller.exponent).bytes());
  ASSERT_TRUE(shared);
  const AuthDraw challenge = test_draw(0xc1);
  for (const Vector& each : kVectors) {
    const AuthNames names{.host = kAuthHost, .subsystem = kAuthSubsystem};
    const AuthChallenged challenged{
        .hash = each.hash,
        .transaction = 0x0506,
        .sequence = 0x01020304,
        .challenge = challenge.challenge.bytes().first(size_of(each.hash)),
        .shared = each.dh ? shared->bytes() : Bytes()};
    EXPECT_EQ(wire(host_proof(secret, names, challenged).bytes()), hex(each.host));
    EXPECT_EQ(wire(controller_proof(secret, names, challenged).bytes()), hex(each.controller));
  }
}

}  // namespace
}  // namespace cairn::nvme
