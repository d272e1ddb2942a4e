// SPDX-License-Identifier: Apache-2.0
// Any bytes as a drive's profile: a drive that passes its check, or a refusal that says something.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "plan/flash/flash_profile.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cairn::plan;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto profile = parse_flash_profile(text)) {
    CHECK(!cairn::flash::check(*profile));
  } else {
    CHECK(!profile.error().text.empty());
  }
  return 0;
}
