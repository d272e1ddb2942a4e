// SPDX-License-Identifier: Apache-2.0
// `cairn key inspect`: whether a file holds a TLS key, of which kind, and under which identity a
// host offers it. Shows nothing secret.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "apps/common/output.h"
#include "apps/key/commands.h"
#include "base/words.h"
#include "config/json_text.h"
#include "fabric/host/options.h"
#include "nvme/auth/tls_key.h"
#include "server/open/key_file.h"
#include "server/open/target_uri.h"

namespace cairn::apps {

namespace {

class InspectKeyCommand final : public Command {
 public:
  explicit InspectKeyCommand(CLI::App& app) {
    required(add_text(app, "FILE", file_, "a file with a TLS key, of mode 0600"));
    add_text(app, "--nqn NQN", nqn_, "also say the identity for this subsystem");
    add_text(app, "--hostnqn NQN", host_nqn_, "as this host (this machine's own name)");
    add_switch(app, "--json", json_, "print one JSON object instead of text");
    set_examples(app, {"cairn key inspect host.key",
                       "cairn key inspect host.key --nqn nqn.2026-11.io.cairn:box"});
  }

  Attempt<int> run() override {
    const Attempt<nvme::TlsKey> key = server::read_tls_key_file(file_);
    if (!key) return std::unexpected(key.error());
    nlohmann::ordered_json found = {
        {"schema_version", 1},
        {"file", file_},
        {"bytes", key->key().size()},
        {"hash", key->hash() == crypto::Hash::kSha256 ? "sha256" : "sha384"},
        {"bound_to_host", key->binding().has_value()}};
    std::string text = fmt::format("{}: a TLS key of {} bytes for {}, {}\n", file_,
                                   key->key().size(), found["hash"].get<std::string>(),
                                   key->binding() ? "bound to its host's name" : "used as it is");
    if (!nqn_.empty()) {
      const Attempt<void> named = add_identities(*key, found, text);
      if (!named) return std::unexpected(named.error());
    }
    say(json_ ? config::json_text(found) : text);
    return kExitOk;
  }

 private:
  Attempt<void> add_identities(const nvme::TlsKey& key, nlohmann::ordered_json& json,
                               std::string& text) {
    fabric::HostOptions host;
    host.host_nqn = host_nqn_;
    server::name_host_stably(server::gather_host(), host);
    json["host_nqn"] = host.host_nqn;
    json["nqn"] = nqn_;
    for (const auto version : {nvme::TlsIdentityVersion::k1, nvme::TlsIdentityVersion::k0}) {
      const Result<nvme::TlsPsk> psk =
          key.psk_of({.host = host.host_nqn, .subsystem = nqn_}, version);
      const int number = static_cast<int>(version);
      if (!psk && version == nvme::TlsIdentityVersion::k1) {
        return refuse(fmt::format("there is no identity: {}: use other names", psk.error().what()));
      }
      // Long names have none of version 0.
      json[fmt::format("identity_{}", number)] =
          psk ? nlohmann::ordered_json(psk->identity.text()) : nlohmann::ordered_json();
      if (psk) text += fmt::format("identity {}: {}\n", number, escaped(psk->identity.text()));
    }
    return {};
  }

  std::string file_;
  std::string nqn_;
  std::string host_nqn_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_key_inspect(CLI::App& app) {
  return std::make_unique<InspectKeyCommand>(app);
}

}  // namespace cairn::apps
