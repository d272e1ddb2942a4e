// SPDX-License-Identifier: Apache-2.0
// How a pair of drives is found, or becomes one.
#include "service/mapped/spillover.h"

#include <algorithm>
#include <utility>

#include "service/mapped/spillover_drive.h"

namespace cairn::drive {

namespace {

using Found = SpilloverDrive::Found;

Result<SpilloverBody> plan(const Geometry& local, const Geometry& elsewhere, uint64_t chunk) {
  // The smaller drive decides on chunks, so that it has some.
  MappedPlan wish{.chunk_bytes = chunk, .record_size = sizeof(SpilloverRecord)};
  const Geometry& smaller = local.blocks <= elsewhere.blocks ? local : elsewhere;
  const Result<MappedLayout> sketch = plan_layout(smaller, wish);
  if (!sketch) return fail(sketch.error());
  SpilloverBody body;
  body.elsewhere_first = align_up(kLabelBlocks, sketch->chunk_blocks);
  body.elsewhere_units = (elsewhere.blocks - body.elsewhere_first) / sketch->chunk_blocks;
  wish.chunk_bytes = sketch->chunk_blocks * local.block_size;
  wish.records_more = body.elsewhere_units;
  const Result<MappedLayout> layout = plan_layout(local, wish);
  if (!layout) return fail(layout.error());
  if (body.elsewhere_units > kSpilloverUnitsMax || layout->units > kSpilloverUnitsMax) {
    return fail(Errc::kInvalid, "the drives have more than 2^31 chunks: choose a larger chunk");
  }
  body.layout = *layout;
  body.layout.blocks = body.blocks();
  return body;
}

Result<SpilloverBody> decode(const Label& label, const Geometry& local) {
  const Result<SpilloverBody> body = decode_spillover_body(label.body);
  if (!body) return body;
  if (body->role != SpilloverBody::kLocal) {
    return fail(Errc::kInvalid, "this was the drive elsewhere: name the drives in their order");
  }
  const Result<void> fits = check_spillover_body(*body, local);
  if (!fits) return fail(fits.error());
  return body;
}

// Whether the drive elsewhere is the one that the local drive knows; true: it is blank.
Result<bool> check_elsewhere(const std::optional<Label>& label, const Geometry& elsewhere,
                             const Found& found) {
  if (found.body.end_elsewhere() > elsewhere.blocks) {
    return fail(Errc::kInvalid, "the drive elsewhere is smaller than the one of this pair");
  }
  if (!label) return true;
  const Result<SpilloverBody> body = decode_spillover_body(label->body);
  if (!body || label->id != found.label.id || body->role != SpilloverBody::kElsewhere) {
    return fail(Errc::kInvalid, "the drive elsewhere belongs to another pair");
  }
  return false;
}

task::Task<Result<Found>> look(env::Env& env, Drive& local, Drive* elsewhere, uint64_t chunk,
                               bool may_format) {
  Result<std::optional<Label>> mine =
      co_await find_label(env, local, kSpilloverLabel, {.may_format = may_format});
  if (!mine) co_return fail(mine.error());
  std::optional<Label> other;
  if (elsewhere != nullptr) {
    if (elsewhere->geometry().block_size != local.geometry().block_size) {
      co_return fail(Errc::kInvalid, "its drives have different block sizes");
    }
    Result<std::optional<Label>> read = co_await find_label(
        env, *elsewhere, kSpilloverLabel, {.may_format = may_format, .number = 2});
    if (!read) co_return fail(read.error());
    other = std::move(*read);
  }
  Found found;
  if (!*mine) {
    if (elsewhere == nullptr) co_return fail(Errc::kUnreachable, "a new pair needs both drives");
    if (other) {
      co_return fail(Errc::kInvalid,
                     "the local drive is blank and the one elsewhere is not: bring back its local "
                     "drive, or discard the first 64 KiB elsewhere to begin anew");
    }
    Result<SpilloverBody> body = plan(local.geometry(), elsewhere->geometry(), chunk);
    if (!body) co_return fail(body.error());
    found.body = *body;
    found.label = new_label(env, local);
    found.is_new = true;
    found.is_elsewhere_blank = true;
    co_return found;
  }
  found.label = std::move(**mine);
  const Result<SpilloverBody> body = decode(found.label, local.geometry());
  if (!body) co_return fail(body.error());
  found.body = *body;
  if (chunk != 0 && chunk != body->layout.chunk_blocks * local.geometry().block_size) {
    co_return fail(Errc::kInvalid, "the drives have chunks of another size: leave out chunk");
  }
  if (elsewhere != nullptr) {
    const Result<bool> is_blank = check_elsewhere(other, elsewhere->geometry(), found);
    if (!is_blank) co_return fail(is_blank.error());
    found.is_elsewhere_blank = *is_blank;
  }
  co_return found;
}

task::Task<Result<std::unique_ptr<Drive>>> open_spillover(ServiceParts parts) {
  if (parts.below[0] == nullptr) {
    co_return fail(Errc::kUnreachable, "the local drive, which has the map, is missing");
  }
  Result<Found> found = co_await look(parts.env, *parts.below[0], parts.below[1].get(),
                                      parts.options.number("chunk"), parts.may_format);
  if (!found) co_return fail(found.error());
  const SpilloverOptions options{
      .rate = parts.options.number("rate"),
      .drain_pause = Duration{static_cast<int64_t>(parts.options.number("drain_ms")) * 1'000'000}};
  if (parts.below[1] == nullptr) parts.below.pop_back();
  auto drive = std::make_unique<SpilloverDrive>(parts.env, std::exchange(parts.below, {}),
                                                std::move(*found), options);
  const Result<void> begun = co_await drive->begin();
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
     .what = "the unit of places; 0: chosen by the size of the drives",
     .max = uint64_t{1} << 30},
    {.key = "rate",
     .kind = ServiceOption::Kind::kSize,
     .default_value = "0",
     .what = "bytes per second that drain back; 0: any",
     .max = uint64_t{1} << 50},
    {.key = "drain_ms",
     .default_value = "1000",
     .what = "milliseconds from room that appears to its use",
     .min = 1,
     .max = 3'600'000},
};

}  // namespace

constexpr Service kSpillover{.name = "spillover",
                             .what = "a local drive, and what does not fit it elsewhere",
                             .example = "spillover({}, {}, drain_ms=1)",
                             .below_min = 2,
                             .below_max = 2,
                             .survives_loss = true,
                             .options = kOptions,
                             .open = open_spillover};

}  // namespace cairn::drive
