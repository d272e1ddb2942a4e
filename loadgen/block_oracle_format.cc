// SPDX-License-Identifier: Apache-2.0
#include "loadgen/block_oracle_format.h"

#include <algorithm>
#include <span>

#include "base/crc32c.h"

namespace cairn::loadgen {

namespace {

constexpr uint64_t kMagic = 0x31656c6361726f63;  // "coracle1": the form and its version
constexpr uint64_t kBlocksMax = uint64_t{1} << 32;

struct Header {
  uint64_t magic;
  uint64_t seed;
  uint64_t first;
  uint64_t blocks;
};
static_assert(sizeof(Header) == 32 && sizeof(SavedBlock) == 12);

}  // namespace

std::vector<std::byte> encode_oracle(const SavedOracle& oracle) {
  const Bytes blocks = std::as_bytes(std::span(oracle.blocks));
  std::vector<std::byte> bytes(sizeof(Header));
  store(bytes, Header{.magic = kMagic,
                      .seed = oracle.seed,
                      .first = oracle.first,
                      .blocks = oracle.blocks.size()});
  bytes.insert(bytes.end(), blocks.begin(), blocks.end());
  const uint32_t checksum = crc32c(bytes);
  bytes.resize(bytes.size() + sizeof checksum);
  store(MutableBytes(bytes).last(sizeof checksum), checksum);
  return bytes;
}

Result<SavedOracle> decode_oracle(Bytes bytes) {
  if (bytes.size() < sizeof(Header)) return fail(Errc::kInvalid, "a saved oracle is cut short");
  const auto header = load<Header>(bytes);
  if (header.magic != kMagic) return fail(Errc::kInvalid, "this is no saved oracle");
  const uint64_t body = bytes.size() - sizeof header;
  if (header.blocks > kBlocksMax || body != header.blocks * sizeof(SavedBlock) + sizeof(uint32_t)) {
    return fail(Errc::kInvalid, "a saved oracle is cut short");
  }
  const size_t checked = bytes.size() - sizeof(uint32_t);
  if (crc32c(bytes.first(checked)) != load<uint32_t>(bytes.subspan(checked))) {
    return fail(Errc::kCorrupt, "a saved oracle is damaged");
  }
  SavedOracle oracle{.seed = header.seed, .first = header.first, .blocks = {}};
  oracle.blocks.resize(header.blocks);
  std::ranges::copy(bytes.subspan(sizeof header, header.blocks * sizeof(SavedBlock)),
                    std::as_writable_bytes(std::span(oracle.blocks)).begin());
  return oracle;
}

}  // namespace cairn::loadgen
