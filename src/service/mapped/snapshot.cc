// SPDX-License-Identifier: Apache-2.0
#include "service/mapped/snapshot.h"

#include <algorithm>
#include <utility>

#include "service/mapped/snapshot_drive.h"

namespace cairn::drive {

namespace {

constexpr uint64_t kChunkMax = 65536;

Result<MappedLayout> layout_of(const Geometry& below, const std::optional<Label>& label,
                               const ServiceOptions& options) {
  const uint64_t chunk = options.number("chunk");
  Result<MappedLayout> layout =
      label ? decode_layout(label->body, below)
            : plan_layout(below, {.chunk_bytes = chunk,
                                  .chunk_bytes_max = kChunkMax,
                                  .records_per_unit = kSnapshotRecordsPerUnit,
                                  .records_more = kSnapshotRecordsMore,
                                  .record_size = sizeof(SnapshotRecord)});
  if (!layout) return layout;
  if (chunk != 0 && chunk != layout->chunk_blocks * below.block_size) {
    return fail(Errc::kInvalid, "the drive below has chunks of another size: leave out chunk");
  }
  if (!label) {
    const uint64_t kept_back = layout->units * options.number("reserve") / 100;
    layout->blocks = std::max<uint64_t>(layout->units - kept_back, 1) * layout->chunk_blocks;
  }
  return layout;
}

task::Task<Result<std::unique_ptr<Drive>>> open_snapshot(ServiceParts parts) {
  Drive& below = *parts.below[0];
  Result<std::optional<Label>> label =
      co_await find_label(parts.env, below, kSnapshotLabel, {.may_format = parts.may_format});
  if (!label) co_return fail(label.error());
  const Result<MappedLayout> layout = layout_of(below.geometry(), *label, parts.options);
  if (!layout) co_return fail(layout.error());
  const bool is_new = !label->has_value();
  Label mine = is_new ? new_label(parts.env, below) : std::move(**label);
  auto drive = std::make_unique<SnapshotDrive>(parts.env, std::exchange(parts.below, {}),
                                               std::move(mine), *layout);
  const Result<void> begun = co_await drive->begin(is_new);
  if (!begun) {
    co_await drive->close();
    co_return fail(begun.error());
  }
  co_return std::unique_ptr<Drive>(std::move(drive));
}

constexpr ServiceOption kOptions[] = {
    {.key = "chunk",
     .kind = ServiceOption::Kind::kSize,
     .default_value = "0",
     .what = "the unit of places; 0: chosen by the size of the drive",
     .max = uint64_t{1} << 30},
    {.key = "reserve",
     .default_value = "20",
     .what = "percent of the space that is kept back for versions",
     .max = 95},
};

}  // namespace

constexpr Service kSnapshot{.name = "snapshot",
                            .what = "versions that stay as they were, and clones of them",
                            .example = "snapshot({})",
                            .options = kOptions,
                            .open = open_snapshot};

}  // namespace cairn::drive
