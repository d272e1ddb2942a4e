// SPDX-License-Identifier: Apache-2.0
#include "testing/worlds/encrypted.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "task/when_all.h"
#include "tls/context.h"
#include "tls/psk.h"
#include "tls/stream.h"

namespace cairn::conformance {

namespace {

tls::Psk test_key() {
  const std::vector<std::byte> key = pattern(32, 1);
  return {.identity = "conformance", .key = crypto::Digest(key)};
}

class OneKey final : public tls::PskKeeper {
 public:
  task::Task<Result<tls::Psk>> choose(std::vector<std::string>) override { co_return test_key(); }
};

}  // namespace

task::Task<Pair> encrypted(env::Env& env, Scene& scene, Pair plain) {
  const tls::Context client(tls::Role::kClient);
  const tls::Context server(tls::Role::kServer);
  OneKey keeper;
  auto a = std::make_unique<tls::TlsStream>(env, std::move(plain.a), client, test_key(),
                                            scene.lingering());
  auto b =
      std::make_unique<tls::TlsStream>(env, std::move(plain.b), server, keeper, scene.lingering());
  auto [connected, accepted] = co_await task::when_all(a->shake_hands(), b->shake_hands());
  must(connected);
  must(accepted);
  co_return Pair{std::move(a), std::move(b)};
}

}  // namespace cairn::conformance
