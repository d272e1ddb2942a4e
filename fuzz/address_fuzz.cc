// SPDX-License-Identifier: Apache-2.0
// Any text is an address or a clear refusal, and what is read prints as what reads the same.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "env/address.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const cairn::Result<cairn::env::Address> address = cairn::env::Address::parse(text);
  if (!address) return 0;
  const cairn::Result<cairn::env::Address> again = cairn::env::Address::parse(address->text());
  CHECK(again.has_value());
  CHECK(*again == *address);
  return 0;
}
