// SPDX-License-Identifier: Apache-2.0
#include "nvme/auth/auth_responder.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "nvme/auth/auth_proof.h"

namespace cairn::nvme {

namespace {

// The first of `liked` that is among the offered ids.
template <class T>
std::optional<T> choose(const std::vector<T>& liked, Bytes offered) {
  for (const T each : liked) {
    if (std::ranges::find(offered, static_cast<std::byte>(each)) != offered.end()) return each;
  }
  return std::nullopt;
}

}  // namespace

AuthResponder::AuthResponder(std::shared_ptr<const AuthPolicy> policy, std::string host_nqn,
                             std::string subsystem_nqn)
    : policy_(std::move(policy)),
      host_nqn_(std::move(host_nqn)),
      subsystem_nqn_(std::move(subsystem_nqn)) {
  CHECK(policy_ != nullptr && policy_->hosts.contains(host_nqn_), "its policy names the host");
}

void AuthResponder::refuse(AuthFailure failure, const char* why) {
  step_ = Step::kGiveFailure1;
  failure_ = failure;
  why_ = why;
  draw_.reset();
}

void AuthResponder::take(Bytes message, const AuthDraw& draw) {
  if (step_ == Step::kFailed) return;
  const AuthDecoded<AuthHeader> header = decode_auth_header(message);
  if (!header) return refuse(header.error(), "a message is cut short");
  if (step_ == Step::kIdle) {
    transaction_ = header->transaction;
    return take_negotiate(message, draw);
  }
  if (header->transaction != transaction_) {
    return refuse(AuthFailure::kIncorrectPayload, "a message is of another transaction");
  }
  if (decode_failure(message)) {
    step_ = Step::kFailed;
    draw_.reset();
    why_ = "the host gave it up (its own check of this controller may have failed)";
    return;
  }
  switch (step_) {
    case Step::kTakeReply:
      return take_reply(message);
    case Step::kTakeSuccess2:
      return take_success2(message);
    default:
      return refuse(AuthFailure::kIncorrectMessage, "the host sends when it is to receive");
  }
}

void AuthResponder::take_negotiate(Bytes message, const AuthDraw& draw) {
  const AuthDecoded<NegotiateView> asked = decode_negotiate(message);
  if (!asked) return refuse(asked.error(), text(asked.error()));
  if (asked->secure_channel != 0) {
    return refuse(AuthFailure::kSecureChannel, "the host asks for a secure channel");
  }
  const auto hash = choose(policy_->means.hashes, asked->hashes);
  if (!hash) return refuse(AuthFailure::kHashNotUsable, "the host has none of our hashes");
  const auto group = choose(policy_->means.groups, asked->groups);
  if (!group) return refuse(AuthFailure::kGroupNotUsable, "the host has none of our DH groups");
  hash_ = *hash;
  group_ = *group;
  draw_ = draw;
  response_ = {};
  step_ = Step::kGiveChallenge;
}

void AuthResponder::take_reply(Bytes message) {
  const AuthDecoded<ReplyView> reply = decode_reply(message, hash_, group_);
  if (!reply) return refuse(reply.error(), "the host's reply is malformed or out of turn");
  std::optional<crypto::DhValue> shared = crypto::DhValue();
  if (const auto group = group_of(group_)) {
    shared = crypto::dh_shared(*group, draw_->exponent, reply->dh);
    if (!shared) return refuse(AuthFailure::kIncorrectPayload, "the host's DH value is not valid");
  }
  const AuthNames names{.host = host_nqn_, .subsystem = subsystem_nqn_};
  AuthChallenged challenged{.hash = hash_,
                            .transaction = transaction_,
                            .sequence = draw_->sequence,
                            .challenge = draw_->challenge.bytes().first(size_of(hash_)),
                            .shared = shared->bytes()};
  const crypto::Digest expected = host_proof(keys().host, names, challenged);
  if (!crypto::is_equal(reply->response, expected.bytes())) {
    return refuse(AuthFailure::kFailed, "the host's proof is wrong: it has another key");
  }
  if (!reply->challenge.empty()) {
    if (!keys().controller) {
      return refuse(AuthFailure::kFailed, "the host wants proof, and there is no controller key");
    }
    if (std::ranges::equal(reply->challenge, challenged.challenge)) {
      return refuse(AuthFailure::kFailed, "the host sends our own challenge back");
    }
    challenged.challenge = reply->challenge;
    challenged.sequence = reply->sequence;
    response_ = controller_proof(*keys().controller, names, challenged);
  }
  draw_.reset();
  step_ = Step::kGiveSuccess1;
}

void AuthResponder::take_success2(Bytes message) {
  const AuthDecoded<AuthHeader> header = decode_auth_header(message);
  if (header->type != AuthType::kDhHmacChap || header->id != AuthId::kSuccess2) {
    return refuse(AuthFailure::kIncorrectMessage, "the host does not confirm our proof");
  }
  step_ = Step::kIdle;
  succeeded_ = true;
}

size_t AuthResponder::give(MutableBytes room) {
  switch (step_) {
    case Step::kGiveChallenge:
      return give_challenge(room);
    case Step::kGiveSuccess1:
      return give_success1(room);
    case Step::kTakeReply:
    case Step::kTakeSuccess2:
      refuse(AuthFailure::kIncorrectMessage, "the host receives when it is to send");
      break;
    case Step::kGiveFailure1:
      break;
    case Step::kIdle:
    case Step::kFailed:
      return 0;
  }
  if (room.size() < sizeof(AuthFailed)) return 0;
  AuthFailed failed;
  failed.header.transaction = transaction_;
  failed.explanation = failure_;
  store(room, failed);
  step_ = Step::kFailed;
  return sizeof(failed);
}

size_t AuthResponder::give_challenge(MutableBytes room) {
  const size_t hash_size = size_of(hash_);
  const size_t size = sizeof(AuthChallenge) + hash_size + size_of(group_);
  if (room.size() < size) return 0;
  AuthChallenge challenge;
  challenge.header.transaction = transaction_;
  challenge.hash_size = static_cast<uint8_t>(hash_size);
  challenge.hash = static_cast<uint8_t>(hash_);
  challenge.group = static_cast<uint8_t>(group_);
  challenge.dh_size = static_cast<uint16_t>(size_of(group_));
  challenge.sequence = draw_->sequence;
  store(room, challenge);
  std::ranges::copy(draw_->challenge.bytes().first(hash_size),
                    room.subspan(sizeof(AuthChallenge)).begin());
  if (const auto group = group_of(group_)) {
    const crypto::DhValue value = crypto::dh_public(*group, draw_->exponent);
    std::ranges::copy(value.bytes(), room.subspan(sizeof(AuthChallenge) + hash_size).begin());
  }
  step_ = Step::kTakeReply;
  return size;
}

size_t AuthResponder::give_success1(MutableBytes room) {
  const size_t size = sizeof(AuthSuccess1) + response_.size();
  if (room.size() < size) return 0;
  AuthSuccess1 success;
  success.header.transaction = transaction_;
  success.hash_size = static_cast<uint8_t>(size_of(hash_));
  success.has_response = response_.empty() ? 0 : 1;
  store(room, success);
  std::ranges::copy(response_.bytes(), room.subspan(sizeof(AuthSuccess1)).begin());
  succeeded_ = response_.empty();
  step_ = succeeded_ ? Step::kIdle : Step::kTakeSuccess2;
  return size;
}

}  // namespace cairn::nvme
