// SPDX-License-Identifier: Apache-2.0
// Where extents go: a score for each drive, the lowest wins (Flint, section 4.2). A pure function
// of what is known of the drives, in whole numbers, so that it is the same on every processor.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "volume/types.h"

namespace cairn::arbiter {

// How a drive is doing, in thousandths: 0 is best, 1000 worst.
struct DriveLoad {
  int32_t busy = 0;           // the part of its bandwidth that is in use
  int32_t fragmentation = 0;  // how torn its free space is
};

// Tells how drives are doing: the view of boxes (market/market.h), and OwnCounters.
class LoadSource {
 public:
  virtual ~LoadSource() = default;
  virtual DriveLoad load(volume::MegaVolId id) const = 0;
  // As a volume should see it that is to get extents there: what it does itself is no reason to
  // avoid a drive, and where others get less than they want it would too.
  virtual DriveLoad load_for(volume::MegaVolId id, std::string_view /*volume*/) const {
    return load(id);
  }
};

// A drive that may get a leg.
struct Candidate {
  volume::MegaVolId id;
  std::string_view box;
  std::string_view rack;
  uint32_t extents = 0;    // of the drive, its label's not included
  uint32_t free = 0;       // of these
  uint32_t of_volume = 0;  // extents of the same volume that are there
  int32_t preference = 0;
  DriveLoad load;
};

// A row of the score matrix of one placement.
struct ScoreRow {
  volume::MegaVolId id;
  volume::Weights factors;  // each factor's value, in thousandths, before it is weighed
  int64_t score = 0;        // in millionths
  bool is_full = false;
  bool is_chosen = false;
};
struct ScoreMatrix {
  uint32_t extent = 0;
  std::vector<ScoreRow> rows;  // as the candidates were given
};

// What has been promised to volumes and is not yet placed: extents, by their replicas less one.
struct Demand {
  std::array<uint64_t, volume::kReplicasMax> extents{};
  bool is_none() const { return extents == decltype(extents){}; }
};

// Whether drives with so much free can take all legs of the demand, each extent's on drives that
// differ: of any extents no drive can take more than each once, so those with most replicas decide.
bool is_feasible(std::span<const uint32_t> free, const Demand& demand);

struct PlacementArgs {
  std::span<const Candidate> candidates;  // each has room, or is passed over
  std::span<const Candidate> taken;       // legs that the extent has already
  volume::Weights weights;
  uint32_t count = 1;  // of legs
  Demand after;        // what is still to be placed when this one is
};

// Chooses drives for legs of one extent: the indices into the candidates, in the order of the
// chain. Drives differ; racks and boxes differ as far as there are enough with room. If the choice
// by score would leave the demand without drives that differ, those with most room are chosen.
// kNoSpace. `rows`, if not null, gets the matrix.
Result<std::vector<size_t>> choose(const PlacementArgs& args, std::vector<ScoreRow>* rows);

}  // namespace cairn::arbiter
