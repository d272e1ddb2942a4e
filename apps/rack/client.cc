// SPDX-License-Identifier: Apache-2.0
#include "apps/rack/client.h"

#include <fmt/format.h>

#include "apps/common/command.h"

namespace cairn::apps {

RackClient::RackClient(CLI::App& app, const char* option) {
  value_optional(add_value(
      app, option,
      fmt::format(
          "where its metadata is: meta://ADDR:PORT, with ?tls_key=FILE&name=NAME through "
          "TLS, etcd://ADDR:PORT, with ?ca=FILE&cert=FILE&key=FILE likewise, or rocks:FOLDER ({})",
          server::kDefaultStore),
      [this](const std::string& text) -> Attempt<void> {
        if (text.empty() || text == "true") return {};  // without a value: the default
        const Attempt<server::StoreUri> uri = server::StoreUri::parse(text);
        if (!uri) return std::unexpected(uri.error());
        store_ = text;
        return {};
      }));
  add_number(app, "--timeout SECONDS", timeout_s_, 0.1, 86400, "how long to try (30)");
  add_switch(app, "--json", json_, "for programs");
}

}  // namespace cairn::apps
