// SPDX-License-Identifier: Apache-2.0
#include "nvme/auth/auth_message.h"

#include <algorithm>
#include <array>

namespace cairn::nvme {

namespace {

using Failed = std::unexpected<AuthFailure>;

// In the order of their ids, from the first.
constexpr std::array<std::string_view, 3> kHashNames = {"sha256", "sha384", "sha512"};
constexpr std::array<std::string_view, 6> kGroupNames = {"null",      "ffdhe2048", "ffdhe3072",
                                                         "ffdhe4096", "ffdhe6144", "ffdhe8192"};
constexpr auto kFirstHash = static_cast<uint8_t>(AuthHash::kSha256);

// The fixed start of a message, if it is one of this layout's kind.
template <class Layout>
AuthDecoded<Layout> decode_start(Bytes message) {
  const AuthDecoded<AuthHeader> header = decode_auth_header(message);
  if (!header) return Failed(header.error());
  const Layout expected;
  if (header->type != expected.header.type || header->id != expected.header.id) {
    return Failed(AuthFailure::kIncorrectMessage);
  }
  if (message.size() < sizeof(Layout)) return Failed(AuthFailure::kIncorrectPayload);
  return load<Layout>(message);
}

}  // namespace

AuthDecoded<AuthHeader> decode_auth_header(Bytes message) {
  if (message.size() < sizeof(AuthHeader)) return Failed(AuthFailure::kIncorrectPayload);
  return load<AuthHeader>(message);
}

AuthDecoded<NegotiateView> decode_negotiate(Bytes message) {
  const AuthDecoded<AuthNegotiate> start = decode_start<AuthNegotiate>(message);
  if (!start) return Failed(start.error());
  const size_t size = sizeof(AuthNegotiate) + start->protocols * sizeof(AuthProtocol);
  if (start->protocols == 0 || message.size() < size) {
    return Failed(AuthFailure::kIncorrectPayload);
  }
  for (size_t i = 0; i < start->protocols; ++i) {
    const Bytes at = message.subspan(sizeof(AuthNegotiate) + i * sizeof(AuthProtocol));
    const auto protocol = load<AuthProtocol>(at);
    if (protocol.protocol != kAuthDhHmacChap) continue;
    if (protocol.hashes_size > kAuthIdsMax || protocol.groups_size > kAuthIdsMax) {
      return Failed(AuthFailure::kIncorrectPayload);
    }
    return NegotiateView{
        .transaction = start->header.transaction,
        .secure_channel = start->secure_channel,
        .hashes = at.subspan(offsetof(AuthProtocol, hashes), protocol.hashes_size),
        .groups = at.subspan(offsetof(AuthProtocol, groups), protocol.groups_size)};
  }
  return Failed(AuthFailure::kProtocolNotUsable);
}

AuthDecoded<ChallengeView> decode_challenge(Bytes message) {
  const AuthDecoded<AuthChallenge> start = decode_start<AuthChallenge>(message);
  if (!start) return Failed(start.error());
  const std::optional<AuthHash> hash = to_auth_hash(start->hash);
  if (!hash) return Failed(AuthFailure::kHashNotUsable);
  const std::optional<AuthGroup> group = to_auth_group(start->group);
  if (!group) return Failed(AuthFailure::kGroupNotUsable);
  const size_t size = size_of(*hash);
  if (start->hash_size != size || start->dh_size != size_of(*group) ||
      message.size() < sizeof(AuthChallenge) + size + start->dh_size) {
    return Failed(AuthFailure::kIncorrectPayload);
  }
  return ChallengeView{.transaction = start->header.transaction,
                       .hash = *hash,
                       .group = *group,
                       .sequence = start->sequence,
                       .challenge = message.subspan(sizeof(AuthChallenge), size),
                       .dh = message.subspan(sizeof(AuthChallenge) + size, start->dh_size)};
}

AuthDecoded<ReplyView> decode_reply(Bytes message, AuthHash hash, AuthGroup group) {
  const AuthDecoded<AuthReply> start = decode_start<AuthReply>(message);
  if (!start) return Failed(start.error());
  const size_t size = size_of(hash);
  if (start->hash_size != size || start->dh_size != size_of(group) || start->has_challenge > 1 ||
      message.size() < sizeof(AuthReply) + 2 * size + start->dh_size) {
    return Failed(AuthFailure::kIncorrectPayload);
  }
  const Bytes rest = message.subspan(sizeof(AuthReply));
  return ReplyView{.transaction = start->header.transaction,
                   .sequence = start->sequence,
                   .response = rest.first(size),
                   .challenge = start->has_challenge == 1 ? rest.subspan(size, size) : Bytes(),
                   .dh = rest.subspan(2 * size, start->dh_size)};
}

AuthDecoded<Success1View> decode_success1(Bytes message, AuthHash hash) {
  const AuthDecoded<AuthSuccess1> start = decode_start<AuthSuccess1>(message);
  if (!start) return Failed(start.error());
  const size_t size = size_of(hash);
  const bool has_response = start->has_response == 1;
  if (start->hash_size != size || start->has_response > 1 ||
      (has_response && message.size() < sizeof(AuthSuccess1) + size)) {
    return Failed(AuthFailure::kIncorrectPayload);
  }
  return Success1View{
      .transaction = start->header.transaction,
      .response = has_response ? message.subspan(sizeof(AuthSuccess1), size) : Bytes()};
}

std::optional<AuthFailure> decode_failure(Bytes message) {
  if (message.size() < sizeof(AuthFailed)) return std::nullopt;
  const auto failed = load<AuthFailed>(message);
  const bool is_failure =
      failed.header.type == AuthType::kCommon &&
      (failed.header.id == AuthId::kFailure1 || failed.header.id == AuthId::kFailure2);
  if (!is_failure) return std::nullopt;
  return failed.explanation;
}

std::optional<AuthHash> to_auth_hash(uint8_t id) {
  if (id < kFirstHash || id >= kFirstHash + kHashNames.size()) return std::nullopt;
  return static_cast<AuthHash>(id);
}

std::optional<AuthGroup> to_auth_group(uint8_t id) {
  if (id >= kGroupNames.size()) return std::nullopt;
  return static_cast<AuthGroup>(id);
}

crypto::Hash hash_of(AuthHash hash) {
  return hash == AuthHash::kSha256   ? crypto::Hash::kSha256
         : hash == AuthHash::kSha384 ? crypto::Hash::kSha384
                                     : crypto::Hash::kSha512;
}

size_t size_of(AuthHash hash) { return crypto::digest_size(hash_of(hash)); }

std::optional<crypto::DhGroup> group_of(AuthGroup group) {
  switch (group) {
    case AuthGroup::kNull:
      break;
    case AuthGroup::kFfdhe2048:
      return crypto::DhGroup::kFfdhe2048;
    case AuthGroup::kFfdhe3072:
      return crypto::DhGroup::kFfdhe3072;
    case AuthGroup::kFfdhe4096:
      return crypto::DhGroup::kFfdhe4096;
    case AuthGroup::kFfdhe6144:
      return crypto::DhGroup::kFfdhe6144;
    case AuthGroup::kFfdhe8192:
      return crypto::DhGroup::kFfdhe8192;
  }
  return std::nullopt;
}

size_t size_of(AuthGroup group) {
  const std::optional<crypto::DhGroup> dh = group_of(group);
  return dh ? crypto::dh_size(*dh) : 0;
}

std::string_view name(AuthHash hash) { return kHashNames[static_cast<uint8_t>(hash) - kFirstHash]; }

std::string_view name(AuthGroup group) { return kGroupNames[static_cast<uint8_t>(group)]; }

std::optional<AuthHash> parse_auth_hash(std::string_view text) {
  const auto* found = std::ranges::find(kHashNames, text);
  return to_auth_hash(static_cast<uint8_t>(kFirstHash + (found - kHashNames.begin())));
}

std::optional<AuthGroup> parse_auth_group(std::string_view text) {
  const auto* found = std::ranges::find(kGroupNames, text);
  return to_auth_group(static_cast<uint8_t>(found - kGroupNames.begin()));
}

const char* text(AuthFailure failure) {
  switch (failure) {
    case AuthFailure::kFailed:
      return "authentication failed";
    case AuthFailure::kProtocolNotUsable:
      return "no authentication protocol in common";
    case AuthFailure::kSecureChannel:
      return "secure channel concatenation is not in common";
    case AuthFailure::kHashNotUsable:
      return "no hash in common";
    case AuthFailure::kGroupNotUsable:
      return "no DH group in common";
    case AuthFailure::kIncorrectPayload:
      return "an authentication message was malformed";
    case AuthFailure::kIncorrectMessage:
      return "an authentication message was out of turn";
  }
  return "authentication failed for a reason that is not known here";
}

}  // namespace cairn::nvme
