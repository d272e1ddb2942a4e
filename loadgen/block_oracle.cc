// SPDX-License-Identifier: Apache-2.0
#include "loadgen/block_oracle.h"

#include <algorithm>

#include "base/check.h"
#include "loadgen/block_oracle_format.h"

namespace cairn::loadgen {

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
  SavedOracle saved{.seed = seed_, .first = first_.value(), .blocks = {}};
  saved.blocks.reserve(states_.size());
  for (const State& each : states_) {
    saved.blocks.push_back(
        {.issued = each.issued, .acknowledged = each.acknowledged, .durable = durable(each)});
  }
  return encode_oracle(saved);
}

Result<BlockOracle> BlockOracle::load(Bytes bytes) {
  const Result<SavedOracle> saved = decode_oracle(bytes);
  if (!saved) return fail(saved.error());
  BlockOracle oracle(saved->seed, Lba(saved->first), saved->blocks.size());
  for (size_t i = 0; i < saved->blocks.size(); ++i) {
    oracle.states_[i].issued = saved->blocks[i].issued;
    oracle.states_[i].acknowledged = saved->blocks[i].acknowledged;
    oracle.states_[i].durable = saved->blocks[i].durable;
  }
  return oracle;
}

}  // namespace cairn::loadgen
