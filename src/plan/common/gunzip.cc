// SPDX-License-Identifier: Apache-2.0
#include "plan/common/gunzip.h"

#include <fmt/format.h>
#include <isa-l/igzip_lib.h>

#include <algorithm>
#include <memory>

namespace cairn::plan {

Attempt<std::string> gunzip(std::string text, size_t size_max) {
  if (!text.starts_with("\x1f\x8b")) return text;
  const auto state = std::make_unique<inflate_state>();
  isal_inflate_init(state.get());
  state->crc_flag = ISAL_GZIP;
  state->next_in = reinterpret_cast<uint8_t*>(text.data());
  state->avail_in = static_cast<uint32_t>(text.size());
  std::string out;
  while (state->block_state != ISAL_BLOCK_FINISH) {
    const size_t before = out.size();
    if (before >= size_max) {
      return refuse(fmt::format("is larger than {} bytes when unpacked", size_max));
    }
    const size_t room = std::min(size_max - before, std::max<size_t>(before, 1 << 20));
    out.resize(before + room);
    state->next_out = reinterpret_cast<uint8_t*>(out.data() + before);
    state->avail_out = static_cast<uint32_t>(room);
    const int result = isal_inflate(state.get());
    out.resize(before + room - state->avail_out);
    const bool stuck =
        state->avail_in == 0 && state->block_state != ISAL_BLOCK_FINISH && state->avail_out == room;
    if (result != ISAL_DECOMP_OK || stuck) return refuse("is not a whole gzip file");
  }
  return out;
}

}  // namespace cairn::plan
