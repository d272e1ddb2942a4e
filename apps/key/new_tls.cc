// SPDX-License-Identifier: Apache-2.0
// `cairn key new tls`: a new pre-shared key for TLS.
#include <fmt/format.h>

#include <optional>
#include <string>

#include "apps/key/commands.h"
#include "apps/key/key_maker.h"
#include "base/words.h"
#include "crypto/secret.h"
#include "nvme/auth/tls_key.h"

namespace cairn::apps {

namespace {

Attempt<crypto::Hash> parse_hash(const std::string& text) {
  if (text == "1" || text == "sha256") return crypto::Hash::kSha256;
  if (text == "2" || text == "sha384") return crypto::Hash::kSha384;
  return refuse(fmt::format("takes 1 (sha256) or 2 (sha384), not {}", in_quotes(text)));
}

class NewTlsKeyCommand final : public KeyMaker {
 public:
  explicit NewTlsKeyCommand(CLI::App& app) {
    add_value(app, "--hmac HASH", "1 or sha256 (the default), 2 or sha384; whose length it gets",
              [this](const std::string& text) -> Attempt<void> {
                const Attempt<crypto::Hash> hash = parse_hash(text);
                if (!hash) return std::unexpected(hash.error());
                hash_ = *hash;
                return {};
              });
    add_output(app);
    set_examples(app, {"cairn key new tls --output host.key",
                       "cairn key new tls --hmac 2 --output host.key"});
  }

 private:
  std::string make(env::Env& env) override {
    crypto::Digest key(crypto::digest_size(hash_));
    env.fill_secret(key.mutable_bytes());
    return nvme::TlsKey::make(hash_, key.bytes()).text();
  }

  crypto::Hash hash_ = crypto::Hash::kSha256;
};

}  // namespace

std::unique_ptr<Command> make_key_new_tls(CLI::App& app) {
  return std::make_unique<NewTlsKeyCommand>(app);
}

}  // namespace cairn::apps
