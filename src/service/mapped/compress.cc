// SPDX-License-Identifier: Apache-2.0
#include "service/mapped/compress.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "drive/pieces.h"
#include "drive/scatter.h"
#include "drive/scratch.h"
#include "service/common/space_concerns.h"
#include "service/mapped/chunk_table.h"
#include "service/mapped/codec.h"
#include "service/mapped/compress_format.h"
#include "service/mapped/placed_drive.h"

namespace cairn::drive {

namespace {

constexpr uint64_t kChunkBlocks = kCompressChunkBlocks;

struct CompressOptions {
  Codec codec = Codec::kLz4;
  int level = 0;
};

class CompressDrive final : public PlacedDrive {
 public:
  CompressDrive(env::Env& env, std::vector<std::unique_ptr<Drive>> below, PlacedFound found,
                const CompressOptions& options)
      : PlacedDrive(env, std::move(below), std::move(found), kCompressLabel, kChunkBlocks),
        compressor_(options.codec, options.level),
        map_(layout().blocks / kChunkBlocks) {}

  Extent extent_at(Lba lba, uint64_t max) const override {
    if (guard().is_lost()) return {.blocks = std::min(max, geometry_.blocks - lba.value())};
    const auto is_hole = [this](uint64_t block) {
      return map_.get(block / kChunkBlocks).count == 0;
    };
    Extent extent{.blocks = 0, .is_hole = is_hole(lba.value())};
    while (extent.blocks < max && is_hole(lba.value() + extent.blocks) == extent.is_hole) {
      extent.blocks += kChunkBlocks - (lba.value() + extent.blocks) % kChunkBlocks;
    }
    extent.blocks = std::min(extent.blocks, max);
    return extent;
  }

  std::vector<Fact> facts() const override {
    const uint64_t logical = chunks_ * kChunkBlocks;
    return {{"blocks_below", space().units()},
            {"blocks_used", used()},
            {"blocks_free", unused()},
            {"blocks_written", logical},
            {"blocks_saved", logical - stored_},
            {"chunks_uncompressed", uncompressed_},
            {"used_percent", used() * 100 / space().units()}};
  }
  std::vector<Concern> concerns() const override {
    if (guard().is_lost()) return guard().concerns();
    return concerns_of(SpaceUse{.used = used(),
                                .units = space().units(),
                                .wanted = geometry_.blocks,
                                .free = unused(),
                                .needed = kChunkBlocks});
  }

 private:
  static constexpr uint64_t chunk_of(uint64_t block) { return block / kChunkBlocks; }
  size_t chunk_bytes() const { return kChunkBlocks * geometry_.block_size; }
  // The part of `blocks` in the chunk with block `at`.
  static Span part_at(Span blocks, uint64_t at) {
    const uint64_t end = std::min(blocks.first + blocks.count, (chunk_of(at) + 1) * kChunkBlocks);
    return {at, end - at};
  }
  static bool is_whole(Span part) { return part.count == kChunkBlocks; }

  // The map and the counts.
  void set(uint64_t number, const CompressedChunk& chunk) {
    const CompressedChunk old = map_.get(number);
    chunks_ += (chunk.count > 0 ? 1 : 0) - (old.count > 0 ? 1 : 0);
    stored_ += uint64_t{chunk.count} - old.count;
    uncompressed_ += (chunk.count == kChunkBlocks ? 1 : 0) - (old.count == kChunkBlocks ? 1 : 0);
    map_.set(number, chunk);
  }
  void remap(uint64_t number, const CompressedChunk& chunk) {
    const CompressedChunk old = map_.get(number);
    const CompressRecord record{.number = static_cast<uint32_t>(number), .chunk = chunk};
    set(number, chunk);
    const uint64_t added =
        journal().add(record, chunk.count > 0 ? Journal::Needs::kData : Journal::Needs::kNothing);
    for (const uint32_t unit : old.used()) release(unit, added);
  }

  void forget_map() override {
    map_ = ChunkTable<CompressedChunk>(layout().blocks / kChunkBlocks);
    chunks_ = 0;
    stored_ = 0;
    uncompressed_ = 0;
  }

  Result<void> replay(Bytes bytes) override {
    const Result<CompressRecord> record =
        decode_compress_record(bytes, layout(), geometry_.block_size);
    if (!record) return fail(record.error());
    for (const uint32_t unit : map_.get(record->number).used()) {
      if (Result<void> given = space().give(unit); !given) return given;
    }
    for (const uint32_t unit : record->chunk.used()) {
      if (Result<void> claimed = space().claim(unit); !claimed) return claimed;
    }
    set(record->number, record->chunk);
    return {};
  }
  std::optional<uint64_t> save(uint64_t from, JournalRecords& records) const override {
    return map_.for_part(from, [&](uint64_t number, const CompressedChunk& chunk) {
      if (chunk.count == 0) return;
      records.add(CompressRecord{.number = static_cast<uint32_t>(number), .chunk = chunk});
    });
  }

  task::Task<Result<void>> read_blocks(Span blocks, Memory memory,
                                       task::CancelToken token) override {
    for (uint64_t at = blocks.first; at < blocks.first + blocks.count;) {
      const Span part = part_at(blocks, at);
      const size_t offset = (at - blocks.first) * geometry_.block_size;
      const Result<void> done = co_await read_part(part, memory, offset, token);
      if (!done) co_return done;
      at += part.count;
    }
    co_return Result<void>();
  }

  task::Task<Result<void>> read_part(Span part, Memory memory, size_t offset,
                                     task::CancelToken token) {
    const CompressedChunk chunk = map_.get(chunk_of(part.first));
    const size_t bytes = part.count * geometry_.block_size;
    if (chunk.count == 0) {
      Pieces pieces;
      pieces.add(memory, offset, bytes);
      for (const MutableBytes piece : pieces.all()) std::ranges::fill(piece, std::byte{0});
      co_return Result<void>();
    }
    if (chunk.codec == static_cast<uint8_t>(Codec::kNone)) {
      const auto units = chunk.used().subspan(part.first % kChunkBlocks, part.count);
      co_return co_await read_units(units, memory, offset, token);
    }
    Result<Scratch> whole = Scratch::make(env(), chunk_bytes());
    if (!whole) co_return fail(whole.error());
    const Result<void> done = co_await read_chunk(chunk, whole->bytes(), token);
    if (!done) co_return done;
    const size_t skipped = part.first % kChunkBlocks * geometry_.block_size;
    scatter(whole->bytes().subspan(skipped, bytes), memory, offset);
    co_return done;
  }

  // All of a chunk that is no hole.
  task::Task<Result<void>> read_chunk(const CompressedChunk chunk, MutableBytes into,
                                      task::CancelToken token) {
    const auto codec = static_cast<Codec>(chunk.codec);
    if (codec == Codec::kNone) {
      co_return co_await read_units(chunk.used(), {&into, 1}, 0, token);
    }
    Result<Scratch> stored = Scratch::make(env(), chunk.count * size_t{geometry_.block_size});
    if (!stored) co_return fail(stored.error());
    const MutableBytes piece = stored->bytes();
    const Result<void> done = co_await read_units(chunk.used(), {&piece, 1}, 0, token);
    if (!done) co_return done;
    co_return decompress(codec, piece.first(chunk.bytes), into);
  }

  task::Task<Result<void>> write_blocks(Span blocks, Memory memory,
                                        task::CancelToken token) override {
    Result<Scratch> chunk = Scratch::make(env(), chunk_bytes());
    if (!chunk) co_return fail(chunk.error());
    for (uint64_t at = blocks.first; at < blocks.first + blocks.count;) {
      const Span part = part_at(blocks, at);
      Result<void> done = co_await fill(part, chunk->bytes(), token);
      if (!done) co_return done;
      const size_t skipped = at % kChunkBlocks * geometry_.block_size;
      gather(memory, (at - blocks.first) * geometry_.block_size,
             chunk->bytes().subspan(skipped, part.count * geometry_.block_size));
      done = co_await place(chunk_of(at), chunk->bytes(), token);
      if (!done) co_return done;
      at += part.count;
    }
    co_return Result<void>();
  }

  // The chunk as it is, unless the part is all of it.
  task::Task<Result<void>> fill(Span part, MutableBytes into, task::CancelToken token) {
    if (is_whole(part)) co_return Result<void>();
    const CompressedChunk chunk = map_.get(chunk_of(part.first));
    if (chunk.count > 0) co_return co_await read_chunk(chunk, into, token);
    std::ranges::fill(into, std::byte{0});
    co_return Result<void>();
  }

  // The chunk gets these bytes, in a new place.
  task::Task<Result<void>> place(uint64_t number, MutableBytes bytes, task::CancelToken token) {
    if (is_zero(bytes)) {
      if (map_.get(number).count > 0) remap(number, {});
      co_return Result<void>();
    }
    Result<Scratch> packed = Scratch::make(env(), chunk_bytes());
    if (!packed) co_return fail(packed.error());
    // One block must be saved, or it is not worth it.
    const size_t max = chunk_bytes() - geometry_.block_size;
    const std::optional<size_t> size = compressor_.compress(bytes, packed->first(max));
    CompressedChunk chunk{.bytes = static_cast<uint32_t>(size.value_or(chunk_bytes())),
                          .count = kChunkBlocks,
                          .codec = static_cast<uint8_t>(size ? compressor_.codec() : Codec::kNone)};
    MutableBytes piece = bytes;
    if (size) {
      chunk.count = static_cast<uint8_t>((*size + geometry_.block_size - 1) / geometry_.block_size);
      piece = packed->first(chunk.count * size_t{geometry_.block_size});
      std::ranges::fill(piece.subspan(*size), std::byte{0});  // nothing of others shows
    }
    const Result<std::vector<uint32_t>> units = co_await take(chunk.count, token);
    if (!units) co_return fail(units.error());
    const Result<void> done = co_await write_units(*units, {&piece, 1}, 0, token);
    if (done) {
      std::ranges::copy(*units, chunk.units.begin());
      remap(number, chunk);
    } else {
      give_back(*units);
    }
    settled();
    co_return done;
  }

  task::Task<Result<void>> zero_blocks(Span blocks, task::CancelToken token) override {
    for (uint64_t at = blocks.first; at < blocks.first + blocks.count;) {
      const Span part = part_at(blocks, at);
      at += part.count;
      const uint64_t number = chunk_of(part.first);
      if (map_.get(number).count == 0) continue;
      if (is_whole(part)) {
        remap(number, {});
        continue;
      }
      Result<Scratch> chunk = Scratch::make(env(), chunk_bytes());
      if (!chunk) co_return fail(chunk.error());
      Result<void> done = co_await fill(part, chunk->bytes(), token);
      if (!done) co_return done;
      const size_t skipped = part.first % kChunkBlocks * geometry_.block_size;
      std::ranges::fill(chunk->bytes().subspan(skipped, part.count * geometry_.block_size),
                        std::byte{0});
      done = co_await place(number, chunk->bytes(), token);
      if (!done) co_return done;
    }
    co_return Result<void>();
  }

  Compressor compressor_;
  ChunkTable<CompressedChunk> map_;
  uint64_t chunks_ = 0;  // that are no holes
  uint64_t stored_ = 0;  // blocks they take
  uint64_t uncompressed_ = 0;
};

task::Task<Result<std::unique_ptr<Drive>>> open_compress(ServiceParts parts) {
  const std::optional<Codec> codec = parse_codec(parts.options.text("codec"));
  if (!codec) co_return fail(Errc::kInvalid, "codec is lz4 or zstd");
  const auto level = static_cast<int>(parts.options.number("level"));
  if (level > codec_level_max(*codec)) {
    co_return fail(Errc::kInvalid, "level is too high for the codec; its highest",
                   codec_level_max(*codec));
  }
  if (parts.below[0]->geometry().block_size * kChunkBlocks > parts.env.buffers().size_max()) {
    co_return fail(Errc::kUnsupported, "the blocks below are too large to be compressed");
  }
  Result<PlacedFound> found =
      co_await look_for_placed(parts.env, *parts.below[0],
                               {.kind = kCompressLabel,
                                .virtual_bytes = parts.options.number("virtual"),
                                .grain = kChunkBlocks,
                                .record_size = sizeof(CompressRecord),
                                .may_format = parts.may_format});
  if (!found) co_return fail(found.error());
  auto drive = std::make_unique<CompressDrive>(parts.env, std::move(parts.below), std::move(*found),
                                               CompressOptions{.codec = *codec, .level = level});
  const Result<void> begun = co_await drive->begin();
  if (begun) co_return std::move(drive);
  co_await drive->close();
  co_return fail(begun.error());
}

constexpr ServiceOption kOptions[] = {
    {.key = "codec",
     .kind = ServiceOption::Kind::kText,
     .default_value = "lz4",
     .what = "lz4 or zstd, for what is written from now on"},
    {.key = "level",
     .default_value = "0",
     .what = "more is smaller and slower; 0: the codec's own",
     .max = 100},
    {.key = "virtual",
     .kind = ServiceOption::Kind::kSize,
     .default_value = "0",
     .what = "what the drive seems to have; 0: what fits uncompressed",
     .max = uint64_t{1} << 60},
};

}  // namespace

constexpr Service kCompress{.name = "compress",
                            .what = "chunks take as little space as lz4 or zstd make of them",
                            .example = "compress({})",
                            .options = kOptions,
                            .open = open_compress};

}  // namespace cairn::drive
