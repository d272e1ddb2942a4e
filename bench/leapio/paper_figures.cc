// SPDX-License-Identifier: Apache-2.0
#include "bench/leapio/paper_figures.h"

#include <fmt/format.h>

#include <cstdint>
#include <utility>

namespace cairn::bench::leapio {

namespace {

// A drive whose programs let reads pass soon, to see what the profile's 100 us do.
constexpr int64_t kQuickSuspendNs = 20'000;

}  // namespace

std::string with_priority(std::string_view drives) { return fmt::format("priority({})", drives); }

std::vector<Contest> contests() {
  std::vector<Contest> all;
  const Scene plain{.stack = with_priority("{}"), .batch = true};
  for (const bool aged : {false, true}) {
    for (const double rate : kRates) {
      Contest one{.suffix = {}, .name = {}, .scene = plain};
      one.scene.lookups_per_second = rate;
      one.scene.aged = aged;
      if (rate != plain.lookups_per_second) one.suffix = fmt::format("_{:.0f}k", rate / 1000);
      if (aged) {
        one.suffix += "_aged";
        one.name = fmt::format("{:.0f} lookups/s, aged drive", rate);
      }
      all.push_back(std::move(one));
    }
  }
  Scene floor = plain;
  floor.stack = "priority({}, batch_depth=0)";
  floor.lookups_per_second = kFewLookups;
  Scene suspend = plain;
  suspend.lookups_per_second = kFewLookups;
  suspend.suspend_ns = kQuickSuspendNs;
  all.push_back({"_5k_floor", "5000 lookups/s, batch_depth=0", floor});
  all.push_back({"_5k_suspend", "5000 lookups/s, suspends in 20 us", suspend});
  return all;
}

std::vector<Line> three_lines(const Scene& base) {
  Line background{"+BG", base};
  background.scene.batch = true;
  Line ordered{"+BG+Prio", background.scene};
  ordered.scene.stack = with_priority(base.stack);
  return {{"Base", base}, background, ordered};
}

std::vector<Figure> all_figures() {
  return {
      {"11a", "Prioritization",
       "Paper: under batch load (+BG) the search engine's latencies grow long; with the service "
       "(+BG+Prio) its curve lies on that without contention, and batch gets 10% of the resources.",
       three_lines({})},
      {"11b",
       "Snapshot",
       "Paper: reads of a version take slightly longer (+Snap), much longer beside the writer of "
       "the next one (+Snap+BG), and prioritization composes with that (+Snap+Prio+BG). Here "
       "search reads a version while batch rewrites the index it belongs to; the stack is "
       "snapshot(priority(DRIVE)), because readers of a version enter at the snapshot.",
       {{"Base", {}},
        {"+Snap", {.stack = "snapshot({})", .pinned = true}},
        {"+Snap+BG", {.stack = "snapshot({})", .batch = true, .pinned = true}},
        {"+Snap+Prio+BG", {.stack = "snapshot(priority({}))", .batch = true, .pinned = true}}}},
      {"11c", "Remote drive in the rack",
       "Paper: the same with the network in the path; prioritization works end to end.",
       three_lines({.remote = true})},
      {"11d", "RAID 0 of two remote drives",
       "Paper: as 11c on a stripe over two machines, with a higher performance.",
       three_lines({.stack = std::string(kStripe), .remote = true})},
      {"11e", "RAID 1 of two remote drives",
       "Paper: as 11c on a mirror over two machines; the performance of RAID 0 is lost, and "
       "reliability won. Here reads go to the leg that has fewer to do; a write leaves the host "
       "twice, through one link.",
       three_lines({.stack = std::string(kMirror), .remote = true})},
  };
}

}  // namespace cairn::bench::leapio
