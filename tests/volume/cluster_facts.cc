// SPDX-License-Identifier: Apache-2.0
#include "tests/volume/cluster_facts.h"

#include <fmt/format.h>

#include <algorithm>

namespace cairn::volume_tests {

Oracle::Promise Oracle::promise() const {
  Promise promise;
  for (const auto& [block, what] : blocks_) {
    if (what.acknowledged != 0) promise[block] = what.acknowledged;
  }
  return promise;
}

void Oracle::keep(const Promise& promise) {
  for (const auto& [block, change] : promise) {
    std::erase_if(blocks_[block].possible,
                  [last = change](const Change& each) { return each.number < last; });
  }
}

void Oracle::doubt() {
  ++doubts_;
  for (auto& [block, what] : blocks_) what.acknowledged = 0;
}

bool Oracle::is_possible(uint64_t block, uint64_t value) const {
  const auto found = blocks_.find(block);
  if (found == blocks_.end()) return value == 0;
  return std::ranges::find(found->second.possible, value, &Change::value) !=
         found->second.possible.end();
}

bool Oracle::is_present(uint64_t block, uint64_t value) const {
  const auto found = blocks_.find(block);
  if (found == blocks_.end()) return value == 0;
  return std::ranges::any_of(found->second.possible, [&](const Change& each) {
    return each.value == value && each.number >= found->second.acknowledged;
  });
}

void Oracle::seed(uint64_t block, const std::set<uint64_t>& values) {
  std::vector<Change>& possible = blocks_[block].possible;
  possible.clear();
  for (const uint64_t value : values) possible.push_back({0, value});
}

std::set<uint64_t> Oracle::values(uint64_t block) const {
  const auto found = blocks_.find(block);
  if (found == blocks_.end()) return {0};
  std::set<uint64_t> all;
  for (const Change& each : found->second.possible) all.insert(each.value);
  return all;
}

std::string Oracle::text(uint64_t block) const {
  const auto found = blocks_.find(block);
  std::string all = found == blocks_.end() ? "0" : "";
  if (found == blocks_.end()) return all;
  for (const Change& each : found->second.possible) {
    all += fmt::format("{}{}", all.empty() ? "" : " or ", each.value);
  }
  return all;
}

void ClusterFacts::begin(VolumeFacts& volume, uint64_t block, uint64_t change, uint64_t value) {
  volume.oracle.begin(block, change, value);
  for (auto& [name, snapshot] : snapshots) {
    const bool is_of_it = name.starts_with(volume.name + volume::kSnapshotMark);
    if (is_of_it && !snapshot.is_made) snapshot.begun[block].insert(value);
  }
}

}  // namespace cairn::volume_tests
