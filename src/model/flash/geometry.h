// SPDX-License-Identifier: Apache-2.0
// Where a page is: numbers of planes, dies, chips and channels, and the way back.
#pragma once

#include <cstdint>
#include <vector>

#include "model/flash/parameters.h"

namespace cairn::flash {

// Planes are numbered channel by channel, chip by chip, die by die; a flash page is
// (plane * blocks + block) * pages + page.
class Geometry {
 public:
  explicit Geometry(const Parameters& parameters);

  uint32_t channels() const { return channels_; }
  uint32_t chips() const { return chips_; }
  uint32_t dies() const { return dies_; }
  uint32_t planes() const { return planes_; }
  uint32_t planes_per_chip() const { return planes_per_chip_; }
  uint32_t planes_per_die() const { return planes_per_die_; }
  uint32_t dies_per_chip() const { return dies_per_chip_; }
  uint32_t chips_per_channel() const { return chips_per_channel_; }
  uint32_t blocks() const { return blocks_; }
  uint32_t pages() const { return pages_; }
  uint32_t sectors() const { return sectors_; }

  uint32_t die_of_plane(uint32_t plane) const { return plane / planes_per_die_; }
  uint32_t chip_of_plane(uint32_t plane) const { return plane / planes_per_chip_; }
  uint32_t chip_of_die(uint32_t die) const { return die / dies_per_chip_; }
  uint32_t channel_of_chip(uint32_t chip) const { return chip / chips_per_channel_; }

  uint32_t ppa(uint32_t plane, uint32_t block, uint32_t page) const {
    return (plane * blocks_ + block) * pages_ + page;
  }
  uint32_t page_of(uint32_t ppa) const { return ppa % pages_; }
  // Counts over all planes.
  uint32_t block_of(uint32_t ppa) const { return ppa / pages_; }
  uint32_t plane_of_block(uint32_t block) const { return block / blocks_; }
  uint32_t plane_of(uint32_t ppa) const { return plane_of_block(block_of(ppa)); }

 private:
  uint32_t channels_, chips_per_channel_, dies_per_chip_, planes_per_die_;
  uint32_t blocks_, pages_, sectors_;
  uint32_t chips_, dies_, planes_, planes_per_chip_;
};

// The logical space of one stream: its pages, and the plane each goes to.
struct Domain {
  uint64_t first_lpa = 0;  // among all streams' pages
  uint64_t logical_pages = 0;
  uint64_t logical_sectors = 0;
  uint64_t first_translation_page = 0;
  uint64_t translation_pages = 0;
  std::vector<uint32_t> spread;  // plane of page n: spread[n % size]

  uint32_t plane_of(uint64_t page) const { return spread[page % spread.size()]; }
};

inline uint32_t stream_of(const std::vector<Domain>& domains, uint32_t lpa) {
  uint32_t stream = 0;
  while (stream + 1 < domains.size() && lpa >= domains[stream + 1].first_lpa) ++stream;
  return stream;
}

// One domain per stream. `entries_per_translation_page` logical pages share a translation page.
std::vector<Domain> partition(const Parameters& parameters, uint64_t entries_per_translation_page);

}  // namespace cairn::flash
