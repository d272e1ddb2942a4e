// SPDX-License-Identifier: Apache-2.0
// `cairn nvme gen-tls-key`: a new pre-shared key for TLS.
#include <fmt/format.h>

#include <optional>
#include <string>

#include "apps/nvme/key_maker.h"
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

class GenTlsKeyCommand final : public KeyMaker {
 public:
  explicit GenTlsKeyCommand(CLI::App& app) {
    add_value(app, "--hmac HASH", "1 or sha256 (the default), 2 or sha384; whose length it gets",
              [this](const std::string& text) -> Attempt<void> {
                const Attempt<crypto::Hash> hash = parse_hash(text);
                if (!hash) return std::unexpected(hash.error());
                hash_ = *hash;
                return {};
              });
    add_options(app, "--output,--out FILE");
    set_examples(app, {"cairn nvme gen-tls-key --output host.key",
                       "cairn nvme gen-tls-key --hmac 2 --output host.key"});
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

std::unique_ptr<Command> make_nvme_gen_tls_key(CLI::App& app) {
  return std::make_unique<GenTlsKeyCommand>(app);
}

}  // namespace cairn::apps
