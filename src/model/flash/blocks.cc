// SPDX-License-Identifier: Apache-2.0
#include "model/flash/blocks.h"

#include <algorithm>

#include "base/check.h"

namespace cairn::flash {

namespace {

constexpr uint32_t kFrontiers = 3;
// The reference never collects more victims than this in a plane, and keeps as many blocks free.
constexpr uint32_t kMqsimVictims = 10;

}  // namespace

Reserve::Reserve(const Parameters& p, const Quirks& quirks) {
  const auto share = [&](double part) {
    return std::max(1U, static_cast<uint32_t>(part * p.blocks_per_plane));
  };
  const auto streams = static_cast<uint32_t>(p.streams.size());
  start = share(p.gc_threshold);
  urgent = share(p.gc_hard_threshold);
  if (quirks.collects_ten_at_once()) {
    victims_at_once = kMqsimVictims;
    stop = kMqsimVictims;
    start = std::max(start, kMqsimVictims);
    return;
  }
  // A collection may open a collector and a translation block per stream before it frees one.
  // Collecting early costs spare space, so never more than half of it is kept free.
  const auto spare = static_cast<uint32_t>(p.over_provisioning * p.blocks_per_plane);
  victims_at_once = 1;
  stop = 2 * streams + 1;
  const uint32_t half = spare > 3 * streams ? (spare - 3 * streams) / 2 : 0;
  start = std::max(stop + 1, std::min(start, half));
  urgent = std::clamp(urgent, stop + 1, start);
}

Blocks::Blocks(const Parameters& parameters, const Geometry& geometry)
    : geometry_(geometry),
      by_wear_(parameters.dynamic_wear_levelling),
      keep_history_(parameters.gc_policy == GcPolicy::kFifo),
      words_((geometry.pages() + 63) / 64),
      blocks_(size_t{geometry.planes()} * geometry.blocks()),
      invalid_bits_(size_t{geometry.planes()} * geometry.blocks() * words_),
      owner_plus_one_(size_t{geometry.planes()} * geometry.blocks() * geometry.pages()),
      planes_(geometry.planes()) {
  for (uint32_t plane = 0; plane < geometry.planes(); ++plane) {
    for (uint32_t stream = 0; stream < parameters.streams.size(); ++stream) {
      for (uint32_t frontier = 0; frontier < kFrontiers; ++frontier) {
        const bool mapping = frontier == static_cast<uint32_t>(Frontier::kTranslation);
        planes_[plane].frontiers.push_back(open(plane, stream, mapping));
      }
    }
  }
}

uint32_t Blocks::open(uint32_t plane, uint32_t stream, bool mapping) {
  Plane& p = planes_[plane];
  uint32_t block = 0;
  if (p.fresh < geometry_.blocks()) {
    block = plane * geometry_.blocks() + p.fresh++;
  } else {
    CHECK(!p.pool.empty(), "the collector keeps a free block for every frontier");
    std::pop_heap(p.pool.begin(), p.pool.end());
    block = p.pool.back().block;
    p.pool.pop_back();
  }
  blocks_[block].stream = static_cast<uint8_t>(stream);
  blocks_[block].mapping = mapping;
  if (keep_history_) p.history.push_back(block);
  return block;
}

uint32_t Blocks::allocate(uint32_t plane, uint32_t stream, Frontier frontier, bool& filled) {
  Plane& p = planes_[plane];
  uint32_t& front = p.frontiers[stream * kFrontiers + static_cast<uint32_t>(frontier)];
  Block& block = blocks_[front];
  const uint32_t ppa = front * geometry_.pages() + block.written++;
  ++p.valid;
  if (frontier != Frontier::kCollector) ++block.programs;
  filled = block.written == geometry_.pages();
  if (filled) front = open(plane, stream, frontier == Frontier::kTranslation);
  return ppa;
}

void Blocks::invalidate(uint32_t ppa) {
  const uint32_t block = geometry_.block_of(ppa);
  uint64_t& word = invalid_bits_[word_of(ppa)];
  const uint64_t bit = uint64_t{1} << (geometry_.page_of(ppa) % 64);
  CHECK((word & bit) == 0, "a flash page is invalidated once");
  word |= bit;
  ++blocks_[block].invalid;
  --planes_[geometry_.plane_of_block(block)].valid;
}

void Blocks::revalidate(uint32_t ppa) {
  const uint32_t block = geometry_.block_of(ppa);
  uint64_t& word = invalid_bits_[word_of(ppa)];
  const uint64_t bit = uint64_t{1} << (geometry_.page_of(ppa) % 64);
  CHECK((word & bit) != 0, "only an invalid page can be brought back");
  word &= ~bit;
  --blocks_[block].invalid;
  ++planes_[geometry_.plane_of_block(block)].valid;
}

void Blocks::settle() {
  for (size_t i = 0; i < blocks_.size(); ++i) {
    Block& block = blocks_[i];
    block.programs = block.reads = block.pins = 0;
    block.collecting = false;
  }
  for (Plane& plane : planes_) {
    for (const uint32_t block : plane.ongoing) {
      if (keep_history_ && std::ranges::find(plane.history, block) == plane.history.end()) {
        plane.history.push_front(block);
      }
    }
    plane.ongoing.clear();
  }
}

uint32_t Blocks::fill_block(uint32_t plane, uint32_t stream, uint32_t valid) {
  Plane& p = planes_[plane];
  uint32_t& front = p.frontiers[stream * kFrontiers];
  Block& block = blocks_[front];
  CHECK(block.written == 0, "preconditioning fills whole blocks");
  const uint32_t first = front * geometry_.pages();
  block.written = geometry_.pages();
  block.invalid = geometry_.pages() - valid;
  for (uint32_t page = valid; page < geometry_.pages(); ++page) {
    invalid_bits_[word_of(first + page)] |= uint64_t{1} << (page % 64);
  }
  p.valid += valid;
  front = open(plane, stream, false);
  return first;
}

void Blocks::erased(uint32_t index) {
  Plane& p = planes_[geometry_.plane_of_block(index)];
  Block& block = blocks_[index];
  const size_t first = size_t{index} * words_;
  for (size_t i = first; i < first + words_; ++i) invalid_bits_[i] = 0;
  block = Block{.written = 0,
                .invalid = 0,
                .erases = block.erases + 1,
                .programs = block.programs,
                .reads = block.reads,
                .pins = 0,
                .stream = 0,
                .mapping = false,
                .collecting = false};
  p.pool.push_back({by_wear_ ? block.erases : 0, order_++, index});
  std::push_heap(p.pool.begin(), p.pool.end());
}

bool Blocks::is_frontier(uint32_t block) const {
  const Plane& p = planes_[geometry_.plane_of_block(block)];
  return std::ranges::find(p.frontiers, block) != p.frontiers.end();
}

uint32_t Blocks::coldest(uint32_t plane) const {
  const uint32_t first = plane * geometry_.blocks();
  uint32_t best = first;
  for (uint32_t block = first + 1; block < first + geometry_.blocks(); ++block) {
    if (blocks_[block].erases < blocks_[best].erases) best = block;
  }
  return best;
}

uint32_t Blocks::hottest(uint32_t plane) const {
  const uint32_t first = plane * geometry_.blocks();
  uint32_t best = first;
  for (uint32_t block = first + 1; block < first + geometry_.blocks(); ++block) {
    if (blocks_[block].erases > blocks_[best].erases) best = block;
  }
  return best;
}

}  // namespace cairn::flash
