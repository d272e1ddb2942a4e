// SPDX-License-Identifier: Apache-2.0
// Any bytes as a configuration file, and as a server's kept changes: accepted, or refused with a
// place in the file.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "config/config.h"
#include "config/settings.h"
#include "server/config/changes_text.h"
#include "server/config/keys.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cairn;
  config::Settings settings;
  server::ServerConfig server;
  config::Section root = config::settings_keys(settings);
  server::add_server_keys(root, server);
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Attempt<void> checked = config::check_config(text, "f.toml", root);
  CHECK(checked || checked.error().text.starts_with("f.toml:"));
  if (const Attempt<server::ServerChanges> changes = server::parse_changes(text, "f.toml")) {
    const std::string again = server::changes_text(*changes);
    const Attempt<server::ServerChanges> same = server::parse_changes(again, "f.toml");
    CHECK(same && server::changes_text(*same) == again);
  } else {
    CHECK(changes.error().text.starts_with("f.toml:"));
  }
  return 0;
}
