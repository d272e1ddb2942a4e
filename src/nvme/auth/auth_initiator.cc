// SPDX-License-Identifier: Apache-2.0
#include "nvme/auth/auth_initiator.h"

#include <algorithm>

namespace cairn::nvme {

namespace {

// What a Failure1 means to who reads it at the host.
Error told(AuthFailure failure) {
  const auto detail = static_cast<int32_t>(failure);
  switch (failure) {
    case AuthFailure::kFailed:
      return {Errc::kDenied, "the target refused this host's proof: is its key the right one?",
              detail};
    case AuthFailure::kProtocolNotUsable:
      return {Errc::kUnsupported, "the target does not do DH-HMAC-CHAP", detail};
    case AuthFailure::kSecureChannel:
      return {Errc::kUnsupported, "the target demands a secure channel", detail};
    case AuthFailure::kHashNotUsable:
      return {Errc::kUnsupported, "the target accepts none of this host's hashes", detail};
    case AuthFailure::kGroupNotUsable:
      return {Errc::kUnsupported, "the target accepts none of this host's DH groups", detail};
    case AuthFailure::kIncorrectPayload:
    case AuthFailure::kIncorrectMessage:
      break;
  }
  return {Errc::kCorrupt, "the target found an authentication message wrong", detail};
}

template <class Ids, class T>
uint8_t put_ids(Ids& ids, const std::vector<T>& values) {
  const size_t count = std::min(values.size(), ids.size());
  for (size_t i = 0; i < count; ++i) ids[i] = static_cast<uint8_t>(values[i]);
  return static_cast<uint8_t>(count);
}

}  // namespace

std::unexpected<Error> AuthInitiator::refuse(AuthFailure failure, const Error& error) {
  failure_ = failure;
  return fail(error);
}

std::unexpected<Error> AuthInitiator::explain(Bytes message, AuthFailure failure) {
  if (const auto theirs = decode_failure(message)) return fail(told(*theirs));
  return refuse(failure, {Errc::kCorrupt, text(failure), static_cast<int32_t>(failure)});
}

size_t AuthInitiator::negotiate(MutableBytes room) const {
  AuthNegotiate start;
  start.header.transaction = setup_.draw.transaction;
  AuthProtocol protocol;
  protocol.hashes_size = put_ids(protocol.hashes, setup_.means.hashes);
  protocol.groups_size = put_ids(protocol.groups, setup_.means.groups);
  store(room, start);
  store(room.subspan(sizeof(start)), protocol);
  return sizeof(start) + sizeof(protocol);
}

Result<size_t> AuthInitiator::reply(Bytes message, MutableBytes room) {
  const AuthDecoded<ChallengeView> asked = decode_challenge(message);
  if (!asked) return explain(message, asked.error());
  if (asked->transaction != setup_.draw.transaction) {
    return explain(message, AuthFailure::kIncorrectPayload);
  }
  if (std::ranges::find(setup_.means.hashes, asked->hash) == setup_.means.hashes.end()) {
    return refuse(AuthFailure::kHashNotUsable,
                  {Errc::kUnsupported, "the target chose a hash that it was not offered"});
  }
  if (std::ranges::find(setup_.means.groups, asked->group) == setup_.means.groups.end()) {
    return refuse(AuthFailure::kGroupNotUsable,
                  {Errc::kUnsupported, "the target chose a DH group that it was not offered"});
  }
  hash_ = asked->hash;
  const size_t hash_size = size_of(hash_);
  AuthReply start;
  start.header.transaction = setup_.draw.transaction;
  start.hash_size = static_cast<uint8_t>(hash_size);
  start.dh_size = static_cast<uint16_t>(size_of(asked->group));
  const MutableBytes rest = room.subspan(sizeof(AuthReply));
  crypto::DhValue shared;
  if (const auto group = group_of(asked->group)) {
    const auto found = crypto::dh_shared(*group, setup_.draw.exponent, asked->dh);
    if (!found) return explain(message, AuthFailure::kIncorrectPayload);
    shared = *found;
    const crypto::DhValue value = crypto::dh_public(*group, setup_.draw.exponent);
    std::ranges::copy(value.bytes(), rest.subspan(2 * hash_size).begin());
  }
  AuthChallenged challenged{.hash = hash_,
                            .transaction = setup_.draw.transaction,
                            .sequence = asked->sequence,
                            .challenge = asked->challenge,
                            .shared = shared.bytes()};
  const crypto::Digest proof = host_proof(setup_.keys.host, setup_.names, challenged);
  std::ranges::copy(proof.bytes(), rest.begin());
  std::ranges::fill(rest.subspan(hash_size, hash_size), std::byte{0});
  if (setup_.keys.controller) {
    start.has_challenge = 1;
    start.sequence = setup_.draw.sequence;
    challenged.challenge = setup_.draw.challenge.bytes().first(hash_size);
    challenged.sequence = setup_.draw.sequence;
    std::ranges::copy(challenged.challenge, rest.subspan(hash_size).begin());
    expected_ = controller_proof(*setup_.keys.controller, setup_.names, challenged);
  }
  store(room, start);
  return sizeof(AuthReply) + 2 * hash_size + start.dh_size;
}

Result<size_t> AuthInitiator::finish(Bytes message, MutableBytes room) {
  const AuthDecoded<Success1View> success = decode_success1(message, hash_);
  if (!success) return explain(message, success.error());
  if (success->transaction != setup_.draw.transaction) {
    return explain(message, AuthFailure::kIncorrectPayload);
  }
  if (expected_.empty()) return 0;
  if (success->response.empty()) {
    return refuse(AuthFailure::kFailed, {Errc::kDenied, "the target does not prove itself"});
  }
  if (!crypto::is_equal(success->response, expected_.bytes())) {
    return refuse(AuthFailure::kFailed,
                  {Errc::kDenied,
                   "the target's proof is wrong: is its controller key the right one, or is it an "
                   "impostor?"});
  }
  AuthSuccess2 confirmation;
  confirmation.header.transaction = setup_.draw.transaction;
  store(room, confirmation);
  return sizeof(confirmation);
}

std::optional<size_t> AuthInitiator::failure(MutableBytes room) const {
  if (!failure_) return std::nullopt;
  AuthFailed failed;
  failed.header.id = AuthId::kFailure2;
  failed.header.transaction = setup_.draw.transaction;
  failed.explanation = *failure_;
  store(room, failed);
  return sizeof(failed);
}

}  // namespace cairn::nvme
