// SPDX-License-Identifier: Apache-2.0
#include "testing/flash/checked_drive.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "base/check.h"
#include "model/flash/precondition.h"

namespace cairn::flash {

namespace {

// Flash pages that somebody calls his own.
struct Owned {
  FlashModel& model;
  std::unordered_set<uint32_t> pages;
  std::string problem;

  void add(uint32_t ppa, uint32_t owner, bool mapping) {
    const Blocks& blocks = model.blocks();
    if (!pages.insert(ppa).second) problem = fmt::format("two pages are at flash page {}", ppa);
    if (!blocks.valid(ppa)) problem = fmt::format("page {} is at an invalid {}", owner, ppa);
    if (blocks.lpa_of(ppa) != owner) problem = fmt::format("{} does not know page {}", ppa, owner);
    if (blocks[model.geometry().block_of(ppa)].mapping != mapping) {
      problem = fmt::format("page {} is in a block of the wrong kind", owner);
    }
  }
};

std::string broken_block(FlashModel& model, uint32_t index, const Owned& owned) {
  const Block& block = model.blocks()[index];
  const uint32_t pages = model.geometry().pages();
  uint32_t valid = 0;
  for (uint32_t page = 0; page < pages; ++page) {
    const uint32_t ppa = index * pages + page;
    const bool expected = page >= block.written || owned.pages.contains(ppa);
    if (model.blocks().valid(ppa) != expected) {
      return fmt::format("flash page {} is {} and has {} owner", ppa,
                         expected ? "invalid" : "valid", expected ? "an" : "no");
    }
    valid += page < block.written && expected ? 1 : 0;
  }
  if (valid != block.written - block.invalid) {
    return fmt::format("block {} counts {} valid pages and has {}", index,
                       block.written - block.invalid, valid);
  }
  return {};
}

std::string broken_plane(FlashModel& model, uint32_t plane, const Owned& owned) {
  const Blocks& blocks = model.blocks();
  const uint32_t first = plane * model.geometry().blocks();
  uint64_t valid = 0;
  uint64_t empty = 0;
  for (uint32_t index = first; index < first + model.geometry().blocks(); ++index) {
    if (std::string broken = broken_block(model, index, owned); !broken.empty()) return broken;
    valid += blocks[index].written - blocks[index].invalid;
    if (blocks.is_frontier(index)) continue;
    if (blocks[index].written == 0) {
      ++empty;
    } else if (blocks[index].written != model.geometry().pages()) {
      return fmt::format("block {} is neither free nor a frontier nor full", index);
    }
  }
  if (valid != blocks.valid_pages(plane)) {
    return fmt::format("plane {} counts {} valid pages and has {}", plane,
                       blocks.valid_pages(plane), valid);
  }
  if (empty != blocks.free_blocks(plane)) {
    return fmt::format("plane {} counts {} free blocks and has {}", plane,
                       blocks.free_blocks(plane), empty);
  }
  return {};
}

}  // namespace

std::string broken_law(FlashModel& model) {
  Owned owned{.model = model, .pages = {}, .problem = {}};
  for (uint32_t lpa = 0; lpa < model.pages().size(); ++lpa) {
    const PageRecord& record = model.pages()[lpa];
    if (record.mapped()) owned.add(record.ppa(), lpa, false);
    if (!record.mapped() && record.written != 0) {
      owned.problem = fmt::format("page {} has sectors and no place", lpa);
    }
  }
  for (uint32_t page = 0; page < model.translation_pages().size(); ++page) {
    const uint32_t where = model.translation_pages()[page];
    if (where != 0) owned.add(where - 1, page, true);
  }
  if (!owned.problem.empty()) return owned.problem;
  uint64_t erases = 0;
  for (uint32_t plane = 0; plane < model.geometry().planes(); ++plane) {
    if (std::string broken = broken_plane(model, plane, owned); !broken.empty()) return broken;
    for (uint32_t i = 0; i < model.geometry().blocks(); ++i) {
      erases += model.blocks()[plane * model.geometry().blocks() + i].erases;
    }
  }
  if (erases != model.counters().blocks_erased) return "an erase was not counted";
  return {};
}

CheckedDrive::CheckedDrive(const Parameters& parameters, double occupancy) : model_(parameters) {
  if (occupancy > 0) {
    CHECK(precondition(model_, {.read_fraction = 0}, occupancy), "what shall be there fits");
  }
  sectors_.resize(model_.pages().size() * model_.geometry().sectors());
  for (uint64_t i = 0; i < sectors_.size(); ++i) settle_sector(sectors_[i], holds(i));
}

void CheckedDrive::fail(std::string text) {
  if (problem_.empty()) problem_ = std::move(text);
}

void CheckedDrive::settle_sector(Sector& sector, bool holds) {
  sector = {.holds = holds, .may_hold = holds, .may_be_empty = !holds};
}

bool CheckedDrive::holds(uint64_t index) {
  const auto lpa = static_cast<uint32_t>(index / model_.geometry().sectors());
  uint64_t here = model_.pages()[lpa].written;
  const uint32_t slot = model_.cache().find(lpa);
  if (slot != kNone) here |= model_.cache()[slot].dirty_sectors;
  return (here >> (index % model_.geometry().sectors()) & 1) != 0;
}

bool CheckedDrive::must_wait(const Open& open) const {
  return std::ranges::any_of(open_, [&](const auto& entry) {
    const Open& other = entry.second;
    return (open.changes() || other.changes()) && open.request.stream == other.request.stream &&
           open.first < other.first + other.request.sectors &&
           other.first < open.first + open.request.sectors;
  });
}

void CheckedDrive::submit(HostRequest request) {
  const Domain& domain = model_.domains()[request.stream];
  if (request.op != Op::kFlush) {
    request.lba %= domain.logical_sectors;
    request.sectors = static_cast<uint32_t>(
        std::min<uint64_t>(request.sectors, domain.logical_sectors - request.lba));
  }
  Open open{.request = request,
            .first = domain.first_lpa * model_.geometry().sectors() + request.lba};
  while (must_wait(open)) {
    if (model_.next_event() == kNever) return fail("a request never completed");
    model_.advance(model_.next_event(), *this);
  }
  open.request.cookie = next_cookie_++;
  open.acknowledged = acknowledged_;
  if (open.changes()) {
    for (uint64_t i = open.first; i < open.first + request.sectors; ++i) {
      ++sectors_[i].changes_open;
      (request.op == Op::kWrite ? sectors_[i].may_hold : sectors_[i].may_be_empty) = true;
    }
  }
  open_.emplace(open.request.cookie, open);
  model_.submit(open.request, model_.now());
}

void CheckedDrive::completed(const Completion& completion) {
  const auto found = open_.find(completion.cookie);
  if (found == open_.end()) return fail("a request completed twice");
  const Open open = found->second;
  open_.erase(found);
  if (open.changes()) acknowledge_change(open);
  if (open.request.op == Op::kFlush) acknowledge_flush(open);
}

void CheckedDrive::acknowledge_change(const Open& open) {
  ++acknowledged_;
  const bool at_stake = model_.has_volatile_cache() && !open.request.durable;
  for (uint64_t i = open.first; i < open.first + open.request.sectors; ++i) {
    Sector& sector = sectors_[i];
    --sector.changes_open;
    sector.holds = open.request.op == Op::kWrite;
    sector.changed = acknowledged_;
    sector.at_stake = at_stake;
    if (at_stake) {
      at_stake_.insert(i);
    } else {
      settle_sector(sector, sector.holds);
      at_stake_.erase(i);
    }
  }
}

void CheckedDrive::acknowledge_flush(const Open& open) {
  std::erase_if(at_stake_, [&](uint64_t i) {
    Sector& sector = sectors_[i];
    if (sector.changed > open.acknowledged) return false;
    if (sector.changes_open == 0) {
      settle_sector(sector, sector.holds);
      return true;
    }
    sector.at_stake = false;
    return true;
  });
}

void CheckedDrive::let_pass(Nanos duration) { model_.advance(model_.now() + duration, *this); }

void CheckedDrive::settle() {
  model_.advance(kNever, *this);
  if (!open_.empty() || model_.in_flight() != 0) return fail("a request never completed");
  compare_idle();
}

void CheckedDrive::compare_idle() {
  if (std::string broken = broken_law(model_); !broken.empty()) return fail(std::move(broken));
  for (uint64_t i = 0; i < sectors_.size(); ++i) {
    if (holds(i) != sectors_[i].holds) {
      return fail(fmt::format("sector {} {} data", i, holds(i) ? "has" : "lacks"));
    }
  }
  for (uint32_t lpa = 0; lpa < model_.pages().size(); ++lpa) {
    if (model_.pages()[lpa].locked()) return fail(fmt::format("page {} stays locked", lpa));
    if (model_.pages()[lpa].mapped() && model_.pages()[lpa].written == 0) {
      return fail(fmt::format("page {} has a place and no sectors", lpa));
    }
  }
  for (uint32_t i = 0; i < model_.geometry().planes() * model_.geometry().blocks(); ++i) {
    const Block& block = model_.blocks()[i];
    if (block.programs + block.reads + block.pins != 0 || block.collecting) {
      return fail(fmt::format("block {} is in use while the drive is idle", i));
    }
  }
}

void CheckedDrive::cut_power() {
  const std::vector<PageSectors> lost = model_.power_loss(model_.now());
  if (std::string broken = broken_law(model_); !broken.empty()) {
    return fail("after a power cut: " + broken);
  }
  const uint32_t per_page = model_.geometry().sectors();
  std::vector<bool> is_lost(sectors_.size());
  for (const PageSectors& page : lost) {
    for (uint32_t bit = 0; bit < per_page; ++bit) {
      if ((page.sectors >> bit & 1) != 0) is_lost[uint64_t{page.lpa} * per_page + bit] = true;
    }
  }
  for (uint64_t i = 0; i < sectors_.size(); ++i) {
    Sector& sector = sectors_[i];
    const bool open = sector.changes_open > 0;
    const bool now = holds(i);
    if (is_lost[i] && !sector.at_stake && !open) {
      return fail(fmt::format("sector {} was durable and is lost", i));
    }
    if (!is_lost[i] && !open && now != sector.holds) {
      return fail(fmt::format("sector {} changed without being told as lost", i));
    }
    if (!(now ? sector.may_hold : sector.may_be_empty)) {
      return fail(fmt::format("sector {} is neither old nor new", i));
    }
    settle_sector(sector, now);
  }
  open_.clear();
  at_stake_.clear();
}

std::string play(CheckedDrive& drive, std::span<const uint8_t> script) {
  constexpr Nanos kWaits[8] = {0,       1'000,   20'000,    60'000,
                               150'000, 400'000, 2'000'000, 1'100'000'000};
  const auto streams = static_cast<uint32_t>(drive.model().domains().size());
  for (; script.size() >= 4 && drive.problem().empty(); script = script.subspan(4)) {
    const uint32_t what = script[0] & 15;
    HostRequest request{.stream = (script[0] >> 5) % streams, .sectors = (script[3] & 31U) + 1};
    // Half of the steps go to an eighth of the drive.
    const uint64_t space = drive.model().domains()[request.stream].logical_sectors;
    const uint64_t range = (script[0] & 16) != 0 ? space / 8 : space;
    request.lba = (uint64_t{script[1]} << 8 | script[2]) * range >> 16;
    if (what < 8) {
      request.op = Op::kWrite;
    } else if (what == 8) {
      request.op = Op::kWrite;
      request.durable = true;
    } else if (what <= 10) {
      request.op = Op::kRead;
    } else if (what <= 12) {
      request.op = Op::kTrim;
      request.durable = what == 12 && (script[3] & 3) == 0;
      request.sectors *= 1 + (script[3] & 3U);
    } else if (what <= 14) {
      request.op = Op::kFlush;
      request.sectors = 0;
    } else if ((script[3] & 3) == 0) {
      drive.cut_power();
      continue;
    } else if ((script[3] & 3) == 1) {
      drive.settle();
      continue;
    }
    drive.submit(request);
    drive.let_pass(kWaits[script[3] >> 5]);
  }
  if (drive.problem().empty()) drive.settle();
  return drive.problem();
}

}  // namespace cairn::flash
