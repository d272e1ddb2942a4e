// SPDX-License-Identifier: Apache-2.0
// Any bytes as a configuration file: accepted, or refused with a place in the file.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "apps/config.h"
#include "apps/settings.h"
#include "base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cairn::apps;
  Settings settings;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Attempt<void> checked = check_config(text, "f.toml", settings_keys(settings));
  CHECK(checked || checked.error().text.starts_with("f.toml:"));
  return 0;
}
