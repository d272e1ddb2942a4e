// SPDX-License-Identifier: Apache-2.0
#include "loadgen/block_pattern.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/rng.h"

namespace cairn::loadgen {

namespace {

constexpr uint64_t kMagic = 0x6b636f6c62206e63;  // "cn block"
constexpr size_t kWord = sizeof(uint64_t);
constexpr size_t kHeaderWords = 4;

// The stamp in the clear, then words that depend on all of it.
class Words {
 public:
  explicit Words(const BlockStamp& stamp)
      : stamp_(stamp),
        base_(mix64(stamp.seed ^ mix64(stamp.lba.value() ^ mix64(stamp.generation)))) {}
  uint64_t at(size_t index) const {
    switch (index) {
      case 0:
        return kMagic;
      case 1:
        return stamp_.seed;
      case 2:
        return stamp_.lba.value();
      case 3:
        return stamp_.generation;
      default:
        return mix64(base_ + index);
    }
  }

 private:
  BlockStamp stamp_;
  uint64_t base_;
};

// What the header says, sound or not.
std::optional<BlockStamp> read_header(Bytes block) {
  if (block.size() < kHeaderWords * kWord || load<uint64_t>(block) != kMagic) return std::nullopt;
  const auto generation = load<uint64_t>(block.subspan(3 * kWord));
  if (generation == 0 || generation > UINT32_MAX) return std::nullopt;
  return BlockStamp{.seed = load<uint64_t>(block.subspan(kWord)),
                    .lba = Lba(load<uint64_t>(block.subspan(2 * kWord))),
                    .generation = static_cast<uint32_t>(generation)};
}

// Where the contents cease to be those of `stamp`; the size when they do not.
size_t first_difference(Bytes block, const BlockStamp& stamp) {
  const Words words(stamp);
  for (size_t i = 0; i < block.size() / kWord; ++i) {
    if (load<uint64_t>(block.subspan(i * kWord)) != words.at(i)) return i * kWord;
  }
  return block.size();
}

}  // namespace

void fill_block(MutableBytes block, const BlockStamp& stamp) {
  CHECK(block.size() >= 512 && block.size() % kWord == 0);
  const Words words(stamp);
  for (size_t i = 0; i < block.size() / kWord; ++i) {
    store(block.subspan(i * kWord), words.at(i));
  }
}

std::optional<BlockStamp> read_stamp(Bytes block) {
  const std::optional<BlockStamp> stamp = read_header(block);
  if (!stamp || first_difference(block, *stamp) != block.size()) return std::nullopt;
  return stamp;
}

bool bears_seed(Bytes block, uint64_t seed) {
  const std::optional<BlockStamp> stamp = read_header(block);
  return stamp && stamp->seed == seed;
}

std::string describe_block(Bytes block, const BlockStamp& expected) {
  const std::optional<BlockStamp> stamp = read_header(block);
  if (!stamp) {
    const bool is_zero = std::ranges::all_of(block, [](std::byte b) { return b == std::byte{0}; });
    return is_zero ? "zeroes" : "bytes that no verify has written";
  }
  const bool is_here = stamp->lba == expected.lba;
  std::string text =
      fmt::format("generation {} of {}", stamp->generation,
                  is_here ? "this block" : fmt::format("block {}", stamp->lba.value()));
  if (stamp->seed != expected.seed) text += fmt::format(" of a run with seed {}", stamp->seed);
  const size_t until = first_difference(block, *stamp);
  if (until != block.size()) text += fmt::format(", damaged from byte {} on", until);
  return text;
}

}  // namespace cairn::loadgen
