// SPDX-License-Identifier: Apache-2.0
#include "service/mapped/thin.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/units.h"
#include "drive/size_text.h"
#include "service/common/space_concerns.h"
#include "service/mapped/chunk_table.h"
#include "service/mapped/mapped_drive.h"
#include "service/mapped/thin_format.h"

namespace cairn::drive {

namespace {

class ThinDrive final : public MappedDrive, JournalOwner, MapOwner {
 public:
  ThinDrive(env::Env& env, std::vector<std::unique_ptr<Drive>> below, Label label,
            const MappedLayout& layout, uint64_t warn_percent)
      : MappedDrive(env, std::move(below), layout.chunk_blocks),
        label_(std::move(label)),
        layout_(layout),
        claim_(env, this->below(), label_),
        warn_percent_(warn_percent),
        units_(this->below(), layout.place()),
        map_(layout.chunks()),
        guard_(env, *this, gate()) {
    guard_.add(this->below());
    set_guard(guard_);
    geometry_ = geometry_on(this->below().geometry(), layout.blocks, layout.chunk_blocks);
  }

  // Reads the map of a drive that was labelled, or begins a new one.
  task::Task<Result<void>> begin(bool is_new) {
    guard_.begin();
    const Result<void> started = co_await Journal::start(
        {env(), below(), layout_.journal(), kThinLabel, label_, *this, claim_}, is_new, journal_);
    if (started) units_.reclaim(env(), claim_);
    if (!started || !is_new) co_return started;
    label_.body = encode_layout(layout_);
    co_return co_await finish_label(env(), below(), kThinLabel, label_);
  }
  task::Task<Result<void>> save_label() {
    label_.body = encode_layout(layout_);
    co_return co_await write_label(env(), below(), kThinLabel, label_);
  }

  task::Task<Result<void>> resize(uint64_t blocks) override {
    const Result<void> turn = co_await resizing_.acquire();
    if (!turn) co_return turn;
    const task::Units mine(resizing_, 1);
    if (blocks < layout_.blocks) {
      co_return fail(Errc::kUnsupported, "a thin drive can only grow");
    }
    if (blocks / layout_.chunk_blocks >= kMappedChunksMax - 1) {
      co_return fail(Errc::kInvalid, "a thin drive has less than 2^32 chunks");
    }
    const uint64_t before = std::exchange(layout_.blocks, blocks);
    const Result<void> saved = co_await save_label();
    if (!saved) {
      layout_.blocks = before;
      co_return saved;
    }
    map_.resize(layout_.chunks());
    geometry_.blocks = blocks;
    co_return Result<void>();
  }

  task::Task<void> close() override {
    co_await gate().close();
    if (journal_ != nullptr) co_await journal_->close();
    co_await units_.close();
    co_await MappedDrive::close();
  }

  std::vector<Fact> facts() const override {
    const Space& space = units_.space();
    const uint64_t in_use = units_.used();
    return {{"chunk_bytes", layout_.chunk_blocks * geometry_.block_size},
            {"chunks", layout_.chunks()},
            {"chunks_below", space.units()},
            {"chunks_used", units_.used()},
            {"chunks_free", space.free()},
            {"chunks_returning", units_.returning()},
            {"used_percent", in_use * 100 / space.units()},
            {"is_low", in_use * 100 >= space.units() * warn_percent_ ? 1u : 0u}};
  }

  std::vector<Concern> concerns() const override {
    if (guard_.is_lost()) return guard_.concerns();
    std::vector<Concern> all =
        concerns_of(SpaceUse{.used = units_.used(),
                             .units = units_.space().units(),
                             .wanted = layout_.chunks(),
                             .free = units_.space().free() + units_.returning(),
                             .warn_percent = warn_percent_});
    if (said_blocks_ != 0 && said_blocks_ < said_when_open_) {
      all.push_back({.health = Health::kOk,
                     .code = "larger_than_said",
                     .what = fmt::format(
                         "it has grown to {}, and its line says virtual={}: it keeps what it has; "
                         "write virtual={}, or leave virtual out",
                         text_bytes(said_when_open_ * geometry_.block_size),
                         size_text(said_blocks_ * geometry_.block_size),
                         size_text(said_when_open_ * geometry_.block_size))});
    }
    return all;
  }
  // Its line says so many blocks, 0 when it says nothing.
  void compare_with_line(uint64_t blocks) {
    said_blocks_ = blocks;
    said_when_open_ = layout_.blocks;
  }

 private:
  Result<void> replay(Bytes bytes) override {
    const Result<ThinRecord> record = decode_thin_record(bytes, layout_);
    if (!record) return fail(record.error());
    if (const uint32_t old = map_.get(record->chunk); old != 0) {
      if (Result<void> given = units_.space().give(old - 1); !given) return given;
    }
    map_.set(record->chunk, record->unit);
    return record->unit == 0 ? Result<void>() : units_.space().claim(record->unit - 1);
  }
  std::optional<uint64_t> save(uint64_t from, JournalRecords& records) const override {
    return map_.for_part(from, [&](uint64_t chunk, uint32_t unit) {
      if (unit != 0) records.add(ThinRecord{static_cast<uint32_t>(chunk), unit});
    });
  }

  Claim* claim() override { return &claim_; }
  Journal& map_journal() override { return *journal_; }
  task::Task<Result<void>> reload_map() override {
    co_await units_.restart();
    map_ = ChunkTable<uint32_t>(layout_.chunks());
    co_return co_await journal_->reload();
  }

  std::optional<Place> find(uint64_t chunk) const override {
    const uint32_t unit = map_.get(chunk);
    if (unit == 0) return std::nullopt;
    return Place{.unit = unit - 1};
  }
  bool is_own(uint64_t) const override { return true; }
  Spot spot(Place place) override {
    return {.drive = &below(), .block = units_.block_of(place.unit)};
  }
  task::Task<Result<Place>> allocate(task::CancelToken token) override {
    const Result<uint64_t> unit = co_await units_.take(*journal_, token);
    if (!unit) co_return fail(unit.error());
    co_return Place{.unit = *unit};
  }
  void forsake(Place place) override {
    const Result<void> given = units_.space().give(place.unit);
    CHECK(given.has_value());
  }
  void map(uint64_t chunk, Place place, Journal::Needs needs) override {
    const auto unit = static_cast<uint32_t>(place.unit + 1);
    map_.set(chunk, unit);
    journal_->add(ThinRecord{static_cast<uint32_t>(chunk), unit}, needs);
  }
  void unmap(uint64_t chunk) override {
    const uint64_t unit = map_.get(chunk) - 1;
    map_.set(chunk, 0);
    const uint64_t record =
        journal_->add(ThinRecord{static_cast<uint32_t>(chunk), 0}, Journal::Needs::kNothing);
    const Result<void> given = units_.space().give_after(unit, record);
    CHECK(given.has_value());
  }
  task::Task<Result<void>> commit(task::CancelToken token) override {
    Result<void> done = co_await journal_->commit(token);
    units_.return_some(*journal_);
    co_return done;
  }
  task::Task<Result<void>> sync(task::CancelToken token) override {
    Result<void> done = co_await journal_->sync(token);
    units_.return_some(*journal_);
    co_return done;
  }

  Label label_;
  MappedLayout layout_;
  Claim claim_;
  const uint64_t warn_percent_;
  uint64_t said_blocks_ = 0;     // by the line that it was opened with
  uint64_t said_when_open_ = 0;  // by the label, at that time
  Units units_;
  ChunkTable<uint32_t> map_;  // units, counted from 1
  std::unique_ptr<Journal> journal_;
  MapGuard guard_;
  task::Semaphore resizing_{1};
};

// What the drive is, or becomes. Chunks of another size are refused; a drive that has grown since
// its line was written keeps its size, for the line is often used again.
Result<MappedLayout> layout_of(const Geometry& below, const std::optional<Label>& label,
                               const ServiceOptions& options) {
  const uint64_t chunk = options.number("chunk");
  const uint64_t size = options.number("virtual");
  Result<MappedLayout> layout =
      label ? decode_layout(label->body, below)
            : plan_layout(below, {.chunk_bytes = chunk, .record_size = sizeof(ThinRecord)});
  if (!layout) return layout;
  if (chunk != 0 && chunk != layout->chunk_blocks * below.block_size) {
    return fail(Errc::kInvalid, "the drive below has chunks of another size: leave out chunk");
  }
  if (size % below.block_size != 0 ||
      size / below.block_size / layout->chunk_blocks >= kMappedChunksMax - 1) {
    return fail(Errc::kInvalid, "virtual is a multiple of the block and less than 2^32 chunks");
  }
  if (!label && size != 0) layout->blocks = size / below.block_size;
  return layout;
}

task::Task<Result<std::unique_ptr<Drive>>> open_thin(ServiceParts parts) {
  Drive& below = *parts.below[0];
  Result<std::optional<Label>> label =
      co_await find_label(parts.env, below, kThinLabel, {.may_format = parts.may_format});
  if (!label) co_return fail(label.error());
  const Result<MappedLayout> layout = layout_of(below.geometry(), *label, parts.options);
  if (!layout) co_return fail(layout.error());
  const bool is_new = !label->has_value();
  Label mine = is_new ? new_label(parts.env, below) : std::move(**label);
  auto drive = std::make_unique<ThinDrive>(parts.env, std::exchange(parts.below, {}),
                                           std::move(mine), *layout, parts.options.number("warn"));
  Result<void> begun = co_await drive->begin(is_new);
  const uint64_t wanted = parts.options.number("virtual") / drive->geometry().block_size;
  if (begun && wanted > layout->blocks) begun = co_await drive->resize(wanted);
  drive->compare_with_line(wanted);
  if (!begun) {
    co_await drive->close();
    co_return fail(begun.error());
  }
  co_return std::unique_ptr<Drive>(std::move(drive));
}

constexpr ServiceOption kOptions[] = {
    {.key = "virtual",
     .kind = ServiceOption::Kind::kSize,
     .default_value = "0",
     .what = "what the drive seems to have; 0: what fits",
     .max = uint64_t{1} << 60},
    {.key = "chunk",
     .kind = ServiceOption::Kind::kSize,
     .default_value = "0",
     .what = "the unit of space; 0: chosen by the size of the drive",
     .max = uint64_t{1} << 30},
    {.key = "warn",
     .default_value = "80",
     .what = "percent in use from which on is_low is told",
     .min = 1,
     .max = 100},
};

}  // namespace

constexpr Service kThin{.name = "thin",
                        .what = "space is taken when it is written",
                        .example = "thin({})",
                        .options = kOptions,
                        .open = open_thin};

}  // namespace cairn::drive
