// SPDX-License-Identifier: Apache-2.0
// Which legs a mirror opens with: judged by their labels, before anything is written.
#include <algorithm>
#include <bit>
#include <utility>

#include "base/units.h"
#include "drive/joint.h"
#include "drive/layout.h"
#include "drive/mirror.h"
#include "drive/mirror_drive.h"

namespace cairn::drive {

namespace {

using State = Leg::State;

constexpr uint64_t kRegionBytesMin = 64_KiB;
constexpr uint64_t kHeadBytes = 64_KiB;  // before the data, so that it stays aligned

// A drive as it was handed in, and what its label says.
struct Candidate {
  std::unique_ptr<Drive>* drive = nullptr;
  Result<MirrorLabel> label = fail(Errc::kNotFound, "");
  bool is_there = false;  // and can be read
  bool is_blank() const { return is_there && !label; }
};

MirrorLabel make_label(env::Env& env, const std::vector<Candidate>& candidates, size_t legs) {
  const uint32_t block_size = (*candidates[0].drive)->geometry().block_size;
  uint64_t smallest = UINT64_MAX;
  for (const Candidate& one : candidates) {
    smallest = std::min(smallest, (*one.drive)->geometry().blocks);
  }
  MirrorLabel label{.block_size = block_size, .leg_count = static_cast<uint32_t>(legs)};
  label.mirror_id = {env.rng().next(), env.rng().next()};
  label.data_offset = std::max<uint64_t>(kHeadBytes / block_size, kMirrorBitmapBlock + 2);
  label.data_blocks = smallest > label.data_offset ? smallest - label.data_offset : 0;
  label.region_blocks = std::max<uint64_t>(kRegionBytesMin / block_size, 1);
  while (label.data_blocks > 0 && label.regions() > mirror_regions_max(block_size)) {
    label.region_blocks *= 2;
  }
  return label;
}

// All are blank, or were when a crash stopped this very step.
Result<MirrorFound> make_new(env::Env& env, std::vector<Candidate>& candidates,
                             const MirrorOptions& options) {
  for (const Candidate& one : candidates) {
    if (!one.is_there) return fail(Errc::kUnreachable, "a new mirror needs all its drives");
  }
  if (candidates.size() < options.spares + 2) {
    return fail(Errc::kInvalid, "a mirror has two legs or more, besides its spares");
  }
  MirrorFound found{.is_new = true};
  found.label = make_label(env, candidates, candidates.size() - options.spares);
  if (found.label.data_blocks == 0) {
    return fail(Errc::kInvalid, "a drive is too small for a mirror's leg: use 128K or more");
  }
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (i >= found.label.leg_count) {
      found.spares.push_back(std::move(*candidates[i].drive));
      continue;
    }
    found.legs.push_back({.drive = std::move(*candidates[i].drive),
                          .state = State::kGood,
                          .id = env.rng().next() | 1});
  }
  found.marked = RegionSet(found.label.regions());
  found.marked.add_all();
  return found;
}

Result<void> check_fits(const std::vector<Candidate>& candidates, const MirrorLabel& newest,
                        const MirrorOptions& options) {
  if (candidates.size() != newest.leg_count + options.spares) {
    return fail(Errc::kInvalid,
                "as many drives as the mirror has legs, and spares=N for those beyond; its legs",
                static_cast<int32_t>(newest.leg_count));
  }
  for (size_t i = 0; i < candidates.size(); ++i) {
    const Candidate& one = candidates[i];
    if (!one.is_there) continue;
    const Geometry& shape = (*one.drive)->geometry();
    if (shape.block_size != newest.block_size ||
        shape.blocks < newest.data_offset + newest.data_blocks) {
      return fail(Errc::kInvalid, "a drive is smaller than the mirror, or has other blocks; drive",
                  static_cast<int32_t>(i + 1));
    }
    if (!one.label) continue;
    if (one.label->mirror_id != newest.mirror_id) {
      return fail(Errc::kInvalid, "the drives belong to different mirrors; one that differs",
                  static_cast<int32_t>(i + 1));
    }
    for (size_t k = 0; k < i; ++k) {
      if (candidates[k].label && candidates[k].label->own_id == one.label->own_id) {
        return fail(Errc::kInvalid, "two drives are copies of the same leg; the second one",
                    static_cast<int32_t>(i + 1));
      }
    }
  }
  return {};
}

Result<MirrorFound> assemble(std::vector<Candidate>& candidates, const MirrorLabel& newest,
                             const MirrorOptions& options) {
  if (Result<void> fits = check_fits(candidates, newest, options); !fits) return fail(fits.error());
  MirrorFound found{.label = newest};
  found.marked = RegionSet(newest.regions());
  std::vector<Candidate*> chosen;  // by leg; null: not there
  for (size_t i = 0; i < newest.leg_count; ++i) {
    const auto is_it = [&](const Candidate& one) {
      return one.label && one.label->own_id == newest.legs[i].id;
    };
    const auto at = std::ranges::find_if(candidates, is_it);
    Candidate* one = at == candidates.end() ? nullptr : &*at;
    chosen.push_back(one);
    Leg leg{.id = newest.legs[i].id, .stale_from = newest.legs[i].stale_from};
    if (one != nullptr) {
      const MirrorLabel& own = *one->label;
      switch (judge_leg({.newest_generation = newest.generation,
                         .stale_from = leg.stale_from,
                         .own_generation = own.generation,
                         .own_stale_from = own.find(own.own_id)->stale_from})) {
        case LegVerdict::kGood:
          leg.state = State::kGood;
          break;
        case LegVerdict::kStale:
          leg.state = State::kCopying;
          break;
        case LegVerdict::kMissedLabels:
          leg.state = State::kCopying;
          leg.stale_from = Leg::kUnsaved;
          found.marked.add_all();
          break;
        case LegVerdict::kSplitBrain:
          return fail(Errc::kInvalid,
                      "split brain: each leg was written without the other. Choose one, and "
                      "discard the first 64K of the other to copy to it");
      }
    } else if (leg.stale_from == 0) {
      if (!options.degraded) {
        return fail(Errc::kUnreachable,
                    "a leg is missing that may have newer data: bring it back, or say "
                    "degraded=yes to go on without it; leg",
                    static_cast<int32_t>(i + 1));
      }
      leg.stale_from = Leg::kUnsaved;
    }
    found.legs.push_back(std::move(leg));
  }
  if (std::ranges::count(found.legs, State::kGood, &Leg::state) == 0) {
    return fail(Errc::kUnreachable, "no leg that is there has all data: bring back the others");
  }
  for (size_t i = 0; i < chosen.size(); ++i) {
    if (chosen[i] != nullptr) found.legs[i].drive = std::move(*chosen[i]->drive);
  }
  for (Candidate& one : candidates) {
    if (*one.drive == nullptr) continue;
    (one.is_there ? found.spares : found.unused).push_back(std::move(*one.drive));
  }
  return found;
}

// Bits of all good legs together; when none has a bitmap that can be read, every region.
task::Task<void> read_bitmaps(env::Env& env, MirrorFound& found, Buffer& memory) {
  bool has_one = false;
  for (Leg& leg : found.legs) {
    if (leg.state != State::kGood) continue;
    const Result<void> read =
        co_await leg.drive->read(Lba(kMirrorBitmapBlock), memory.bytes(), env.stop_token());
    if (!read) continue;
    const Result<RegionSet> bitmap = decode_bitmap(found.label, memory.bytes());
    if (!bitmap) continue;
    found.marked.add(*bitmap);
    has_one = true;
  }
  if (!has_one) found.marked.add_all();
}

// Hands the drives back to whoever gave them.
void give_back(std::vector<std::unique_ptr<Drive>>& below, MirrorFound& found) {
  below.clear();
  for (Leg& leg : found.legs) below.push_back(std::move(leg.drive));
  for (auto& drive : found.spares) below.push_back(std::move(drive));
  for (auto& drive : found.unused) below.push_back(std::move(drive));
}

task::Task<Result<MirrorFound>> look(env::Env& env, std::vector<std::unique_ptr<Drive>>& below,
                                     const MirrorOptions& options) {
  std::vector<Candidate> candidates;
  const MirrorLabel* newest = nullptr;
  for (std::unique_ptr<Drive>& drive : below) {
    Candidate one{.drive = &drive};
    if (drive != nullptr) {
      one.label = co_await read_mirror_label(env, *drive, env.stop_token());
      const Errc code = one.label ? Errc::kNotFound : one.label.error().code();
      const bool is_foreign =
          code == Errc::kInvalid || code == Errc::kCorrupt || code == Errc::kUnsupported;
      if (is_foreign) co_return fail(one.label.error());
      one.is_there = code == Errc::kNotFound;
    }
    candidates.push_back(std::move(one));
  }
  if (std::ranges::none_of(candidates, &Candidate::is_there)) {
    co_return fail(Errc::kUnreachable, "none of its drives can be read");
  }
  for (const Candidate& one : candidates) {
    if (one.label && (newest == nullptr || one.label->generation > newest->generation)) {
      newest = &*one.label;
    }
  }
  if (newest == nullptr || newest->generation == 1) co_return make_new(env, candidates, options);
  const MirrorLabel label = *newest;
  co_return assemble(candidates, label, options);
}

task::Task<Result<std::unique_ptr<Drive>>> open_mirror(ServiceParts parts) {
  const MirrorOptions options{
      .spares = parts.options.number("spares"),
      .degraded = parts.options.is_yes("degraded"),
      .rate = parts.options.number("rate"),
      .retry = Duration{static_cast<int64_t>(parts.options.number("retry_ms")) * 1'000'000}};
  uint32_t block_size = 0;
  for (const std::unique_ptr<Drive>& drive : parts.below) {
    if (drive == nullptr) continue;
    const uint32_t own = drive->geometry().block_size;
    if (block_size != 0 && own != block_size) {
      co_return fail(Errc::kInvalid, "its drives have different block sizes; one has",
                     static_cast<int32_t>(own));
    }
    block_size = own;
  }
  if (block_size == 0) co_return fail(Errc::kUnreachable, "none of its drives is there");
  Result<Buffer> label = parts.env.buffers().allocate(block_size);
  Result<Buffer> bitmap = parts.env.buffers().allocate(block_size);
  if (!label || !bitmap) co_return fail(Errc::kLimit, "buffers for the mirror's label");
  Result<MirrorFound> found = co_await look(parts.env, parts.below, options);
  if (!found) co_return fail(found.error());
  if (!found->is_new) {
    co_await read_bitmaps(parts.env, *found, *bitmap);
    if (parts.env.stop_token().requested()) {
      give_back(parts.below, *found);
      co_return fail(parts.env.stop_token().error());
    }
  }
  auto drive = std::make_unique<MirrorDrive>(parts.env, options, std::move(*found),
                                             std::move(*label), std::move(*bitmap));
  const Result<void> begun = co_await drive->begin();
  if (begun) co_return std::move(drive);
  co_await drive->close();
  co_return fail(begun.error());
}

constexpr ServiceOption kOptions[] = {
    {.key = "spares", .standard = "0", .what = "how many of the last drives wait", .most = 6},
    {.key = "degraded",
     .kind = ServiceOption::Kind::kYesNo,
     .standard = "no",
     .what = "go on without a leg that may have newer data"},
    {.key = "rate",
     .kind = ServiceOption::Kind::kSize,
     .standard = "0",
     .what = "bytes per second of copying; 0: any",
     .most = uint64_t{1} << 50},
    {.key = "retry_ms",
     .standard = "5000",
     .what = "how often a lost leg is tried again",
     .least = 1,
     .most = 3'600'000},
};

}  // namespace

task::Task<Result<MirrorLabel>> read_mirror_label(env::Env& env, Drive& drive,
                                                  task::CancelToken token) {
  Result<Buffer> memory = env.buffers().allocate(drive.geometry().block_size);
  if (!memory) co_return fail(memory.error());
  Result<MirrorLabel> newest = fail(Errc::kNotFound, "a mirror's label");
  for (uint64_t slot = 0; slot < 2; ++slot) {
    const Result<void> read = co_await drive.read(Lba(slot), memory->bytes(), token);
    Result<MirrorLabel> label = fail(Errc::kNotFound, "");
    if (read) {
      label = decode_label(memory->bytes());
    } else {
      label = fail(read.error());
    }
    const bool is_better = label ? !newest || label->generation > newest->generation
                                 : !newest && newest.error() == Errc::kNotFound;
    if (is_better) newest = label;
  }
  co_return newest;
}

std::optional<MirrorStatus> mirror_status(const Drive& drive) {
  const auto* mirror = dynamic_cast<const MirrorDrive*>(&without_joint(drive));
  if (mirror == nullptr) return std::nullopt;
  return mirror->status();
}

constexpr Service kMirror{.name = "mirror",
                          .what = "the same data on several drives (RAID 1)",
                          .example = "mirror({}, {})",
                          .below_min = 2,
                          .below_max = kMirrorLegsMax,
                          .survives_loss = true,
                          .options = kOptions,
                          .open = open_mirror};

}  // namespace cairn::drive
