// SPDX-License-Identifier: Apache-2.0
// `cairn nvme gen-tls-key`: a new pre-shared key for TLS.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "apps/key_file.h"
#include "apps/nvme/commands.h"
#include "apps/nvme/connect.h"
#include "apps/output.h"
#include "apps/words.h"
#include "crypto/secret.h"
#include "nvme/tls_key.h"

namespace cairn::apps {

namespace {

Attempt<crypto::Hash> parse_hash(const std::string& text) {
  if (text == "1" || text == "sha256") return crypto::Hash::kSha256;
  if (text == "2" || text == "sha384") return crypto::Hash::kSha384;
  return refuse(fmt::format("takes 1 (sha256) or 2 (sha384), not {}", in_quotes(text)));
}

class GenTlsKeyCommand final : public Command {
 public:
  explicit GenTlsKeyCommand(CLI::App& app) {
    add_value(app, "--hmac HASH", "1 or sha256 (the default), 2 or sha384; whose length it gets",
              [this](const std::string& text) -> Attempt<void> {
                const Attempt<crypto::Hash> hash = parse_hash(text);
                if (!hash) return std::unexpected(hash.error());
                hash_ = *hash;
                return {};
              });
    add_value(app, "--output,--out FILE",
              "write it to a new file of mode 0600 instead of printing it",
              [this](const std::string& text) -> Attempt<void> {
                output_ = text;
                return {};
              });
    add_settings(app, options_.settings);
    set_examples(app, {"cairn nvme gen-tls-key --output host.key",
                       "cairn nvme gen-tls-key --hmac 2 --output host.key"});
  }

  Attempt<int> run() override {
    std::string text;
    const Attempt<void> ran =
        run_in_world(options_, [&](env::Env& env) { return make(env, text); });
    if (!ran) return std::unexpected(ran.error());
    const Attempt<int> kept = hand_over_key(text, output_);
    crypto::wipe(std::as_writable_bytes(std::span(text)));
    return kept;
  }

 private:
  task::Task<Attempt<void>> make(env::Env& env, std::string& text) {
    crypto::Digest key(crypto::digest_size(hash_));
    env.fill_secret(key.mutable_bytes());
    text = nvme::TlsKey::make(hash_, key.bytes()).text() + "\n";
    co_return Attempt<void>{};
  }

  NvmeOptions options_;
  crypto::Hash hash_ = crypto::Hash::kSha256;
  std::string output_;
};

}  // namespace

std::unique_ptr<Command> make_nvme_gen_tls_key(CLI::App& app) {
  return std::make_unique<GenTlsKeyCommand>(app);
}

}  // namespace cairn::apps
