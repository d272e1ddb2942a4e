// SPDX-License-Identifier: Apache-2.0
// What checksum opens with: judged by label and bitmap, before anything is written.
#include "service/integrity/checksum.h"

#include <utility>

#include "base/units.h"
#include "drive/scratch.h"
#include "service/integrity/checksum_drive.h"

namespace cairn::drive {

namespace {

Result<ChecksumFound> make_new(env::Env& env, const Drive& below) {
  const std::optional<ChecksumShape> shape = new_checksum_shape(below.geometry());
  if (!shape) return fail(Errc::kInvalid, "the drive below is too small: use 256K or more");
  ChecksumFound found{
      .label = new_label(env, below), .shape = *shape, .marked = {}, .is_new = true};
  found.shape.id = found.label.id;
  found.label.body = encode_checksum_body(found.shape);
  found.marked = RegionSet(found.shape.regions());
  return found;
}

task::Task<Result<ChecksumFound>> look(env::Env& env, Drive& below, bool may_format) {
  Result<std::optional<Label>> label =
      co_await find_label(env, below, kChecksumLabel, {.may_format = may_format});
  if (!label) co_return fail(label.error());
  if (!*label) co_return make_new(env, below);
  if ((*label)->block_size != below.geometry().block_size) {
    co_return fail(Errc::kInvalid, "the drive below has other blocks than it had");
  }
  const Result<ChecksumShape> shape = decode_checksum_body(**label);
  if (!shape) co_return fail(shape.error());
  Result<RegionSet> marked = co_await read_checksum_bitmap(env, below, *shape);
  if (!marked) co_return fail(marked.error());
  co_return ChecksumFound{
      .label = std::move(**label), .shape = *shape, .marked = std::move(*marked)};
}

task::Task<Result<std::unique_ptr<Drive>>> open_checksum(ServiceParts parts) {
  Result<ChecksumFound> found = co_await look(parts.env, *parts.below[0], parts.may_format);
  if (!found) co_return fail(found.error());
  const ChecksumOptions options{.cache = parts.options.number("cache"),
                                .rate = parts.options.number("rate")};
  auto drive = std::make_unique<ChecksumDrive>(parts.env, std::move(parts.below), std::move(*found),
                                               options);
  const Result<void> begun = co_await drive->begin();
  if (begun) co_return std::move(drive);
  co_await drive->close();
  co_return fail(begun.error());
}

constexpr ServiceOption kOptions[] = {
    {.key = "cache",
     .kind = ServiceOption::Kind::kSize,
     .default_value = "4M",
     .what = "memory for checksums",
     .max = uint64_t{1} << 40},
    {.key = "rate",
     .kind = ServiceOption::Kind::kSize,
     .default_value = "0",
     .what = "bytes per second of scrubbing; 0: any",
     .max = uint64_t{1} << 50},
};

}  // namespace

task::Task<Result<RegionSet>> read_checksum_bitmap(env::Env& env, Drive& below,
                                                   const ChecksumShape& shape) {
  Result<Scratch> memory = Scratch::make(env, shape.block_size);
  if (!memory) co_return fail(memory.error());
  const MutableBytes piece = memory->bytes();
  Result<RegionSet> first = fail(Errc::kCorrupt, "there is no bitmap");
  const unsigned copies = below.geometry().copies;
  for (unsigned copy = 0; copy <= (copies > 1 ? copies : 0); ++copy) {
    const Request request{
        .copy = static_cast<uint8_t>(copy), .lba = Lba(kChecksumBitmapBlock), .blocks = 1};
    const Result<void> done = co_await below.submit(request, {&piece, 1});
    Result<RegionSet> marked = done ? decode_checksum_bitmap(shape, piece) : fail(done.error());
    if (marked) co_return marked;
    if (copy == 0) first = std::move(marked);
  }
  co_return first;
}

constexpr Service kChecksum{.name = "checksum",
                            .what = "finds blocks that are not what was written, and mends them",
                            .example = "checksum({})",
                            .options = kOptions,
                            .open = open_checksum};

}  // namespace cairn::drive
