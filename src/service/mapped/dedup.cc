// SPDX-License-Identifier: Apache-2.0
#include "service/mapped/dedup.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/check.h"
#include "drive/pieces.h"
#include "drive/scatter.h"
#include "drive/scratch.h"
#include "service/common/space_concerns.h"
#include "service/mapped/chunk_table.h"
#include "service/mapped/content_index.h"
#include "service/mapped/dedup_format.h"
#include "service/mapped/placed_drive.h"

namespace cairn::drive {

namespace {

constexpr uint64_t kBatch = 16;  // blocks that are placed together

SipKey draw_key(env::Env& env) {
  SipKey key{};
  env.fill_secret(std::as_writable_bytes(std::span(key)));
  return key;
}

class DedupDrive final : public PlacedDrive {
 public:
  DedupDrive(env::Env& env, std::vector<std::unique_ptr<Drive>> below, PlacedFound found)
      : PlacedDrive(env, std::move(below), std::move(found), kDedupLabel, 1),
        map_(layout().blocks),
        index_(layout().units, draw_key(env)) {}

  Extent extent_at(Lba lba, uint64_t max) const override {
    if (guard().is_lost()) return {.blocks = std::min(max, geometry_.blocks - lba.value())};
    Extent extent{.blocks = 0, .is_hole = map_.get(lba.value()) == 0};
    while (extent.blocks < max && (map_.get(lba.value() + extent.blocks) == 0) == extent.is_hole) {
      ++extent.blocks;
    }
    return extent;
  }

  std::vector<Fact> facts() const override {
    return {{"blocks_below", space().units()},
            {"blocks_used", used()},
            {"blocks_free", unused()},
            {"blocks_written", written_},
            {"blocks_saved", written_ - stored_},
            {"collisions", collisions_},
            {"used_percent", used() * 100 / space().units()}};
  }
  std::vector<Concern> concerns() const override {
    if (guard().is_lost()) return guard().concerns();
    return concerns_of(SpaceUse{
        .used = used(), .units = space().units(), .wanted = geometry_.blocks, .free = unused()});
  }

 private:
  // What becomes of one block of a write.
  struct Fate {
    uint64_t hash = 0;
    uint32_t unit = 0;
    bool is_zero = false;
    bool is_new = false;  // its data must be written to the unit
  };

  static Result<void> damaged() { return fail(Errc::kCorrupt, "the map is damaged"); }
  Result<void> replay(Bytes bytes) override {
    const Result<DedupRecord> record = decode_dedup_record(bytes, layout());
    if (!record) return fail(record.error());
    if (const uint32_t old = map_.get(record->block); old != 0 && drop(old - 1)) {
      if (Result<void> given = space().give(old - 1); !given) return given;
    }
    if (record->unit != 0) {
      const uint32_t unit = record->unit - 1;
      if (!space().is_used(unit)) {
        if (Result<void> claimed = space().claim(unit); !claimed) return claimed;
        add(unit, record->hash);
      } else if (index_.hash(unit) != record->hash || !index_.refer(unit)) {
        return damaged();
      }
    }
    set(record->block, record->unit);
    return {};
  }
  std::optional<uint64_t> save(uint64_t from, JournalRecords& records) const override {
    return map_.for_part(from, [&](uint64_t block, uint32_t unit) {
      if (unit == 0) return;
      records.add(DedupRecord{static_cast<uint32_t>(block), unit, index_.hash(unit - 1)});
    });
  }

  void forget_map() override {
    map_ = ChunkTable<uint32_t>(layout().blocks);
    index_ = ContentIndex(layout().units, draw_key(env()));
    written_ = 0;
    stored_ = 0;
  }

  // The map, the index and their counts.
  void set(uint64_t block, uint32_t unit) {
    written_ += (unit != 0 ? 1 : 0) - (map_.get(block) != 0 ? 1 : 0);
    map_.set(block, unit);
  }
  void add(uint32_t unit, uint64_t hash) {
    index_.add(unit, hash);
    ++stored_;
  }
  bool drop(uint32_t unit) {
    if (!index_.drop(unit)) return false;
    --stored_;
    return true;
  }
  // The block gets a unit, whose reference it takes over; 0: it becomes a hole.
  void remap(uint64_t block, uint32_t unit, uint64_t hash) {
    const uint32_t old = map_.get(block);
    set(block, unit);
    const uint64_t record =
        journal().add(DedupRecord{static_cast<uint32_t>(block), unit, hash},
                      unit != 0 ? Journal::Needs::kData : Journal::Needs::kNothing);
    if (old != 0 && drop(old - 1)) release(old - 1, record);
  }
  // A reference that no record has told of.
  void unrefer(uint32_t unit) {
    if (drop(unit)) release(unit, journal().added());
  }

  task::Task<Result<void>> read_blocks(Span blocks, Memory memory,
                                       task::CancelToken token) override {
    const uint32_t size = geometry_.block_size;
    for (uint64_t done = 0; done < blocks.count;) {
      std::vector<uint32_t> units;
      const bool is_hole = map_.get(blocks.first + done) == 0;
      const uint64_t start = done;
      for (; done < blocks.count && (map_.get(blocks.first + done) == 0) == is_hole; ++done) {
        if (!is_hole) units.push_back(map_.get(blocks.first + done) - 1);
      }
      if (is_hole) {
        Pieces pieces;
        pieces.add(memory, start * size, (done - start) * size);
        for (const MutableBytes piece : pieces.all()) std::ranges::fill(piece, std::byte{0});
        continue;
      }
      const Result<void> read = co_await read_units(units, memory, start * size, token);
      if (!read) co_return read;
    }
    co_return Result<void>();
  }

  task::Task<Result<void>> write_blocks(Span blocks, Memory memory,
                                        task::CancelToken token) override {
    Result<Scratch> one = Scratch::make(env(), geometry_.block_size);
    Result<Scratch> other = Scratch::make(env(), geometry_.block_size);
    if (!one || !other) co_return fail(Errc::kLimit, "buffers are all out");
    for (uint64_t done = 0; done < blocks.count;) {
      const uint64_t count = std::min(kBatch, blocks.count - done);
      std::vector<Fate> fates;
      Result<void> placed;
      for (uint64_t i = 0; placed && i < count; ++i) {
        gather(memory, (done + i) * geometry_.block_size, one->bytes());
        Result<Fate> fate = co_await find_twin(one->bytes(), other->bytes(), token);
        if (fate) {
          fates.push_back(*fate);
        } else {
          placed = fail(fate.error());
        }
      }
      if (placed) placed = co_await place(fates, memory, done * geometry_.block_size, token);
      if (!placed) {
        for (const Fate& fate : fates) {
          if (!fate.is_new && !fate.is_zero) unrefer(fate.unit);
        }
        co_return placed;
      }
      for (uint64_t i = 0; i < count; ++i) {
        const Fate& fate = fates[i];
        const uint64_t block = blocks.first + done + i;
        if (!fate.is_zero) {
          remap(block, fate.unit + 1, fate.hash);
        } else if (map_.get(block) != 0) {
          remap(block, 0, 0);
        }
      }
      done += count;
    }
    co_return Result<void>();
  }

  // A unit that holds these bytes, with a reference for the caller; or none.
  task::Task<Result<Fate>> find_twin(MutableBytes bytes, MutableBytes memory,
                                     task::CancelToken token) {
    if (is_zero(bytes)) co_return Fate{.is_zero = true};
    Fate fate{.hash = content_hash(bytes), .is_new = true};
    const std::optional<uint32_t> found = index_.find(fate.hash);
    if (!found || !index_.refer(*found)) co_return fate;
    const uint32_t units[] = {*found};
    const Result<void> read = co_await read_units(units, {&memory, 1}, 0, token);
    if (read && std::ranges::equal(bytes, memory)) {
      fate.unit = *found;
      fate.is_new = false;
      co_return fate;
    }
    unrefer(*found);
    if (token.requested()) co_return fail(token.error());
    // One that cannot be read is no reason to refuse what is written.
    if (read) ++collisions_;
    co_return fate;
  }

  // New blocks of a batch get units, and are written there.
  task::Task<Result<void>> place(std::vector<Fate>& fates, Memory memory, size_t offset,
                                 task::CancelToken token) {
    const auto count = static_cast<size_t>(std::ranges::count(fates, true, &Fate::is_new));
    if (count == 0) co_return Result<void>();
    const Result<std::vector<uint32_t>> units = co_await take(count, token);
    if (!units) co_return fail(units.error());
    Pieces pieces;
    size_t next = 0;
    for (size_t i = 0; i < fates.size(); ++i) {
      if (!fates[i].is_new) continue;
      fates[i].unit = (*units)[next++];
      pieces.add(memory, offset + i * geometry_.block_size, geometry_.block_size);
    }
    const Result<void> done = co_await write_units(*units, pieces.all(), 0, token);
    if (done) {
      for (const Fate& fate : fates) {
        if (fate.is_new) add(fate.unit, fate.hash);
      }
    } else {
      give_back(*units);
    }
    settled();
    co_return done;
  }

  task::Task<Result<void>> zero_blocks(Span blocks, task::CancelToken) override {
    for (uint64_t i = 0; i < blocks.count; ++i) {
      if (map_.get(blocks.first + i) != 0) remap(blocks.first + i, 0, 0);
    }
    co_return Result<void>();
  }

  ChunkTable<uint32_t> map_;  // units, counted from 1
  ContentIndex index_;
  uint64_t written_ = 0;  // blocks that are no holes
  uint64_t stored_ = 0;   // units they refer to
  uint64_t collisions_ = 0;
};

task::Task<Result<std::unique_ptr<Drive>>> open_dedup(ServiceParts parts) {
  Result<PlacedFound> found =
      co_await look_for_placed(parts.env, *parts.below[0],
                               {.kind = kDedupLabel,
                                .virtual_bytes = parts.options.number("virtual"),
                                .record_size = sizeof(DedupRecord),
                                .may_format = parts.may_format});
  if (!found) co_return fail(found.error());
  auto drive = std::make_unique<DedupDrive>(parts.env, std::move(parts.below), std::move(*found));
  const Result<void> begun = co_await drive->begin();
  if (begun) co_return std::move(drive);
  co_await drive->close();
  co_return fail(begun.error());
}

constexpr ServiceOption kOptions[] = {
    {.key = "virtual",
     .kind = ServiceOption::Kind::kSize,
     .default_value = "0",
     .what = "what the drive seems to have; 0: what fits when all blocks differ",
     .max = uint64_t{1} << 60},
};

}  // namespace

constexpr Service kDedup{.name = "dedup",
                         .what = "equal blocks take the space of one",
                         .example = "dedup({})",
                         .options = kOptions,
                         .open = open_dedup};

}  // namespace cairn::drive
