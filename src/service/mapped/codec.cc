// SPDX-License-Identifier: Apache-2.0
#include "service/mapped/codec.h"

#include <lz4.h>
#include <lz4hc.h>
#include <zstd.h>

#include <algorithm>

#include "base/check.h"

namespace cairn::drive {

namespace {

constexpr int kZstdLevelMax = 19;  // beyond, it wants windows that no chunk needs

struct FreeZstd {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
};

const char* chars(Bytes bytes) { return reinterpret_cast<const char*>(bytes.data()); }
char* chars(MutableBytes bytes) { return reinterpret_cast<char*>(bytes.data()); }

}  // namespace

std::optional<Codec> parse_codec(std::string_view name) {
  if (name == "lz4") return Codec::kLz4;
  if (name == "zstd") return Codec::kZstd;
  return std::nullopt;
}

int codec_level_max(Codec codec) {
  return codec == Codec::kLz4 ? LZ4HC_CLEVEL_MAX : codec == Codec::kZstd ? kZstdLevelMax : 0;
}

struct Compressor::State {
  std::unique_ptr<ZSTD_CCtx, FreeZstd> zstd;
};

Compressor::Compressor(Codec codec, int level)
    : codec_(codec), level_(level), state_(std::make_unique<State>()) {
  if (codec == Codec::kZstd) state_->zstd.reset(ZSTD_createCCtx());
  CHECK(codec != Codec::kZstd || state_->zstd != nullptr, "libzstd has memory");
}
Compressor::~Compressor() = default;

std::optional<size_t> Compressor::compress(Bytes from, MutableBytes to) {
  if (codec_ == Codec::kZstd) {
    const size_t size = ZSTD_compressCCtx(state_->zstd.get(), to.data(), to.size(), from.data(),
                                          from.size(), level_ == 0 ? ZSTD_CLEVEL_DEFAULT : level_);
    if (ZSTD_isError(size) != 0) return std::nullopt;
    return size;
  }
  if (codec_ != Codec::kLz4) return std::nullopt;
  const int in = static_cast<int>(from.size());
  const int out = static_cast<int>(to.size());
  const int size = level_ < 2 ? LZ4_compress_default(chars(from), chars(to), in, out)
                              : LZ4_compress_HC(chars(from), chars(to), in, out, level_);
  if (size <= 0) return std::nullopt;
  return static_cast<size_t>(size);
}

Result<void> decompress(Codec codec, Bytes from, MutableBytes to) {
  size_t size = SIZE_MAX;
  if (codec == Codec::kLz4) {
    const int got = LZ4_decompress_safe(chars(from), chars(to), static_cast<int>(from.size()),
                                        static_cast<int>(to.size()));
    if (got >= 0) size = static_cast<size_t>(got);
  } else if (codec == Codec::kZstd) {
    const size_t got = ZSTD_decompress(to.data(), to.size(), from.data(), from.size());
    if (ZSTD_isError(got) == 0) size = got;
  } else if (from.size() == to.size()) {
    std::ranges::copy(from, to.begin());
    size = from.size();
  }
  if (size != to.size()) return fail(Errc::kCorrupt, "a compressed chunk is damaged");
  return {};
}

}  // namespace cairn::drive
