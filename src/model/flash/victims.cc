// SPDX-License-Identifier: Apache-2.0
#include "model/flash/victims.h"

#include <algorithm>
#include <bit>
#include <vector>

namespace cairn::flash {

namespace {

// The reference's collector draws from this seed, whatever its configuration says.
constexpr uint32_t kReferenceSeed = 432;

}  // namespace

Victims::Victims(Shared& shared)
    : parameters_(shared.parameters),
      quirks_(shared.quirks),
      geometry_(shared.geometry),
      reserve_(shared.reserve),
      blocks_(shared.blocks),
      rng_(parameters_.seed),
      reference_rng_(kReferenceSeed),
      choices_(std::max(1, static_cast<int>(std::bit_width(parameters_.blocks_per_plane)) - 1)) {}

uint32_t Victims::choose(uint32_t plane) {
  switch (parameters_.gc_policy) {
    case GcPolicy::kGreedy:
      return greedy(plane);
    case GcPolicy::kRga:
      return among_random(plane);
    case GcPolicy::kRandom:
      return random(plane, 0, false);
    case GcPolicy::kRandomP:
      return random(plane, 0, true);
    case GcPolicy::kRandomPp:
      return random(plane, parameters_.random_pp_invalid_pages, true);
    case GcPolicy::kFifo:
      return oldest(plane);
  }
  return kNone;
}

uint32_t Victims::oldest(uint32_t plane) {
  auto& history = blocks_.history(plane);
  for (size_t i = history.size(); i > 0; --i) {
    const uint32_t block = history.front();
    history.pop_front();
    if (quirks_.takes_unsafe_victims()) return block;
    if (blocks_.safe_victim(block) && blocks_[block].written == geometry_.pages()) {
      if (blocks_[block].invalid > 0) return block;
    }
    // One that was opened and has no page yet stays, too; a free one comes back when opened.
    if (blocks_[block].written > 0 || blocks_.is_frontier(block)) history.push_back(block);
  }
  return kNone;
}

uint32_t Victims::greedy(uint32_t plane) {
  if (quirks_.takes_unsafe_victims()) return reference_greedy(plane);
  const uint32_t first = plane * geometry_.blocks();
  uint32_t best = kNone;
  for (uint32_t block = first; block < first + geometry_.blocks(); ++block) {
    const Block& b = blocks_[block];
    if (b.written != geometry_.pages() || b.invalid == 0) continue;
    if (best != kNone && b.invalid <= blocks_[best].invalid) continue;
    if (blocks_.safe_victim(block)) best = block;
  }
  return best;
}

// Starts from block 0, safe or not.
uint32_t Victims::reference_greedy(uint32_t plane) {
  const uint32_t first = plane * geometry_.blocks();
  uint32_t best = first;
  if (std::ranges::count(blocks_.ongoing(plane), best) > 0) ++best;
  for (uint32_t block = first + 1; block < first + geometry_.blocks(); ++block) {
    const Block& b = blocks_[block];
    if (b.invalid > blocks_[best].invalid && b.written == geometry_.pages() &&
        blocks_.safe_victim(block)) {
      best = block;
    }
  }
  return best;
}

// Randomised greedy: the best of a few blocks drawn at random.
uint32_t Victims::among_random(uint32_t plane) {
  const uint32_t first = plane * geometry_.blocks();
  std::vector<uint32_t> drawn;
  for (uint32_t tries = 0; drawn.size() < choices_ && tries < 64 * geometry_.blocks(); ++tries) {
    const uint32_t block = first + static_cast<uint32_t>(draw(geometry_.blocks()));
    if (std::ranges::count(drawn, block) > 0) continue;
    if (std::ranges::count(blocks_.ongoing(plane), block) > 0) continue;
    const bool full = blocks_[block].written == geometry_.pages();
    if (!full && !quirks_.draws_useless_victims()) continue;
    if (blocks_.safe_victim(block)) drawn.push_back(block);
  }
  if (drawn.empty()) return kNone;
  std::ranges::sort(drawn);
  uint32_t best = drawn.front();
  for (const uint32_t block : drawn) {
    const Block& b = blocks_[block];
    if (b.invalid > blocks_[best].invalid && b.written == geometry_.pages()) best = block;
  }
  if (blocks_[best].invalid == 0 && !quirks_.gives_up_without_garbage()) return greedy(plane);
  return best;
}

uint32_t Victims::random(uint32_t plane, uint32_t invalid_min, bool full_only) {
  const uint32_t first = plane * geometry_.blocks();
  uint32_t block = kNone;
  for (uint32_t tries = 0; tries <= geometry_.blocks(); ++tries) {
    block = first + static_cast<uint32_t>(draw(geometry_.blocks()));
    const Block& b = blocks_[block];
    if (full_only && b.written < geometry_.pages()) continue;
    const bool useful = b.written == geometry_.pages() && b.invalid > 0;
    if (!useful && !quirks_.draws_useless_victims()) continue;
    if (b.invalid >= invalid_min && blocks_.safe_victim(block)) return block;
  }
  return quirks_.gives_up_without_garbage() ? block : greedy(plane);
}

uint32_t Victims::too_cold(uint32_t plane) const {
  if (!parameters_.static_wear_levelling) return kNone;
  const uint32_t hot = blocks_.hottest(plane);
  if (quirks_.levels_wear_by_number()) {
    const uint32_t cold = blocks_.coldest(plane);
    if (hot - cold < parameters_.static_wear_threshold) return kNone;
    return blocks_.safe_victim(cold) ? cold : kNone;
  }
  if (!blocks_.ongoing(plane).empty() || blocks_.free_blocks(plane) <= reserve_.stop) return kNone;
  uint32_t cold = kNone;
  const uint32_t first = plane * geometry_.blocks();
  for (uint32_t block = first; block < first + geometry_.blocks(); ++block) {
    if (blocks_[block].written != geometry_.pages()) continue;
    if (cold != kNone && blocks_[block].erases >= blocks_[cold].erases) continue;
    if (blocks_.safe_victim(block)) cold = block;
  }
  if (cold == kNone) return kNone;
  const uint32_t apart = blocks_[hot].erases - blocks_[cold].erases;
  return apart < parameters_.static_wear_threshold ? kNone : cold;
}

}  // namespace cairn::flash
