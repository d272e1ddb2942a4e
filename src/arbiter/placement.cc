// SPDX-License-Identifier: Apache-2.0
#include "arbiter/placement.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace cairn::arbiter {

namespace {

int32_t thousandths(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<int32_t>(part * 1000 / whole);
}

ScoreRow score(const Candidate& drive, const volume::Weights& weights, uint32_t of_volume_max) {
  ScoreRow row{.id = drive.id, .factors = {}, .is_full = drive.free == 0};
  row.factors = {.extents = thousandths(drive.of_volume, of_volume_max),
                 .used = thousandths(drive.extents - drive.free, drive.extents),
                 .busy = drive.load.busy,
                 .fragmentation = drive.load.fragmentation,
                 .preference = drive.preference};
  const auto weighed = [](int32_t factor, int32_t weight) { return int64_t{factor} * weight; };
  row.score = weighed(row.factors.extents, weights.extents) +
              weighed(row.factors.used, weights.used) + weighed(row.factors.busy, weights.busy) +
              weighed(row.factors.fragmentation, weights.fragmentation) +
              weighed(row.factors.preference, weights.preference);
  return row;
}

bool is_same_place(std::string_view one, std::string_view other) {
  return !one.empty() && one == other;
}

// How much a drive shares with legs that are there: racks before boxes.
struct Shared {
  uint32_t racks = 0;
  uint32_t boxes = 0;
  void add(const Candidate& drive, const Candidate& other) {
    racks += is_same_place(drive.rack, other.rack) ? 1 : 0;
    boxes += is_same_place(drive.box, other.box) ? 1 : 0;
  }
  friend auto operator<=>(const Shared&, const Shared&) = default;
};

// One leg after the other: the drive that shares least with those before it, and among these the
// first by `is_better`.
template <class Better>
std::vector<size_t> pick(const PlacementArgs& args, Better is_better) {
  std::vector<size_t> chosen;
  while (chosen.size() < args.count) {
    size_t best = args.candidates.size();
    Shared best_shared;
    for (size_t i = 0; i < args.candidates.size(); ++i) {
      const Candidate& drive = args.candidates[i];
      const auto is_it = [&](const Candidate& other) { return other.id == drive.id; };
      if (drive.free == 0 || std::ranges::find(chosen, i) != chosen.end() ||
          std::ranges::any_of(args.taken, is_it)) {
        continue;
      }
      Shared shared;
      for (const size_t other : chosen) shared.add(drive, args.candidates[other]);
      for (const Candidate& other : args.taken) shared.add(drive, other);
      if (best == args.candidates.size() || shared < best_shared ||
          (shared == best_shared && is_better(i, best))) {
        best = i;
        best_shared = shared;
      }
    }
    if (best == args.candidates.size()) return {};
    chosen.push_back(best);
  }
  return chosen;
}

bool is_feasible_after(const PlacementArgs& args, std::span<const size_t> chosen) {
  if (args.after.is_none()) return true;
  std::vector<uint32_t> free;
  for (const Candidate& drive : args.candidates) free.push_back(drive.free);
  for (const size_t each : chosen) --free[each];
  return is_feasible(free, args.after);
}

}  // namespace

bool is_feasible(std::span<const uint32_t> free, const Demand& demand) {
  uint64_t extents = 0;
  uint64_t legs = 0;
  for (size_t replicas = volume::kReplicasMax; replicas > 0; --replicas) {
    extents += demand.extents[replicas - 1];
    legs += demand.extents[replicas - 1] * replicas;
    uint64_t room = 0;
    for (const uint32_t each : free) room += std::min<uint64_t>(each, extents);
    if (room < legs) return false;
  }
  return true;
}

Result<std::vector<size_t>> choose(const PlacementArgs& args, std::vector<ScoreRow>* rows) {
  uint32_t of_volume_max = 0;
  for (const Candidate& each : args.candidates) {
    of_volume_max = std::max(of_volume_max, each.of_volume);
  }
  std::vector<ScoreRow> scores;
  scores.reserve(args.candidates.size());
  for (const Candidate& each : args.candidates) {
    scores.push_back(score(each, args.weights, of_volume_max));
  }
  std::vector<size_t> chosen =
      pick(args, [&](size_t one, size_t other) { return scores[one].score < scores[other].score; });
  if (!chosen.empty() && !is_feasible_after(args, chosen)) {
    // Places may repeat then: what was promised comes first.
    PlacementArgs anywhere = args;
    std::vector<Candidate> bare(args.candidates.begin(), args.candidates.end());
    for (Candidate& each : bare) each.box = each.rack = {};
    anywhere.candidates = bare;
    chosen = pick(anywhere, [&](size_t one, size_t other) {
      return std::tuple(bare[other].free, scores[one].score) <
             std::tuple(bare[one].free, scores[other].score);
    });
  }
  for (const size_t each : chosen) scores[each].is_chosen = true;
  if (rows != nullptr) *rows = std::move(scores);
  if (chosen.empty()) return fail(Errc::kNoSpace, "the pool has no room for an extent's replicas");
  return chosen;
}

}  // namespace cairn::arbiter
