// SPDX-License-Identifier: Apache-2.0
#include "world/sim/durability.h"

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/check.h"
#include "base/rng.h"

namespace cairn::sim {

void DurableStore::set_block_size(uint32_t size) {
  CHECK(volatile_.empty() || size == block_size_);
  block_size_ = size;
}

std::vector<std::byte> DurableStore::take_image() {
  if (free_images_.empty()) return std::vector<std::byte>(block_size_);
  std::vector<std::byte> image = std::move(free_images_.back());
  free_images_.pop_back();
  image.resize(block_size_);
  return image;
}

void DurableStore::give_images(Volatile& block, size_t first, size_t last) {
  const auto begin = block.older.begin();
  for (size_t i = first; i < last; ++i) free_images_.push_back(std::move(block.older[i].image));
  block.older.erase(begin + static_cast<ptrdiff_t>(first), begin + static_cast<ptrdiff_t>(last));
}

void DurableStore::erase(Blocks::iterator block) {
  give_images(block->second, 0, block->second.older.size());
  volatile_.erase(block);
}

void DurableStore::write_block(uint64_t offset, std::optional<Bytes> from, bool durable, Rng& rng) {
  const uint64_t block = offset / block_size_;
  const auto known = volatile_.find(block);
  if (durable) {
    if (known != volatile_.end()) erase(known);
  } else {
    Volatile& entry = known != volatile_.end() ? known->second : volatile_[block];
    Version old{entry.written, take_image()};
    pages_.read(offset, old.image);
    entry.older.push_back(std::move(old));
    if (entry.older.size() > kVersionsMax) {
      const size_t victim = rng.between(1, entry.older.size() - 1);
      give_images(entry, victim, victim + 1);
    }
    entry.written = ++sequence_;
    entry.is_forgotten = false;
  }
  if (from.has_value()) {
    pages_.write(offset, *from);
  } else {
    pages_.write_zeroes(offset, block_size_);
  }
}

void DurableStore::overwrite(uint64_t offset, Bytes from) { pages_.write(offset, from); }

void DurableStore::make_durable(Mark up_to, double probability, Rng& rng) {
  for (auto next = volatile_.begin(); next != volatile_.end();) {
    const auto block = next++;
    Volatile& entry = block->second;
    if (entry.is_forgotten) continue;
    if (probability < 1 && !rng.bernoulli(probability)) {
      entry.is_forgotten = entry.written <= up_to;
      continue;
    }
    if (entry.written <= up_to) {
      erase(block);
      continue;
    }
    size_t durable = 0;
    for (size_t i = 1; i < entry.older.size(); ++i) {
      if (entry.older[i].written <= up_to) durable = i;
    }
    give_images(entry, 0, durable);
  }
}

void DurableStore::lose_power(double keep, Rng& rng) {
  for (auto& [block, entry] : volatile_) {
    if (rng.bernoulli(keep)) continue;
    const size_t left = rng.below(entry.older.size());
    pages_.write(block * block_size_, entry.older[left].image);
  }
  while (!volatile_.empty()) erase(volatile_.begin());
}

void DurableStore::truncate(uint64_t size, uint64_t old_size) {
  if (size >= old_size) return;
  while (!volatile_.empty() && volatile_.rbegin()->first * block_size_ >= size) {
    erase(std::prev(volatile_.end()));
  }
  pages_.write_zeroes(size, old_size - size);
}

}  // namespace cairn::sim
