// SPDX-License-Identifier: Apache-2.0
// Compression of chunks: lz4, zstd, or none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "base/bytes.h"
#include "base/error.h"

namespace cairn::drive {

// Numbers are part of formats.
enum class Codec : uint8_t { kNone = 0, kLz4 = 1, kZstd = 2 };

// "lz4", "zstd".
std::optional<Codec> parse_codec(std::string_view name);
// The highest level; 0, the default, is right for each.
int codec_level_max(Codec codec);

// Keeps the memory of one codec, for one core.
class Compressor {
 public:
  Compressor(Codec codec, int level);
  ~Compressor();
  Compressor(const Compressor&) = delete;
  Compressor& operator=(const Compressor&) = delete;

  Codec codec() const { return codec_; }
  // How many bytes of `to` hold `from`; none: they do not fit.
  std::optional<size_t> compress(Bytes from, MutableBytes to);

 private:
  struct State;
  const Codec codec_;
  const int level_;
  std::unique_ptr<State> state_;
};

// `from` becomes all of `to`. kCorrupt: it is not that; it may come from anybody.
Result<void> decompress(Codec codec, Bytes from, MutableBytes to);

}  // namespace cairn::drive
