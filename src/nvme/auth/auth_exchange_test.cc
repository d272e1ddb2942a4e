// SPDX-License-Identifier: Apache-2.0
// Both ends of an authentication, with messages changed, lost and repeated between them.
#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "testing/nvme/two_ends.h"

namespace cairn::nvme {
namespace {

using Step = AuthResponder::Step;

AuthPair null_pair(uint8_t host = 1, uint8_t controller = 1) {
  return {test_keys(host), test_keys(controller), {}, only(AuthHash::kSha256, AuthGroup::kNull)};
}

// What the host is told next is this failure, and then nothing.
void expect_failure(AuthPair& pair, AuthFailure failure) {
  EXPECT_EQ(decode_failure(pair.receive()), failure);
  EXPECT_EQ(pair.responder.step(), Step::kFailed);
  EXPECT_TRUE(pair.receive().empty());
  EXPECT_FALSE(pair.responder.take_success());
  EXPECT_STRNE(pair.responder.why_failed(), "");
}

class EveryMeans : public ::testing::TestWithParam<std::tuple<AuthHash, AuthGroup>> {};

TEST_P(EveryMeans, OneWayAndMutualSucceed) {
  const auto [hash, group] = GetParam();
  AuthPair one_way(test_keys(1), test_keys(1), {}, only(hash, group));
  EXPECT_TRUE(one_way.run());
  EXPECT_TRUE(one_way.responder.take_success());
  EXPECT_EQ(one_way.responder.step(), Step::kIdle);
  AuthPair both(test_keys(1, 2), test_keys(1, 2), only(hash, group));
  EXPECT_TRUE(both.run());
  EXPECT_TRUE(both.responder.take_success());
  EXPECT_FALSE(both.responder.take_success()) << "told once";
}

INSTANTIATE_TEST_SUITE_P(
    Auth, EveryMeans,
    ::testing::Combine(::testing::Values(AuthHash::kSha256, AuthHash::kSha384, AuthHash::kSha512),
                       ::testing::Values(AuthGroup::kNull, AuthGroup::kFfdhe2048,
                                         AuthGroup::kFfdhe3072, AuthGroup::kFfdhe4096,
                                         AuthGroup::kFfdhe6144, AuthGroup::kFfdhe8192)),
    [](const auto& info) {
      return std::string(name(std::get<0>(info.param))) + "_" +
             std::string(name(std::get<1>(info.param)));
    });

TEST(AuthExchange, ControllerChoosesWhatItLikesBest) {
  AuthPair pair(test_keys(1), test_keys(1),
                {.hashes = {AuthHash::kSha256, AuthHash::kSha384}, .groups = {AuthGroup::kNull}});
  pair.negotiate();
  const auto challenge = decode_challenge(pair.receive());
  ASSERT_TRUE(challenge);
  EXPECT_EQ(challenge->hash, AuthHash::kSha384);
  EXPECT_EQ(challenge->group, AuthGroup::kNull);
}

TEST(AuthExchange, NothingInCommonIsSaid) {
  AuthPair hash(test_keys(1), test_keys(1), only(AuthHash::kSha256, AuthGroup::kNull),
                only(AuthHash::kSha512, AuthGroup::kNull));
  EXPECT_EQ(hash.run().error(), Errc::kUnsupported);
  EXPECT_EQ(hash.responder.step(), Step::kFailed);
  AuthPair group(test_keys(1), test_keys(1), only(AuthHash::kSha256, AuthGroup::kNull),
                 only(AuthHash::kSha256, AuthGroup::kFfdhe2048));
  EXPECT_EQ(group.run().error(), Errc::kUnsupported);
}

TEST(AuthExchange, WrongHostKeyIsRefused) {
  AuthPair pair = null_pair(1, 9);
  EXPECT_EQ(pair.run().error(), Errc::kDenied);
  EXPECT_EQ(pair.responder.step(), Step::kFailed);
  EXPECT_FALSE(pair.responder.take_success());
}

TEST(AuthExchange, WrongControllerKeyIsRefusedByTheHost) {
  AuthPair pair(test_keys(1, 2), test_keys(1, 3));
  EXPECT_EQ(pair.run().error(), Errc::kDenied);
  EXPECT_EQ(pair.responder.step(), Step::kFailed) << "the host has said so";
  EXPECT_FALSE(pair.responder.take_success());
}

TEST(AuthExchange, MutualWithoutAControllerKeyIsRefused) {
  AuthPair pair(test_keys(1, 2), test_keys(1));
  EXPECT_EQ(pair.run().error(), Errc::kDenied);
}

TEST(AuthExchange, ATargetThatSkipsItsProofIsRefused) {
  AuthPair pair(test_keys(1, 2), test_keys(1, 2), only(AuthHash::kSha256, AuthGroup::kNull));
  pair.negotiate();
  ASSERT_TRUE(pair.challenge_and_reply());
  AuthSuccess1 success;
  success.header.transaction = pair.draw.transaction;
  success.hash_size = 32;
  EXPECT_EQ(pair.initiator.finish(bytes_of(success), pair.room).error(), Errc::kDenied);
  EXPECT_TRUE(pair.initiator.failure(pair.room));
}

TEST(AuthExchange, AnotherNameMakesAnotherProof) {
  AuthPair pair(test_keys(1), test_keys(1), only(AuthHash::kSha256, AuthGroup::kNull));
  AuthInitiator other({.keys = pair.keys,
                       .means = pair.means,
                       .names = {.host = kAuthHost, .subsystem = "nqn.2026-11.io.cairn:other"},
                       .draw = pair.draw});
  pair.send(other.negotiate(pair.room));
  const Bytes challenge = pair.receive();
  pair.send(other.reply(challenge, pair.room).value_or(0));
  expect_failure(pair, AuthFailure::kFailed);
}

TEST(AuthExchange, MessagesOutOfTurnFail) {
  AuthPair reply_first = null_pair();
  AuthReply reply;
  reply_first.responder.take(bytes_of(reply), test_draw(2));
  expect_failure(reply_first, AuthFailure::kIncorrectMessage);

  AuthPair twice = null_pair();
  twice.negotiate();
  twice.negotiate();
  expect_failure(twice, AuthFailure::kIncorrectMessage);

  AuthPair impatient = null_pair();
  impatient.negotiate();
  EXPECT_FALSE(impatient.receive().empty());
  expect_failure(impatient, AuthFailure::kIncorrectMessage);

  AuthPair nothing = null_pair();
  EXPECT_TRUE(nothing.receive().empty());
  EXPECT_EQ(nothing.responder.step(), Step::kIdle);
}

TEST(AuthExchange, AReplyOfAnotherTransactionFails) {
  AuthPair pair = null_pair();
  pair.negotiate();
  const Bytes challenge = pair.receive();
  const Result<size_t> size = pair.initiator.reply(challenge, pair.room);
  ASSERT_TRUE(size);
  pair.room[4] ^= std::byte{1};
  pair.send(*size);
  expect_failure(pair, AuthFailure::kIncorrectPayload);
}

TEST(AuthExchange, AReplayedReplyFails) {
  AuthPair first = null_pair();
  ASSERT_TRUE(first.run());
  EXPECT_TRUE(first.responder.take_success());
  AuthPair pair = null_pair();
  pair.negotiate();
  const Bytes challenge = pair.receive();
  const size_t size = pair.initiator.reply(challenge, pair.room).value_or(0);
  // Against the next challenge, the recorded reply is worth nothing.
  first.responder.take(MutableBytes(first.room).first(first.initiator.negotiate(first.room)),
                       test_draw(0x33));
  EXPECT_FALSE(first.receive().empty());
  first.responder.take(MutableBytes(pair.room).first(size), test_draw(0x44));
  expect_failure(first, AuthFailure::kFailed);
}

TEST(AuthExchange, OurOwnChallengeSentBackIsRefused) {
  AuthPair pair(test_keys(1, 2), test_keys(1, 2), only(AuthHash::kSha256, AuthGroup::kNull));
  pair.draw = test_draw(0x22);  // as the controller draws
  EXPECT_EQ(pair.run().error(), Errc::kDenied);
}

TEST(AuthExchange, EveryChangedBitOfAReplyFails) {
  AuthPair sound = null_pair();
  sound.negotiate();
  const size_t size = sound.initiator.reply(sound.receive(), sound.room).value_or(0);
  ASSERT_EQ(size, 80u);
  for (size_t bit = 0; bit < size * 8; ++bit) {
    // Reserved bytes, the sequence number and challenge of a reply that has none are not judged.
    const size_t at = bit / 8;
    if (at == 2 || at == 3 || at == 7 || at == 9 || (at >= 12 && at < 16) || at >= 48) continue;
    AuthPair pair = null_pair();
    pair.negotiate();
    EXPECT_FALSE(pair.receive().empty());
    pair.room = sound.room;
    pair.room[at] ^= static_cast<std::byte>(1 << bit % 8);
    pair.send(size);
    EXPECT_TRUE(decode_failure(pair.receive())) << bit;
    EXPECT_FALSE(pair.responder.take_success());
  }
}

TEST(AuthExchange, ASecureChannelIsRefused) {
  AuthPair pair = null_pair();
  const size_t size = pair.initiator.negotiate(pair.room);
  pair.room[6] = std::byte{1};
  pair.send(size);
  expect_failure(pair, AuthFailure::kSecureChannel);
}

TEST(AuthExchange, TooLittleRoomGivesNothingAndLosesNothing) {
  AuthPair pair = null_pair();
  pair.negotiate();
  std::array<std::byte, 47> small{};
  EXPECT_EQ(pair.responder.give(small), 0u);
  EXPECT_TRUE(pair.challenge_and_reply());
}

TEST(AuthExchange, AgainOnALiveQueue) {
  AuthPair pair = null_pair();
  ASSERT_TRUE(pair.run());
  EXPECT_TRUE(pair.responder.take_success());
  ASSERT_TRUE(pair.run());
  EXPECT_TRUE(pair.responder.take_success());
}

}  // namespace
}  // namespace cairn::nvme
