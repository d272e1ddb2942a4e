// SPDX-License-Identifier: Apache-2.0
// Authentication messages as something to look at, and back: bytes of a peer to views of them, or
// to the failure that the peer is told.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string_view>

#include "base/bytes.h"
#include "crypto/dh.h"
#include "crypto/hash.h"
#include "nvme/auth/auth_format.h"

namespace cairn::nvme {

template <class T>
using AuthDecoded = std::expected<T, AuthFailure>;

// Views borrow the message.
struct NegotiateView {
  uint16_t transaction = 0;
  uint8_t secure_channel = 0;
  std::span<const std::byte> hashes;  // AuthHash, as the host prefers them; unknown ones among them
  std::span<const std::byte> groups;  // AuthGroup, likewise
};
struct ChallengeView {
  uint16_t transaction = 0;
  AuthHash hash{};
  AuthGroup group{};
  uint32_t sequence = 0;
  Bytes challenge;  // as long as the hash
  Bytes dh;         // as long as the group says
};
struct ReplyView {
  uint16_t transaction = 0;
  uint32_t sequence = 0;
  Bytes response;
  Bytes challenge;  // empty: the controller need not prove itself
  Bytes dh;
};
struct Success1View {
  uint16_t transaction = 0;
  Bytes response;  // empty: there is none
};

// What the message says it is. kIncorrectPayload: too short to say.
AuthDecoded<AuthHeader> decode_auth_header(Bytes message);
// Each expects its own message: any other is kIncorrectMessage, wrong lengths kIncorrectPayload.
// Bytes behind the message are ignored: a Receive's room is larger than what it gets.
AuthDecoded<NegotiateView> decode_negotiate(Bytes message);
AuthDecoded<ChallengeView> decode_challenge(Bytes message);
AuthDecoded<ReplyView> decode_reply(Bytes message, AuthHash hash, AuthGroup group);
AuthDecoded<Success1View> decode_success1(Bytes message, AuthHash hash);
// The reason of a Failure1 or Failure2; none: it is another message.
std::optional<AuthFailure> decode_failure(Bytes message);

// Known ids and nothing else.
std::optional<AuthHash> to_auth_hash(uint8_t id);
std::optional<AuthGroup> to_auth_group(uint8_t id);
crypto::Hash hash_of(AuthHash hash);
size_t size_of(AuthHash hash);
// None: the NULL group, where nothing is exchanged.
std::optional<crypto::DhGroup> group_of(AuthGroup group);
size_t size_of(AuthGroup group);

// "sha256", "ffdhe2048", "null"; and what a failure means, for people.
std::string_view name(AuthHash hash);
std::string_view name(AuthGroup group);
const char* text(AuthFailure failure);
std::optional<AuthHash> parse_auth_hash(std::string_view text);
std::optional<AuthGroup> parse_auth_group(std::string_view text);

}  // namespace cairn::nvme
