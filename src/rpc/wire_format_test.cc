// SPDX-License-Identifier: Apache-2.0
#include "rpc/wire_format.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace cairn::rpc {
namespace {

std::string hex(Bytes bytes) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : bytes) {
    text += kDigits[std::to_integer<uint8_t>(byte) >> 4];
    text += kDigits[std::to_integer<uint8_t>(byte) & 15];
  }
  return text;
}

std::vector<FrameHead> some_heads() {
  return {{.kind = FrameKind::kCall, .method = 3, .id = 7, .amount = 1000},
          {.kind = FrameKind::kSubscribe, .method = 8, .id = 8},
          {.kind = FrameKind::kCancel, .id = 7},
          {.kind = FrameKind::kReply, .id = 7},
          {.kind = FrameKind::kReply, .status = static_cast<uint8_t>(Errc::kDenied), .id = 7},
          {.kind = FrameKind::kPush, .id = 8},
          {.kind = FrameKind::kCredit, .id = 8, .amount = 2},
          {.kind = FrameKind::kPing},
          {.kind = FrameKind::kPong},
          {.kind = FrameKind::kGoodbye, .status = static_cast<uint8_t>(GoodbyeReason::kShutdown)}};
}

TEST(RpcWireFormat, HeadsComeBackAsTheyWere) {
  for (const FrameHead& head : some_heads()) {
    const std::array<std::byte, kHeadSize> bytes = encode_head(head, {});
    const Result<FrameHead> found = decode_head(bytes);
    ASSERT_TRUE(found) << static_cast<int>(head.kind);
    EXPECT_EQ(*found, head);
    EXPECT_TRUE(check_body(*found, {}));
    EXPECT_TRUE(looks_plain(bytes));
    EXPECT_FALSE(looks_encrypted(bytes));
  }
}

TEST(RpcWireFormat, HasTheseBytes) {
  EXPECT_EQ(hex(encode_head({.kind = FrameKind::kCall, .method = 3, .id = 7, .amount = 1000},
                            as_bytes("ab"))),
            "43525043"
            "03000300"
            "0700000000000000"
            "e8030000"
            "02000000"
            "3629a2e2"
            "8b3e0470");
  EXPECT_EQ(hex(as_bytes(encode(Hello{.service_version = {.major = 2, .minor = 1},
                                      .push_window = 4,
                                      .message_max = 65536,
                                      .service = "abc"}))),
            "01000000"
            "02000100"
            "04000000"
            "00000100"
            "03000000616263");
  EXPECT_EQ(hex(as_bytes(encode(Welcome{.service_version = {.major = 2, .minor = 1},
                                        .calls_max = 16,
                                        .subscriptions_max = 8,
                                        .call_bytes_max = 1 << 20,
                                        .message_max = 65536}))),
            "01000000"
            "02000100"
            "10000000"
            "08000000"
            "00001000"
            "00000100");
}

TEST(RpcWireFormat, DamageIsNoticedWhereverItIs) {
  const std::string body = "body";
  const std::array<std::byte, kHeadSize> good =
      encode_head({.kind = FrameKind::kReply, .id = 9}, as_bytes(body));
  for (size_t at = 0; at < good.size(); ++at) {
    std::array<std::byte, kHeadSize> bad = good;
    bad[at] ^= std::byte{0x10};
    EXPECT_FALSE(decode_head(bad)) << "byte " << at;
  }
  const Result<FrameHead> head = decode_head(good);
  ASSERT_TRUE(head);
  EXPECT_TRUE(check_body(*head, as_bytes(body)));
  for (size_t at = 0; at < body.size(); ++at) {
    std::string bad = body;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    EXPECT_FALSE(check_body(*head, as_bytes(bad)));
  }
  EXPECT_FALSE(check_body(*head, as_bytes(body).first(3)));
}

TEST(RpcWireFormat, FieldsThatAKindDoesNotHaveMakeNoSense) {
  const std::vector<FrameHead> odd = {
      {.kind = static_cast<FrameKind>(0)},
      {.kind = static_cast<FrameKind>(kLastFrameKind + 1)},
      {.kind = FrameKind::kPing, .id = 1},
      {.kind = FrameKind::kPing, .amount = 1},
      {.kind = FrameKind::kCall, .method = 1},
      {.kind = FrameKind::kCall, .status = 1, .method = 1, .id = 1},
      {.kind = FrameKind::kCancel, .method = 1, .id = 1},
      {.kind = FrameKind::kCredit, .id = 1},
      {.kind = FrameKind::kReply, .status = static_cast<uint8_t>(Errc::kCancelled) + 1, .id = 1},
      {.kind = FrameKind::kGoodbye},
      {.kind = FrameKind::kGoodbye, .status = kLastGoodbyeReason + 1}};
  for (size_t i = 0; i < odd.size(); ++i) EXPECT_FALSE(decode_head(encode_head(odd[i], {}))) << i;
  EXPECT_FALSE(decode_head(encode_head({.kind = FrameKind::kPing}, as_bytes("x"))));
  EXPECT_FALSE(
      decode_head(encode_head({.kind = FrameKind::kReply, .status = 1, .id = 1}, as_bytes("x"))))
      << "a refusal has no body";
}

TEST(RpcWireFormat, GreetingsThatAreShortLongOrOddAreCorrupt) {
  const Hello hello{.push_window = 1, .message_max = 1, .service = "s"};
  const std::string bytes = encode(hello);
  ASSERT_TRUE(decode_hello(as_bytes(bytes)));
  EXPECT_EQ(*decode_hello(as_bytes(bytes)), hello);
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(decode_hello(as_bytes(bytes).first(size)));
  }
  EXPECT_FALSE(decode_hello(as_bytes(bytes + '\0')));
  EXPECT_FALSE(decode_hello(as_bytes(encode(Hello{.push_window = 0, .service = "s"}))));
  EXPECT_FALSE(decode_hello(
      as_bytes(encode(Hello{.push_window = 1, .service = std::string(kServiceNameMax + 1, 's')}))));
  EXPECT_FALSE(decode_welcome(as_bytes(encode(Welcome{}))));
  EXPECT_TRUE(decode_welcome(as_bytes(encode(Welcome{.calls_max = 1, .call_bytes_max = 1}))));
}

TEST(RpcWireFormat, TimesAreWholeMillisecondsRoundedUp) {
  EXPECT_EQ(wire_timeout(1_ms), 1u);
  EXPECT_EQ(wire_timeout(1_ms + Duration{1}), 2u);
  EXPECT_EQ(wire_timeout(Duration{0}), 1u);
  EXPECT_EQ(wire_timeout(Duration{-5}), 1u);
  EXPECT_EQ(wire_timeout(Duration::max()), UINT32_MAX);
}

}  // namespace
}  // namespace cairn::rpc
