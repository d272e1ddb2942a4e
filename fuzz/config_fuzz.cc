// SPDX-License-Identifier: Apache-2.0
// Any bytes as a configuration file, and as the kept changes of a box: accepted, or refused with a
// place in the file.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "apps/box/changes_text.h"
#include "apps/box/keys.h"
#include "apps/config.h"
#include "apps/settings.h"
#include "base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cairn::apps;
  Settings settings;
  BoxConfig box;
  Section root = settings_keys(settings);
  add_box_keys(root, box);
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Attempt<void> checked = check_config(text, "f.toml", root);
  CHECK(checked || checked.error().text.starts_with("f.toml:"));
  if (const Attempt<BoxChanges> changes = parse_changes(text, "f.toml")) {
    const std::string again = changes_text(*changes);
    const Attempt<BoxChanges> same = parse_changes(again, "f.toml");
    CHECK(same && changes_text(*same) == again);
  } else {
    CHECK(changes.error().text.starts_with("f.toml:"));
  }
  return 0;
}
