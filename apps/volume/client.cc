// SPDX-License-Identifier: Apache-2.0
#include "apps/volume/client.h"

#include <fmt/format.h>

#include "apps/common/command.h"
#include "apps/common/output.h"
#include "base/check.h"
#include "base/words.h"

namespace cairn::apps {

ArbiterClient::ArbiterClient(CLI::App& app, int timeout_s) : timeout_s_(timeout_s) {
  Attempt<server::ArbiterUri> usual = server::ArbiterUri::parse(server::default_arbiter());
  if (usual) uri_ = std::move(*usual);
  add_value(app, "--arbiter ADDRESS",
            "where the pool's arbiters are: ADDR:PORT or unix:SOCKET, several with commas between, "
            "with ?tls_key=FILE&name=NAME through TLS (this user's own)",
            [this](const std::string& text) -> Attempt<void> {
              Attempt<server::ArbiterUri> uri = server::ArbiterUri::parse(text);
              if (!uri) return std::unexpected(uri.error());
              uri_ = std::move(*uri);
              return {};
            });
  add_number(app, "--timeout SECONDS", timeout_s_, 0.1, 86400,
             fmt::format("how long to try ({})", timeout_s));
  add_switch(app, "--json", json_, "for programs");
}

void ArbiterClient::print(const nlohmann::ordered_json& json, std::string_view text) const {
  say(json_ ? config::json_text(json) : text);
}

Problem ArbiterClient::problem(const arbiter::Refusal& refusal) const {
  const std::string text = escaped(refusal.text);
  if (!refusal.is_unanswered) return {text};
  return {
      fmt::format("{} ({}): 'cairn arbiter status' says which arbiters run, 'cairn arbiter "
                  "--meta rocks:FOLDER' starts one",
                  text, uri_.servers_text())};
}

}  // namespace cairn::apps
