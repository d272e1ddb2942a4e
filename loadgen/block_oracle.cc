// SPDX-License-Identifier: Apache-2.0
#include "loadgen/block_oracle.h"

#include <algorithm>

#include "base/check.h"
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
// Then one for each block, then the CRC32C of all before it.
struct Record {
  uint32_t issued;
  uint32_t acknowledged;
  uint32_t durable;
};

template <class T>
void append(std::vector<std::byte>& to, const T& value) {
  const size_t at = to.size();
  to.resize(at + sizeof value);
  store(MutableBytes(to).subspan(at), value);
}

}  // namespace

BlockOracle::BlockOracle(uint64_t seed, Lba first, uint64_t blocks)
    : seed_(seed), first_(first), states_(blocks) {}

bool BlockOracle::claim(Lba lba, uint64_t blocks) {
  const auto range = std::span(&state(lba), blocks);
  if (std::ranges::any_of(range, &State::is_claimed)) return false;
  for (State& each : range) each.is_claimed = true;
  return true;
}

void BlockOracle::release(Lba lba, uint64_t blocks) {
  for (State& each : std::span(&state(lba), blocks)) each.is_claimed = false;
}

uint32_t BlockOracle::write_begins(Lba lba) { return ++state(lba).issued; }

void BlockOracle::write_acknowledged(Lba lba, bool is_durable) {
  State& block = state(lba);
  block.durable = is_durable ? block.issued : durable(block);
  block.acknowledged = block.issued;
  block.epoch = epoch_;
}

void BlockOracle::flush_done(uint64_t flush) { flushed_ = std::max(flushed_, flush); }

Allowed BlockOracle::allowed(Lba lba) const {
  return {.low = state(lba).acknowledged, .high = state(lba).issued};
}

Allowed BlockOracle::allowed_after_crash(Lba lba) const {
  return {.low = durable(state(lba)), .high = state(lba).issued};
}

std::vector<std::byte> BlockOracle::save() const {
  std::vector<std::byte> bytes;
  bytes.reserve(sizeof(Header) + states_.size() * sizeof(Record) + sizeof(uint32_t));
  append(bytes, Header{kMagic, seed_, first_.value(), states_.size()});
  for (const State& each : states_) {
    append(bytes, Record{each.issued, each.acknowledged, durable(each)});
  }
  append(bytes, crc32c(bytes));
  return bytes;
}

Result<BlockOracle> BlockOracle::load(Bytes bytes) {
  if (bytes.size() < sizeof(Header)) return fail(Errc::kInvalid, "a saved oracle is cut short");
  const auto header = cairn::load<Header>(bytes);
  if (header.magic != kMagic) return fail(Errc::kInvalid, "this is no saved oracle");
  const uint64_t body = bytes.size() - sizeof header;
  if (header.blocks > kBlocksMax || body != header.blocks * sizeof(Record) + sizeof(uint32_t)) {
    return fail(Errc::kInvalid, "a saved oracle is cut short");
  }
  const size_t checked = bytes.size() - sizeof(uint32_t);
  if (crc32c(bytes.first(checked)) != cairn::load<uint32_t>(bytes.subspan(checked))) {
    return fail(Errc::kCorrupt, "a saved oracle is damaged");
  }
  BlockOracle oracle(header.seed, Lba(header.first), header.blocks);
  Bytes rest = bytes.subspan(sizeof header);
  for (State& each : oracle.states_) {
    const auto record = cairn::load<Record>(rest);
    each.issued = record.issued;
    each.acknowledged = record.acknowledged;
    each.durable = record.durable;
    rest = rest.subspan(sizeof record);
  }
  return oracle;
}

}  // namespace cairn::loadgen
