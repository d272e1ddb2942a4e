// SPDX-License-Identifier: Apache-2.0
// Any bytes as the messages of an authentication, at either end: no crash, no success without the
// key, and secrets that are read are written the same again.
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/bytes.h"
#include "base/check.h"
#include "nvme/auth/auth_initiator.h"
#include "nvme/auth/auth_responder.h"

namespace cairn::nvme {
namespace {

constexpr const char* kHost = "nqn.2014-08.org.nvmexpress:uuid:1";
constexpr const char* kSubsystem = "nqn.2026-11.io.cairn:test";

AuthSecret secret_of(uint8_t fill) {
  std::array<std::byte, 32> key{};
  key.fill(std::byte{fill});
  return AuthSecret::make({}, key);
}

AuthKeys keys_of(uint8_t fill) {
  return {.host = secret_of(fill), .controller = secret_of(static_cast<uint8_t>(fill + 1))};
}

AuthMeans cheap() { return {.hashes = AuthMeans{}.hashes, .groups = {AuthGroup::kNull}}; }

// Messages are a byte that says how long they are, in units of 4, and that many bytes.
Bytes next(Bytes& input) {
  if (input.empty()) return {};
  const size_t size = std::min<size_t>(std::to_integer<size_t>(input[0]) * 4, input.size() - 1);
  const Bytes message = input.subspan(1, size);
  input = input.subspan(1 + size);
  return message;
}

void fuzz_responder(Bytes input) {
  auto policy = std::make_shared<AuthPolicy>();
  policy->hosts.emplace(kHost, keys_of(1));
  policy->means = cheap();
  AuthResponder responder(policy, kHost, kSubsystem);
  std::array<std::byte, kAuthMessageMax> room{};
  while (!input.empty()) {
    const Bytes message = next(input);
    if (message.empty()) {
      CHECK(responder.give(room) <= room.size());
    } else {
      responder.take(message, AuthDraw{});
    }
    CHECK(!responder.take_success(), "nobody guesses a proof");
  }
}

void fuzz_initiator(Bytes input) {
  const AuthKeys keys = keys_of(3);
  const AuthMeans means = cheap();
  const AuthDraw draw;
  AuthInitiator initiator({.keys = keys,
                           .means = means,
                           .names = {.host = kHost, .subsystem = kSubsystem},
                           .draw = draw});
  std::array<std::byte, kAuthMessageMax> room{};
  CHECK(initiator.negotiate(room) == sizeof(AuthNegotiate) + sizeof(AuthProtocol));
  const Bytes challenge = next(input);
  if (const Result<size_t> reply = initiator.reply(challenge, room)) {
    CHECK(*reply <= room.size());
    CHECK(!initiator.finish(next(input), room), "nobody guesses a proof");
  }
}

void fuzz_secret(Bytes input) {
  const Result<AuthSecret> secret = AuthSecret::parse(as_text(input));
  if (secret) CHECK(secret->text() == as_text(input));
}

}  // namespace
}  // namespace cairn::nvme

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const cairn::Bytes input = std::as_bytes(std::span(data, size));
  if (input.empty()) return 0;
  const cairn::Bytes rest = input.subspan(1);
  switch (data[0] % 3) {
    case 0:
      cairn::nvme::fuzz_responder(rest);
      break;
    case 1:
      cairn::nvme::fuzz_initiator(rest);
      break;
    default:
      cairn::nvme::fuzz_secret(rest);
      break;
  }
  return 0;
}
