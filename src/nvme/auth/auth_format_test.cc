// SPDX-License-Identifier: Apache-2.0
#include "nvme/auth/auth_format.h"

#include <gtest/gtest.h>

#include <string>

#include "nvme/auth/auth_message.h"
#include "testing/nvme/hex.h"
#include "testing/nvme/two_ends.h"

namespace cairn::nvme {
namespace {

TEST(AuthFormat, NegotiateOffersHashesAndGroups) {
  AuthPair pair(test_keys(1), test_keys(1), only(AuthHash::kSha384, AuthGroup::kFfdhe3072));
  const size_t size = pair.initiator.negotiate(pair.room);
  EXPECT_EQ(wire(MutableBytes(pair.room).first(size)),
            hex("00 00 0000 0711 | 00 01 | 01 00 01 01 | 02 00*29 | 02 00*29"));
  const auto view = decode_negotiate(MutableBytes(pair.room).first(size));
  ASSERT_TRUE(view);
  EXPECT_EQ(view->transaction, 0x1107);
  EXPECT_EQ(wire(view->hashes), hex("02"));
  EXPECT_EQ(wire(view->groups), hex("02"));
}

TEST(AuthFormat, ChallengeWithoutDh) {
  const HexBytes bytes = hex("01 01 0000 3412 20 00 01 00 0000 04030201 | c1*32");
  const auto view = decode_challenge(bytes);
  ASSERT_TRUE(view);
  EXPECT_EQ(view->transaction, 0x1234);
  EXPECT_EQ(view->hash, AuthHash::kSha256);
  EXPECT_EQ(view->group, AuthGroup::kNull);
  EXPECT_EQ(view->sequence, 0x01020304u);
  EXPECT_EQ(wire(view->challenge), hex("c1*32"));
  EXPECT_TRUE(view->dh.empty());
}

TEST(AuthFormat, ReplyWithAndWithoutChallenge) {
  const std::string tail = "0000 05000000 | aa*32 | bb*32";
  const HexBytes with = hex("01 02 0000 3412 20 00 01 00 " + tail);
  const auto view = decode_reply(with, AuthHash::kSha256, AuthGroup::kNull);
  ASSERT_TRUE(view);
  EXPECT_EQ(view->sequence, 5u);
  EXPECT_EQ(wire(view->response), hex("aa*32"));
  EXPECT_EQ(wire(view->challenge), hex("bb*32"));
  const HexBytes without = hex("01 02 0000 3412 20 00 00 00 " + tail);
  EXPECT_TRUE(decode_reply(without, AuthHash::kSha256, AuthGroup::kNull)->challenge.empty());
}

TEST(AuthFormat, SuccessAndFailure) {
  const HexBytes success = hex("01 03 0000 3412 20 00 01 00*7 | dd*32");
  const auto view = decode_success1(success, AuthHash::kSha256);
  ASSERT_TRUE(view);
  EXPECT_EQ(wire(view->response), hex("dd*32"));
  EXPECT_EQ(wire(AuthSuccess2{}), hex("01 04 0000 0000 00*10"));
  AuthFailed failed;
  failed.header.transaction = 0x1234;
  failed.explanation = AuthFailure::kHashNotUsable;
  EXPECT_EQ(wire(failed), hex("00 f1 0000 3412 01 04"));
  EXPECT_EQ(decode_failure(bytes_of(failed)), AuthFailure::kHashNotUsable);
  EXPECT_FALSE(decode_failure(success));
}

TEST(AuthFormat, EveryCutIsFoundAndNamed) {
  const HexBytes challenge = hex("01 01 0000 3412 20 00 01 00 0000 04030201 | c1*32");
  const HexBytes reply = hex("01 02 0000 3412 20 00 01 00 0000 05000000 | aa*32 | bb*32");
  const HexBytes success = hex("01 03 0000 3412 20 00 01 00*7 | dd*32");
  for (size_t size = 0; size < challenge.size(); ++size) {
    EXPECT_EQ(decode_challenge(Bytes(challenge).first(size)).error(),
              AuthFailure::kIncorrectPayload);
  }
  for (size_t size = 0; size < reply.size(); ++size) {
    const Bytes cut = Bytes(reply).first(size);
    EXPECT_EQ(decode_reply(cut, AuthHash::kSha256, AuthGroup::kNull).error(),
              AuthFailure::kIncorrectPayload);
  }
  for (size_t size = 0; size < success.size(); ++size) {
    EXPECT_EQ(decode_success1(Bytes(success).first(size), AuthHash::kSha256).error(),
              AuthFailure::kIncorrectPayload);
  }
}

TEST(AuthFormat, WrongKindsLengthsAndIdsAreRefused) {
  const auto challenge = [](const std::string& text) {
    return decode_challenge(hex(text)).error();
  };
  EXPECT_EQ(challenge("01 02 0000 3412 20 00 01 00 0000 04030201 | c1*32"),
            AuthFailure::kIncorrectMessage);
  EXPECT_EQ(challenge("01 01 0000 3412 20 00 04 00 0000 04030201 | c1*64"),
            AuthFailure::kHashNotUsable);
  EXPECT_EQ(challenge("01 01 0000 3412 20 00 01 06 0000 04030201 | c1*64"),
            AuthFailure::kGroupNotUsable);
  EXPECT_EQ(challenge("01 01 0000 3412 30 00 01 00 0000 04030201 | c1*64"),
            AuthFailure::kIncorrectPayload)
      << "the length of another hash";
  EXPECT_EQ(challenge("01 01 0000 3412 20 00 01 01 0000 04030201 | c1*32"),
            AuthFailure::kIncorrectPayload)
      << "a group without its value";
  EXPECT_EQ(decode_negotiate(hex("00 00 0000 3412 00 01 | 02 00 01 01 | 01 00*29 | 00*30")).error(),
            AuthFailure::kProtocolNotUsable);
  EXPECT_EQ(decode_negotiate(hex("00 00 0000 3412 00 01 | 01 00 1f 01 | 01 00*29 | 00*30")).error(),
            AuthFailure::kIncorrectPayload)
      << "more ids than there is room for";
  EXPECT_EQ(decode_negotiate(hex("00 00 0000 3412 00 00")).error(), AuthFailure::kIncorrectPayload);
}

TEST(AuthFormat, NamesRoundTrip) {
  for (const AuthHash hash : AuthMeans{}.hashes) EXPECT_EQ(parse_auth_hash(name(hash)), hash);
  for (const AuthGroup group : AuthMeans{}.groups) EXPECT_EQ(parse_auth_group(name(group)), group);
  EXPECT_FALSE(parse_auth_hash("md5"));
  EXPECT_FALSE(parse_auth_group("ffdhe1024"));
}

}  // namespace
}  // namespace cairn::nvme
