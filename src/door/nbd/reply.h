// SPDX-License-Identifier: Apache-2.0
// What replies are made of.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/bytes.h"
#include "base/error.h"
#include "door/nbd/wire_format.h"

namespace cairn::door::nbd {

// What a client is told about our error.
NbdError nbd_error(Errc code);

inline ChunkHeader chunk(uint64_t cookie, ChunkType type, uint32_t length, bool is_last) {
  return {.flags = is_last ? kChunkDone : uint16_t{0},
          .type = static_cast<uint16_t>(type),
          .cookie = cookie,
          .length = length};
}

// The last chunk of a reply that failed, with a sentence for whoever reads the client's log.
class ErrorReply {
 public:
  ErrorReply(uint64_t cookie, NbdError error, std::string_view why)
      : why_(why),
        head_{chunk(cookie, ChunkType::kError, sizeof(ChunkError) + size(), true),
              {.error = static_cast<uint32_t>(error),
               .message_length = static_cast<uint16_t>(size())}} {}
  Bytes head() const { return bytes_of(head_); }
  Bytes text() const { return as_bytes(why_); }

 private:
  struct Head {
    ChunkHeader chunk;
    ChunkError error;
  };
  uint32_t size() const { return static_cast<uint32_t>(why_.size()); }
  std::string_view why_;
  Head head_;
};

// Whether all bytes are zero.
bool is_zero(Bytes bytes);

}  // namespace cairn::door::nbd
