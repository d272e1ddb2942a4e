// SPDX-License-Identifier: Apache-2.0
#include "apps/common/client_keys.h"

#include <utility>

#include "rack/client_keys.h"
#include "server/open/key_file.h"

namespace cairn::apps {

void add_client_keys(CLI::App& app, std::string help,
                     std::shared_ptr<const rpc::ClientKeys>& into) {
  add_value(
      app, "--tls-keys FILE", std::move(help), [&into](const std::string& text) -> Attempt<void> {
        Attempt<rpc::ClientKeys> keys = server::read_client_keys(text, &rack::parse_client_keys);
        if (!keys) return std::unexpected(keys.error());
        into = std::make_shared<const rpc::ClientKeys>(std::move(*keys));
        return {};
      });
}

}  // namespace cairn::apps
