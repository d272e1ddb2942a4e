// SPDX-License-Identifier: Apache-2.0
// `cairn key new auth`: a new DH-HMAC-CHAP secret.
#include <fmt/format.h>

#include <optional>
#include <utility>

#include "apps/key/commands.h"
#include "apps/key/key_maker.h"
#include "base/words.h"
#include "crypto/secret.h"
#include "nvme/auth/auth_message.h"
#include "nvme/auth/auth_secret.h"
#include "nvme/format/nqn.h"

namespace cairn::apps {

namespace {

class NewAuthKeyCommand final : public KeyMaker {
 public:
  explicit NewAuthKeyCommand(CLI::App& app) {
    add_value(
        app, "--hmac HASH",
        "bind the key to its owner's NQN with sha256, sha384 or sha512, whose length it gets",
        [this](const std::string& text) -> Attempt<void> {
          hash_ = nvme::parse_auth_hash(text);
          if (hash_) return {};
          return refuse(fmt::format("{} is not one of sha256, sha384, sha512", in_quotes(text)));
        });
    add_value(app, "--nqn NQN", "mix the owner's name into the new key",
              [this](const std::string& text) -> Attempt<void> {
                if (text.empty() || text.size() > nvme::kNqnMax) {
                  return refuse(fmt::format("{} is no NQN", in_quotes(text)));
                }
                nqn_ = text;
                return {};
              });
    add_output(app);
    set_examples(app, {"cairn key new auth --output host.key",
                       "cairn key new auth --hmac sha512 --output controller.key"});
  }

 private:
  std::string make(env::Env& env) override {
    const nvme::AuthHash hash = hash_.value_or(nvme::AuthHash::kSha256);
    crypto::Digest key(nvme::size_of(hash));
    env.fill_secret(key.mutable_bytes());
    if (!nqn_.empty()) key = nvme::bind_to_name(hash, key.bytes(), nqn_);
    return nvme::AuthSecret::make(hash_, key.bytes()).text();
  }

  std::optional<nvme::AuthHash> hash_;
  std::string nqn_;
};

}  // namespace

std::unique_ptr<Command> make_key_new_auth(CLI::App& app) {
  return std::make_unique<NewAuthKeyCommand>(app);
}

}  // namespace cairn::apps
