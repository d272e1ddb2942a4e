// SPDX-License-Identifier: Apache-2.0
#include "config/bytes_text.h"

#include <fmt/format.h>

#include "base/words.h"
#include "drive/source.h"

namespace cairn::config {

Attempt<uint64_t> parse_bytes(const std::string& text) {
  uint64_t size = 0;
  if (drive::parse_size(text, size)) return size;
  return refuse(fmt::format("takes bytes such as 4096, 64K or 1G, not {}", in_quotes(text)));
}

}  // namespace cairn::config
