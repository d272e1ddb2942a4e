// SPDX-License-Identifier: Apache-2.0
// HTTP/1.1 responses as bytes (RFC 9112): the head, and where a chunked body keeps its data.
//
// Everything has a limit and lines end with CR LF; what is not so is kCorrupt. Of the fields only
// those are read that say where the body ends and what it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/error.h"

namespace cairn::http {

inline constexpr size_t kHeadMax = 16384;
inline constexpr size_t kEtagMax = 256;
inline constexpr size_t kChunkExtensionMax = 256;
inline constexpr size_t kTrailersMax = 8192;

// "bytes 0-4095/65536": which part of an object the body is.
struct ContentRange {
  uint64_t first = 0;
  uint64_t last = 0;              // not before first
  std::optional<uint64_t> total;  // none: the server does not say
  friend bool operator==(const ContentRange&, const ContentRange&) = default;
};

struct ResponseHead {
  size_t size = 0;  // of the head itself, with the empty line
  uint16_t status = 0;
  bool keep_alive = true;
  bool is_chunked = false;
  std::optional<uint64_t> length;  // none and not chunked: the body ends with the connection
  std::string etag;                // with its quotes; empty: there is none
  std::optional<ContentRange> range;
};

// None: more bytes are needed. kCorrupt: no such head, or a longer one than kHeadMax.
// kUnsupported: another version of HTTP, or a body that is encoded.
Result<std::optional<ResponseHead>> parse_head(Bytes bytes);

// Takes the framing off a chunked body as it arrives, in pieces of any size.
class ChunkedBody {
 public:
  // Moves `from` past framing and the data that follows, and returns that data; empty when more
  // bytes are needed or the body is over. kCorrupt: the framing is wrong; use it no more.
  Result<Bytes> take(Bytes& from);
  bool is_over() const { return state_ == State::kOver; }

 private:
  enum class State : uint8_t {
    kSize,
    kExtension,
    kSizeEnd,  // the LF after it
    kData,
    kDataReturn,
    kDataEnd,
    kTrailer,      // at the start of a line
    kTrailerLine,  // inside one
    kTrailerLineEnd,
    kLastEnd,  // the LF of the empty line
    kOver,
  };
  bool step(uint8_t byte);
  bool step_size(uint8_t byte);
  bool count(size_t max) { return ++counted_ <= max; }

  State state_ = State::kSize;
  uint64_t left_ = 0;   // of the chunk
  size_t counted_ = 0;  // digits, bytes of an extension, or bytes of trailers
};

}  // namespace cairn::http
