// SPDX-License-Identifier: Apache-2.0
// Two ends of an authentication without a world between them, for tests.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "nvme/auth/auth_initiator.h"
#include "nvme/auth/auth_responder.h"

namespace cairn::nvme {

inline const std::string kAuthHost = "nqn.2014-08.org.nvmexpress:uuid:1";
inline const std::string kAuthSubsystem = "nqn.2026-11.io.cairn:test";

inline AuthSecret test_secret(uint8_t fill, std::optional<AuthHash> hash = AuthHash::kSha256) {
  const crypto::SecretBytes<32> key = [fill] {
    crypto::SecretBytes<32> bytes(32);
    std::ranges::fill(bytes.mutable_bytes(), std::byte{fill});
    return bytes;
  }();
  return AuthSecret::make(hash, key.bytes());
}

inline AuthDraw test_draw(uint8_t fill) {
  AuthDraw draw;
  std::ranges::fill(draw.challenge.mutable_bytes(), std::byte{fill});
  std::ranges::fill(draw.exponent.mutable_bytes(), std::byte{fill});
  draw.sequence = fill + 1000u;
  draw.transaction = static_cast<uint16_t>(fill * 256 + 7);
  return draw;
}

inline AuthKeys test_keys(uint8_t host, std::optional<uint8_t> controller = {}) {
  AuthKeys keys{.host = test_secret(host), .controller = {}};
  if (controller) keys.controller = test_secret(*controller);
  return keys;
}

inline std::shared_ptr<AuthPolicy> test_policy(AuthKeys keys, AuthMeans means = {}) {
  auto policy = std::make_shared<AuthPolicy>();
  policy->hosts.emplace(kAuthHost, std::move(keys));
  policy->means = std::move(means);
  return policy;
}

inline AuthMeans only(AuthHash hash, AuthGroup group) {
  return {.hashes = {hash}, .groups = {group}};
}

// Both ends, and the messages between them as a test may change them.
class AuthPair {
 public:
  AuthPair(AuthKeys host, AuthKeys controller, AuthMeans host_means = {},
           AuthMeans controller_means = {})
      : responder(test_policy(std::move(controller), std::move(controller_means)), kAuthHost,
                  kAuthSubsystem),
        keys(std::move(host)),
        means(std::move(host_means)),
        draw(test_draw(0x11)),
        initiator({.keys = keys,
                   .means = means,
                   .names = {.host = kAuthHost, .subsystem = kAuthSubsystem},
                   .draw = draw}) {}

  // Each carries one message across, host's words first; the error is the host's.
  void negotiate() { send(initiator.negotiate(room)); }
  Result<void> challenge_and_reply() {
    const Bytes challenge = receive();
    return sent(initiator.reply(challenge, room));
  }
  Result<void> success() {
    const Bytes success = receive();
    return sent(initiator.finish(success, room));
  }
  // All of it.
  Result<void> run() {
    negotiate();
    if (Result<void> done = challenge_and_reply(); !done) return done;
    return success();
  }

  void send(size_t size) {
    if (size > 0) responder.take(MutableBytes(room).first(size), test_draw(0x22));
  }
  Bytes receive() {
    const size_t size = responder.give(gift);
    return MutableBytes(gift).first(size);
  }

  AuthResponder responder;
  AuthKeys keys;
  AuthMeans means;
  AuthDraw draw;
  AuthInitiator initiator;
  std::array<std::byte, kAuthMessageMax> room{};
  std::array<std::byte, kAuthMessageMax> gift{};

 private:
  Result<void> sent(const Result<size_t>& made) {
    if (made) return send(*made), Result<void>{};
    if (const auto size = initiator.failure(room)) send(*size);
    return fail(made.error());
  }
};

}  // namespace cairn::nvme
