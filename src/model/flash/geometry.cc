// SPDX-License-Identifier: Apache-2.0
#include "model/flash/geometry.h"

#include <numeric>

namespace cairn::flash {

namespace {

std::vector<uint32_t> channels_of(const Parameters& p, const StreamParameters& stream) {
  if (!stream.channels.empty()) return stream.channels;
  std::vector<uint32_t> all(p.channels);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

// The planes in the order in which consecutive pages visit them.
std::vector<uint32_t> spread_over(const Parameters& p, const std::vector<uint32_t>& channels) {
  const uint32_t counts[4] = {static_cast<uint32_t>(channels.size()), p.chips_per_channel,
                              p.dies_per_chip, p.planes_per_die};
  const uint32_t total = counts[0] * counts[1] * counts[2] * counts[3];
  std::vector<uint32_t> planes(total);
  for (uint32_t n = 0; n < total; ++n) {
    uint32_t digits[4];
    uint32_t rest = n;
    for (const Level level : p.spread) {
      const auto i = static_cast<size_t>(level);
      digits[i] = rest % counts[i];
      rest /= counts[i];
    }
    const uint32_t chip = channels[digits[0]] * p.chips_per_channel + digits[1];
    planes[n] = (chip * p.dies_per_chip + digits[2]) * p.planes_per_die + digits[3];
  }
  return planes;
}

}  // namespace

Geometry::Geometry(const Parameters& p)
    : channels_(p.channels),
      chips_per_channel_(p.chips_per_channel),
      dies_per_chip_(p.dies_per_chip),
      planes_per_die_(p.planes_per_die),
      blocks_(p.blocks_per_plane),
      pages_(p.pages_per_block),
      sectors_(p.sectors_per_page()),
      chips_(channels_ * chips_per_channel_),
      dies_(chips_ * dies_per_chip_),
      planes_(dies_ * planes_per_die_),
      planes_per_chip_(dies_per_chip_ * planes_per_die_) {}

std::vector<Domain> partition(const Parameters& p, uint64_t entries_per_translation_page) {
  std::vector<uint32_t> users(p.channels, 0);  // streams on each channel
  for (const StreamParameters& stream : p.streams) {
    for (const uint32_t channel : channels_of(p, stream)) ++users[channel];
  }
  std::vector<Domain> domains;
  uint64_t next_lpa = 0;
  uint64_t next_translation_page = 0;
  const uint64_t planes_per_channel =
      uint64_t{p.chips_per_channel} * p.dies_per_chip * p.planes_per_die;
  for (const StreamParameters& stream : p.streams) {
    const std::vector<uint32_t> channels = channels_of(p, stream);
    Domain domain;
    domain.spread = spread_over(p, channels);
    for (const uint32_t channel : channels) {
      const double plane_sectors = static_cast<double>(p.blocks_per_plane) * p.pages_per_block *
                                   p.sectors_per_page() * (1.0 - p.over_provisioning) /
                                   users[channel];
      domain.logical_sectors += planes_per_channel * static_cast<uint64_t>(plane_sectors);
    }
    domain.logical_pages =
        (domain.logical_sectors + p.sectors_per_page() - 1) / p.sectors_per_page();
    domain.first_lpa = next_lpa;
    domain.first_translation_page = next_translation_page;
    domain.translation_pages = domain.logical_pages / entries_per_translation_page;
    next_lpa += domain.logical_pages;
    next_translation_page += domain.translation_pages + 1;
    domains.push_back(std::move(domain));
  }
  return domains;
}

}  // namespace cairn::flash
