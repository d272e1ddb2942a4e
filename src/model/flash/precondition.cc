// SPDX-License-Identifier: Apache-2.0
#include "model/flash/precondition.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "base/portable_math.h"
#include "base/rng.h"
#include "model/flash/mean_field.h"

namespace cairn::flash {

namespace {

// Which logical pages were written, and in which order they first were.
struct Written {
  std::vector<uint32_t> order;
  std::vector<bool> is;  // by page
};

// Those that are written for sure.
Written start_with(const std::vector<bool>& sure, uint64_t space) {
  Written written;
  written.is = sure;
  written.is.resize(space);
  for (uint32_t page = 0; page < space; ++page) {
    if (written.is[page]) written.order.push_back(page);
  }
  return written;
}

// Adds pages as the workload would draw them, until `wanted` different ones are there.
void draw(const Synthetic& workload, uint64_t last, uint32_t sectors_per_page, uint64_t wanted,
          Written& written) {
  const uint64_t space = written.is.size();
  Mrg32k3a addresses(workload.seed + 1);
  uint64_t next = 0;
  if (workload.pattern == Pattern::kSequential) next = addresses.between(0, last);
  while (written.order.size() < wanted) {
    uint64_t lba = 0;
    if (workload.pattern == Pattern::kSequential) {
      lba = next + workload.sectors > last ? 0 : next;
      next += workload.sectors;
      if (next > last) next = 0;
    } else {
      lba = addresses.between(0, last);
      if (lba + workload.sectors > last) lba = 0;
    }
    lba -= lba % workload.alignment_sectors;
    const uint64_t first_page = lba / sectors_per_page;
    const uint64_t last_page = (lba + workload.sectors - 1) / sectors_per_page;
    for (uint64_t page = first_page; page <= last_page && page < space; ++page) {
      if (written.is[page]) continue;
      written.is[page] = true;
      written.order.push_back(static_cast<uint32_t>(page));
    }
  }
}

// Moves a distribution so that its mean is what the plane really holds.
std::vector<double> shifted(const std::vector<double>& from, uint32_t pages, double real_mean) {
  double mean = 0;
  for (uint32_t i = 0; i <= pages; ++i) mean += from[i] * i / pages;
  std::vector<double> to = from;
  if (std::abs(mean - real_mean) * pages <= 0.9999) return to;
  const int by = static_cast<int>((real_mean - mean) * pages);
  for (int i = 0; i < static_cast<int>(pages); ++i) {
    const int source = i - by;
    to[i] = source >= 0 && source < static_cast<int>(pages) ? from[source] : 0;
  }
  return to;
}

// Blocks of a plane that preconditioning may close.
uint32_t blocks_to_fill(const FlashModel& model) {
  const auto streams = static_cast<uint32_t>(model.domains().size());
  const uint32_t blocks = model.geometry().blocks();
  if (model.quirks().fills_fullest_first()) return (blocks - model.gc_start_blocks() / 2) / streams;
  return (blocks - 3 * streams - model.gc_start_blocks()) / streams;
}

// Gives a closed block its owners, from the end of the list.
void close_block(FlashModel& model, uint32_t stream, uint32_t plane, uint32_t valid,
                 std::vector<uint32_t>& lpas) {
  const uint32_t first = model.blocks().fill_block(plane, stream, valid);
  // A page that was really written is whole.
  const uint32_t sectors = model.quirks().fills_one_sector() ? 1 : model.geometry().sectors();
  for (uint32_t page = 0; page < valid; ++page) {
    const uint32_t lpa = lpas.back();
    lpas.pop_back();
    model.blocks().set_owner(first + page, lpa);
    model.pages()[lpa].map_to(first + page);
    model.pages()[lpa].written = sectors == 64 ? ~uint64_t{0} : (uint64_t{1} << sectors) - 1;
  }
}

// Every block takes its place in the distribution; the rest is evened out page by page. False when
// the pages do not fit.
bool fill_plane(FlashModel& model, uint32_t stream, uint32_t plane, std::vector<uint32_t> lpas,
                const std::vector<double>& distribution) {
  const uint32_t pages = model.geometry().pages();
  // Translation pages may have taken blocks already.
  const auto free = static_cast<uint32_t>(model.blocks().free_blocks(plane));
  const uint32_t spare = free - std::min(free, model.gc_start_blocks());
  const uint32_t goal = std::min(blocks_to_fill(model), spare);
  if (lpas.size() > uint64_t{goal} * pages) return false;
  std::vector<uint32_t> valid(goal);
  uint64_t planned = 0;
  double below = distribution[0];
  uint32_t count = 0;
  for (uint32_t i = 0; i < goal; ++i) {
    while (count < pages && below < (i + 0.5) / goal) below += distribution[++count];
    valid[i] = count;
    planned += count;
  }
  for (uint32_t i = 0; planned != lpas.size(); i = (i + 1) % goal) {
    if (planned < lpas.size() && valid[i] < pages) {
      ++valid[i];
      ++planned;
    } else if (planned > lpas.size() && valid[i] > 0) {
      --valid[i];
      --planned;
    }
  }
  // Blocks of all ages lie everywhere, not the emptiest first.
  Rng rng(plane + 1);
  for (uint32_t i = goal; i > 1; --i) std::swap(valid[i - 1], valid[rng.below(i)]);
  for (const uint32_t pages_of_block : valid) {
    close_block(model, stream, plane, pages_of_block, lpas);
  }
  return true;
}

// The same as the reference does it: the fullest first, and parts of blocks are dropped.
bool fill_plane_as_reference(FlashModel& model, uint32_t stream, uint32_t plane,
                             std::vector<uint32_t> lpas, const std::vector<double>& distribution) {
  const uint32_t pages = model.geometry().pages();
  const uint32_t goal = blocks_to_fill(model);
  const double mean = static_cast<double>(lpas.size()) / (static_cast<double>(goal) * pages);
  const std::vector<double> plan = shifted(distribution, pages, mean);
  const auto blocks_with = [&](uint32_t valid) {
    return static_cast<uint32_t>(plan[valid] * goal);
  };
  uint64_t planned = 0;
  for (uint32_t valid = 0; valid <= pages; ++valid) planned += uint64_t{valid} * blocks_with(valid);
  uint64_t unplanned = planned < lpas.size() ? lpas.size() - planned : 0;
  uint32_t left = goal;
  for (int valid = static_cast<int>(pages); valid >= 0; --valid) {
    uint32_t blocks = blocks_with(static_cast<uint32_t>(valid));
    if (blocks > 0 && unplanned > 0 && valid > 0) {
      blocks += static_cast<uint32_t>((unplanned + valid - 1) / valid);
      unplanned = 0;
    }
    blocks = std::min(blocks, left);
    left -= blocks;
    for (uint32_t i = 0; i < blocks; ++i) {
      valid = std::min(valid, static_cast<int>(lpas.size()));
      close_block(model, stream, plane, static_cast<uint32_t>(valid), lpas);
    }
  }
  return lpas.empty();
}

// How full blocks are after random writes. Where the analysis has an exact answer, drives other
// than the reference get it.
std::vector<double> random_writes_leave(const FlashModel& model, double load) {
  const Parameters& p = model.parameters();
  const uint32_t pages = model.geometry().pages();
  if (!model.quirks().approximates_steady_states()) {
    const double possible = std::clamp(load, 1e-6, 1 - 1.001 / pages);
    if (p.gc_policy == GcPolicy::kGreedy) return greedy_mean_field(pages, possible).valid;
    if (p.gc_policy == GcPolicy::kRga) {
      return choices_mean_field(pages, possible, model.rga_choices()).valid;
    }
  }
  return steady_state(p.gc_policy, pages, std::min(load, 0.999), model.rga_choices(),
                      p.random_pp_invalid_pages);
}

// A list of pages that can be walked in both directions, and shrinks.
class Walk {
 public:
  explicit Walk(const std::vector<uint32_t>& pages)
      : pages_(pages), next_(pages.size() + 1), previous_(pages.size() + 1), left_(pages.size()) {
    const auto count = static_cast<uint32_t>(pages.size());
    for (uint32_t i = 0; i <= count; ++i) {
      next_[i] = i == count ? 0 : i + 1;
      previous_[i] = i == 0 ? count : i - 1;
    }
  }
  size_t left() const { return left_; }
  // The end is a place of its own, between the last page and the first.
  void move(int64_t steps) {
    for (; steps > 0; --steps) at_ = next_[at_];
    for (; steps < 0; ++steps) at_ = previous_[at_];
    if (at_ == pages_.size()) at_ = next_[at_];
  }
  uint32_t take() {
    const uint32_t taken = at_;
    next_[previous_[at_]] = next_[at_];
    previous_[next_[at_]] = previous_[at_];
    at_ = next_[at_];
    --left_;
    return pages_[taken];
  }

 private:
  const std::vector<uint32_t>& pages_;
  std::vector<uint32_t> next_;
  std::vector<uint32_t> previous_;
  size_t left_;
  uint32_t at_ = 0;
};

// Fills the mapping cache with entries of written pages, a random stride apart. The walk turns
// back at a random place, so that what was written first is often what was used last.
void warm_mapping_cache(FlashModel& model, const Synthetic& workload,
                        const std::vector<uint32_t>& order) {
  if (model.parameters().ideal_mapping || order.size() < 3) return;
  const size_t entries = std::min(model.mapping_cache().capacity(), order.size() - 1);
  Mrg32k3a random(static_cast<uint32_t>(model.parameters().seed));
  auto position = static_cast<int64_t>(static_cast<double>(order.size() - 2) * random.next());
  auto step = static_cast<int64_t>(random.between(0, order.size() / entries));
  Walk walk(order);
  for (size_t i = 0; i < entries; ++i) {
    walk.move(step);
    model.warm_mapping(walk.take(), workload.stream);
    const auto left = static_cast<int64_t>(walk.left());
    if (position + step >= left - 1 || position + step < 0) step = -step;
    position += step;
  }
}

}  // namespace

bool precondition(FlashModel& model, const Synthetic& workload, double occupancy,
                  const std::vector<bool>& sure) {
  const Parameters& p = model.parameters();
  const Domain& domain = model.domains()[workload.stream];
  const uint32_t sectors = model.geometry().sectors();
  const uint32_t pages = model.geometry().pages();
  auto wanted = static_cast<uint64_t>(occupancy * static_cast<double>(domain.logical_pages));
  const auto working_set =
      static_cast<uint64_t>(static_cast<double>(domain.logical_sectors - 1) * workload.working_set);
  uint64_t last = working_set - 1;
  const double slack = workload.pattern == Pattern::kSequential ? 1.0 : 1.1;
  // A working set too small for what shall be written is left behind.
  if (static_cast<double>(last / sectors - 1) < slack * static_cast<double>(wanted)) {
    last = static_cast<uint64_t>(static_cast<double>(last) / workload.working_set);
    if (static_cast<double>(last / sectors) < slack * static_cast<double>(wanted)) {
      wanted = static_cast<uint64_t>(static_cast<double>(last / sectors) *
                                     (slack > 1 ? kOccupancyMax : 1.0));
    }
  }
  Written written = start_with(sure, domain.logical_pages);
  draw(workload, last, sectors, wanted, written);
  if (written.order.empty()) return true;

  double load = occupancy * (1 - p.over_provisioning) /
                (1 - static_cast<double>(model.gc_start_blocks()) / p.blocks_per_plane);
  if (!model.quirks().approximates_steady_states()) {
    load = static_cast<double>(written.order.size()) /
           (static_cast<double>(domain.spread.size()) * blocks_to_fill(model) * pages);
  }
  std::vector<double> distribution(pages + 1, 0.0);
  if (workload.pattern == Pattern::kSequential) {
    distribution[0] = 1 - load;
    distribution[pages] = load;
  } else {
    distribution = random_writes_leave(model, load);
  }
  std::unordered_map<uint32_t, std::vector<uint32_t>> by_plane;
  for (uint64_t page = 0; page < domain.logical_pages; ++page) {
    if (!written.is[page]) continue;
    by_plane[domain.plane_of(page)].push_back(static_cast<uint32_t>(domain.first_lpa + page));
  }
  bool fits = true;
  for (auto& [plane, lpas] : by_plane) {
    const auto fill = model.quirks().fills_fullest_first() ? fill_plane_as_reference : fill_plane;
    fits &= fill(model, workload.stream, plane, std::move(lpas), distribution);
  }
  std::vector<uint32_t> early;
  const uint64_t in_working_set = (working_set / sectors);
  for (const uint32_t page : written.order) {
    if (page <= in_working_set) early.push_back(static_cast<uint32_t>(domain.first_lpa + page));
  }
  warm_mapping_cache(model, workload, early);
  return fits;
}

void warm_mapping_for(FlashModel& model, const Synthetic& workload) {
  if (model.parameters().ideal_mapping) return;
  const Domain& domain = model.domains()[workload.stream];
  const double used = static_cast<double>(domain.logical_pages) * workload.working_set;
  const double kept =
      std::min(1.0, static_cast<double>(model.mapping_cache().capacity()) / std::max(used, 1.0));
  SyntheticSource source(workload, domain.logical_sectors);
  const uint32_t sectors = model.geometry().sectors();
  while (!source.exhausted()) {
    const HostRequest request = source.next();
    const uint64_t last = (request.lba + request.sectors - 1) / sectors;
    for (uint64_t page = request.lba / sectors; page <= last && page < domain.logical_pages;
         ++page) {
      // The same page is always in, or always out.
      if (Rng(page).uniform() >= kept) continue;
      model.warm_mapping(static_cast<uint32_t>(domain.first_lpa + page), workload.stream);
    }
  }
}

void precondition_by_replay(FlashModel& model, const Synthetic& workload, double passes) {
  Synthetic writes = workload;
  writes.read_fraction = 0;
  writes.mean_gap_ns = 0;
  writes.queue_depth = std::max(writes.queue_depth, 32U);
  const double sectors =
      static_cast<double>(model.domains()[workload.stream].logical_sectors) * workload.working_set;
  writes.requests = static_cast<uint64_t>(passes * sectors / writes.sectors);
  run_synthetic(model, writes, [](const Completion&) {});
}

}  // namespace cairn::flash
