// SPDX-License-Identifier: Apache-2.0
// Which legs a mirror opens with: judged by their labels, before anything is written.
#include <algorithm>
#include <utility>

#include "base/units.h"
#include "drive/copy_blocks.h"
#include "drive/scratch.h"
#include "service/common/joint.h"
#include "service/raid/leg_opening.h"
#include "service/raid/leg_search.h"
#include "service/raid/mirror.h"
#include "service/raid/mirror_drive.h"

namespace cairn::drive {

namespace {

constexpr uint64_t kRegionBytesMin = 64_KiB;
constexpr uint64_t kHeadBytes = 64_KiB;  // before the data, so that it stays aligned

using MirrorCandidates = Candidates<MirrorLabel>;

MirrorLabel make_label(env::Env& env, const MirrorCandidates& candidates, size_t legs) {
  const uint32_t block_size = candidates[0].shape().block_size;
  uint64_t smallest = UINT64_MAX;
  for (const auto& one : candidates) smallest = std::min(smallest, one.shape().blocks);
  MirrorLabel label{.block_size = block_size, .leg_count = static_cast<uint32_t>(legs)};
  label.id = {env.rng().next(), env.rng().next()};
  label.data_offset = std::max<uint64_t>(kHeadBytes / block_size, kMirrorBitmapBlock + 2);
  label.data_blocks = smallest > label.data_offset ? smallest - label.data_offset : 0;
  label.region_blocks = std::max<uint64_t>(kRegionBytesMin / block_size, 1);
  while (label.data_blocks > 0 && label.regions() > mirror_regions_max(block_size)) {
    label.region_blocks *= 2;
  }
  return label;
}

// New legs may differ wherever one of them is no hole.
void mark_contents(MirrorFound& found) {
  const MirrorLabel& label = found.label;
  for (const Leg& leg : found.legs) {
    for (uint64_t at = 0; at < label.data_blocks;) {
      const uint64_t holes = holes_at(*leg.drive, label.data_offset + at, label.data_blocks - at);
      at += holes;
      if (holes > 0) continue;
      found.marked.add(at / label.region_blocks);
      at = (at / label.region_blocks + 1) * label.region_blocks;
    }
  }
}

// All are blank, or were when a crash stopped this very step.
Result<MirrorFound> make_new(env::Env& env, MirrorCandidates& candidates,
                             const MirrorOptions& options) {
  for (const auto& one : candidates) {
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
  found.legs = new_legs(env, candidates, found.label.leg_count);
  found.marked = RegionSet(found.label.regions());
  mark_contents(found);
  return found;
}

Result<MirrorFound> assemble(MirrorCandidates& candidates, const MirrorLabel& newest,
                             const MirrorOptions& options) {
  if (candidates.size() != newest.leg_count + options.spares) {
    return fail(Errc::kInvalid,
                "as many drives as the mirror has legs, and spares=N for those beyond; its legs",
                static_cast<int32_t>(newest.leg_count));
  }
  MirrorFound found{.label = newest, .marked = RegionSet(newest.regions())};
  Result<Legs> legs = match_legs(
      candidates, newest, {.degraded = options.degraded, .moved = options.moved, .good_min = 1},
      found.marked);
  if (!legs) return fail(legs.error());
  found.legs = std::move(*legs);
  return found;
}

// Bits of all good legs together; when none has a bitmap that can be read, every region.
task::Task<void> read_bitmaps(env::Env& env, MirrorFound& found, Buffer& memory) {
  bool has_one = false;
  for (Leg& leg : found.legs) {
    if (leg.state != Leg::State::kGood) continue;
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

constexpr LegOpening<MirrorLabel, MirrorFound, MirrorOptions> kOpening{
    .read = read_mirror_label, .make_new = make_new, .assemble = assemble};

task::Task<Result<std::unique_ptr<Drive>>> open_mirror(ServiceParts parts) {
  const MirrorOptions options{.spares = parts.options.number("spares"),
                              .degraded = parts.options.is_yes("degraded"),
                              .moved = parts.options.is_yes("moved"),
                              .rate = parts.options.number("rate"),
                              .retry = retry_of(parts.options)};
  const Result<uint32_t> block_size = common_block_size(parts.below);
  if (!block_size) co_return fail(block_size.error());
  Result<Buffer> label = parts.env.buffers().allocate(*block_size);
  Result<Buffer> bitmap = parts.env.buffers().allocate(*block_size);
  if (!label || !bitmap) co_return fail(Errc::kLimit, "buffers for the mirror's label");
  Result<MirrorFound> found = co_await find_legs(parts, options, kOpening);
  if (!found) co_return fail(found.error());
  if (!found->is_new) {
    co_await read_bitmaps(parts.env, *found, *bitmap);
    if (parts.env.stop_token().requested()) {
      found->legs.give_back(parts.below);
      co_return fail(parts.env.stop_token().error());
    }
  }
  const MirrorLabel newest = found->label;
  auto drive = std::make_unique<MirrorDrive>(parts.env, options, std::move(*found), parts.late,
                                             std::move(*label), std::move(*bitmap));
  co_return co_await begin_or_close(std::move(drive), newest);
}

constexpr ServiceOption kOptions[] = {
    {.key = "spares", .default_value = "0", .what = "how many of the last drives wait", .max = 6},
    kDegradedOption,
    kMovedOption,
    rate_option("bytes per second of copying; 0: any"),
    kRetryOption,
};

}  // namespace

task::Task<Result<MirrorLabel>> read_mirror_label(env::Env& env, Drive& drive,
                                                  task::CancelToken token) {
  const size_t size = drive.geometry().block_size;
  Result<Scratch> memory = Scratch::make(env, kMirrorBitmapBlock * size);
  if (!memory) co_return fail(memory.error());
  // Unreadable is not old: what it says may be newer, and that others are stale.
  const Result<void> read = co_await drive.read(Lba(0), memory->bytes(), token);
  if (!read) co_return fail(read.error());
  Result<MirrorLabel> newest = fail(Errc::kNotFound, "a mirror's label");
  for (uint64_t slot = 0; slot < kMirrorBitmapBlock; ++slot) {
    Result<MirrorLabel> label = decode_label(memory->bytes().subspan(slot * size, size));
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
