// SPDX-License-Identifier: Apache-2.0
#include "service/mapped/spillover_drive.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "task/deadline.h"
#include "task/when_all.h"

namespace cairn::drive {

SpilloverDrive::SpilloverDrive(env::Env& env, std::vector<std::unique_ptr<Drive>> below,
                               Found found, const SpilloverOptions& options)
    : MappedDrive(env, std::move(below), found.body.layout.chunk_blocks),
      found_(std::move(found)),
      claim_(env, this->below(kLocal), found_.label),
      chunk_bytes_(found_.body.layout.chunk_blocks * found_.label.block_size),
      units_{Units(this->below(kLocal), found_.body.layout.place()),
             Units(this->below(below_count() - 1), found_.body.place_elsewhere())},
      map_(found_.body.layout.chunks()),
      guard_(env, *this, gate()),
      closing_(env.stop_token()),
      drain_pause_(options.drain_pause),
      drain_pace_(env, options.rate) {
  geometry_ = geometry_on(this->below(kLocal).geometry(), found_.body.layout.blocks,
                          found_.body.layout.chunk_blocks);
  set_guard(guard_);
  guard_.add(this->below(kLocal));
  if (!has_elsewhere()) return;
  guard_.add(this->below(kElsewhere));
  const Geometry other = this->below(kElsewhere).geometry();
  geometry_.transfer_blocks = std::min(geometry_.transfer_blocks, other.transfer_blocks);
  geometry_.optimal_blocks = std::max(geometry_.optimal_blocks, other.optimal_blocks);
  geometry_.discard_blocks = std::max(geometry_.discard_blocks, other.discard_blocks);
  geometry_.atomic_blocks = std::gcd(geometry_.atomic_blocks, other.atomic_blocks);
  geometry_.volatile_cache |= other.volatile_cache;
  geometry_.copies = std::min(geometry_.copies, other.copies);
}

task::Task<Result<void>> SpilloverDrive::begin() {
  guard_.begin();
  Result<void> done = co_await Journal::start({env(), below(kLocal), found_.body.layout.journal(),
                                               kSpilloverLabel, found_.label, *this, claim_},
                                              found_.is_new, journal_);
  if (!done) co_return done;
  if (found_.is_elsewhere_blank) done = co_await label_drives();
  if (!done) co_return done;
  units_[kLocal].reclaim(env(), claim_);
  if (!has_elsewhere()) co_return done;
  units_[kElsewhere].reclaim(env(), claim_);
  wake_drainer();
  co_return done;
}

// The local label first: what a crash leaves is a pair of which the other drive is blank.
task::Task<Result<void>> SpilloverDrive::label_drives() {
  if (found_.is_new) {
    found_.label.body = encode_spillover_body(found_.body);
    Result<void> done = co_await finish_label(env(), below(kLocal), kSpilloverLabel, found_.label);
    if (!done) co_return done;
  }
  Label label = new_label(env(), below(kElsewhere));
  label.id = found_.label.id;
  SpilloverBody body = found_.body;
  body.role = SpilloverBody::kElsewhere;
  label.body = encode_spillover_body(body);
  const Result<void> begun = co_await begin_label(env(), below(kElsewhere), kSpilloverLabel, label);
  if (!begun) co_return begun;
  co_return co_await finish_label(env(), below(kElsewhere), kSpilloverLabel, label);
}

task::Task<void> SpilloverDrive::close() {
  closing_.request();
  co_await gate().close();
  if (journal_ != nullptr) co_await journal_->close();
  for (Units& units : units_) co_await units.close();
  co_await MappedDrive::close();
}

std::vector<Fact> SpilloverDrive::facts() const {
  return {{"chunk_bytes", chunk_bytes_},
          {"chunks_local", units_[kLocal].used()},
          {"chunks_local_free", units_[kLocal].space().free()},
          {"chunks_elsewhere", units_[kElsewhere].used()},
          {"chunks_elsewhere_free", has_elsewhere() ? units_[kElsewhere].space().free() : 0},
          {"chunks_drained", drained_},
          {"is_draining", is_draining_ ? 1u : 0u},
          {"is_elsewhere_lost", has_elsewhere() ? 0u : 1u}};
}

std::vector<Concern> SpilloverDrive::concerns() const {
  if (guard_.is_lost()) return guard_.concerns();
  if (has_elsewhere()) return {};
  const bool lacks_data = units_[kElsewhere].used() > 0;
  return {{.health = lacks_data ? Health::kFailing : Health::kDegraded,
           .code = "elsewhere_lost",
           .what = fmt::format(
               "it is not there, and with it {}: bring it back and open the stack again",
               lacks_data ? "data that did not fit the local drive, which cannot be read"
                          : "the room for what does not fit the local drive"),
           .below = kElsewhere}};
}

std::vector<Job> SpilloverDrive::jobs() const {
  if (!is_draining_) return {};
  return {{.name = "drain",
           .done = drained_ * chunk_bytes_,
           .total = (drained_ + units_[kElsewhere].used()) * chunk_bytes_}};
}

Result<void> SpilloverDrive::replay(Bytes bytes) {
  const Result<SpilloverRecord> record = decode_spillover_record(bytes, found_.body);
  if (!record) return fail(record.error());
  if (const std::optional<Place> old = find(record->chunk)) {
    if (Result<void> given = units_[old->leg].space().give(old->unit); !given) return given;
  }
  map_.set(record->chunk, record->place);
  if (record->place == 0) return {};
  const Place place = *find(record->chunk);
  return units_[place.leg].space().claim(place.unit);
}

Result<void> SpilloverDrive::check_replayed() const {
  if (!found_.is_elsewhere_blank || units_[kElsewhere].space().used() == 0) return {};
  return fail(Errc::kInvalid, "the drive elsewhere is blank, but chunks lie there");
}

task::Task<Result<void>> SpilloverDrive::reload_map() {
  for (Units& units : units_) co_await units.restart();
  map_ = ChunkTable<uint32_t>(found_.body.layout.chunks());
  co_return co_await journal_->reload();
}

std::optional<uint64_t> SpilloverDrive::save(uint64_t from, JournalRecords& records) const {
  return map_.for_part(from, [&](uint64_t chunk, uint32_t place) {
    if (place != 0) records.add(SpilloverRecord{static_cast<uint32_t>(chunk), place});
  });
}

std::optional<MappedDrive::Place> SpilloverDrive::find(uint64_t chunk) const {
  const uint32_t place = map_.get(chunk);
  if (place == 0) return std::nullopt;
  const bool is_elsewhere = (place & SpilloverRecord::kElsewhere) != 0;
  return Place{.leg = is_elsewhere ? uint32_t{kElsewhere} : uint32_t{kLocal},
               .unit = (place & ~SpilloverRecord::kElsewhere) - 1};
}

MappedDrive::Spot SpilloverDrive::spot(Place place) {
  if (place.leg == kElsewhere && !has_elsewhere()) return {};
  return {.drive = &below(place.leg), .block = units_[place.leg].block_of(place.unit)};
}

task::Task<Result<MappedDrive::Place>> SpilloverDrive::allocate(task::CancelToken token) {
  Result<uint64_t> unit = co_await units_[kLocal].take(*journal_, token);
  if (unit) co_return Place{.leg = kLocal, .unit = *unit};
  if (unit.error() != Errc::kNoSpace) co_return fail(unit.error());
  if (!has_elsewhere()) {
    co_return fail(Errc::kUnreachable, "the local drive is full and the one elsewhere is lost");
  }
  unit = co_await units_[kElsewhere].take(*journal_, token);
  if (!unit) co_return fail(unit.error());
  co_return Place{.leg = kElsewhere, .unit = *unit};
}

void SpilloverDrive::forsake(Place place) {
  const Result<void> given = units_[place.leg].space().give(place.unit);
  CHECK(given.has_value());
}

void SpilloverDrive::set(uint64_t chunk, uint32_t place, Journal::Needs needs) {
  const std::optional<Place> old = find(chunk);
  map_.set(chunk, place);
  const uint64_t record =
      journal_->add(SpilloverRecord{static_cast<uint32_t>(chunk), place}, needs);
  if (!old) return;
  const Result<void> given = units_[old->leg].space().give_after(old->unit, record);
  CHECK(given.has_value());
}

void SpilloverDrive::map(uint64_t chunk, Place place, Journal::Needs needs) {
  const auto unit = static_cast<uint32_t>(place.unit + 1);
  set(chunk, place.leg == kElsewhere ? unit | SpilloverRecord::kElsewhere : unit, needs);
}

void SpilloverDrive::unmap(uint64_t chunk) {
  const bool makes_room = find(chunk)->leg == kLocal;
  set(chunk, 0, Journal::Needs::kNothing);
  if (makes_room) wake_drainer();
}

void SpilloverDrive::return_some() {
  units_[kLocal].return_some(*journal_);
  if (has_elsewhere()) units_[kElsewhere].return_some(*journal_);
}

task::Task<Result<void>> SpilloverDrive::commit(task::CancelToken token) {
  Result<void> done = co_await journal_->commit(token);
  return_some();
  co_return done;
}

task::Task<Result<void>> SpilloverDrive::sync(task::CancelToken token) {
  const auto wait_for = [](Journal& journal, task::CancelToken given) -> task::Task<Result<void>> {
    co_return co_await journal.sync(given);
  };
  const uint64_t told = losses_elsewhere_.told();
  const auto [here, there] =
      co_await task::when_all(wait_for(*journal_, token), flush_elsewhere(token));
  return_some();
  const Result<void> done = here ? there : here;
  // The drive elsewhere tells once; a flush that overlaps that one must hear of it too.
  co_return token.requested() ? done : losses_elsewhere_.tell(told, done);
}

// Only what was written in place: new chunks are durable there before they are mapped. A drive that
// was lost with nothing unflushed on it fails nobody. Another flush that is on its way has said
// nothing yet: this one does its own.
task::Task<Result<void>> SpilloverDrive::flush_elsewhere(task::CancelToken token) {
  const uint64_t writes = writes_elsewhere_;
  if (!has_elsewhere() || flushed_elsewhere_ >= writes) co_return Result<void>();
  const Result<void> done = co_await below(kElsewhere).flush(token);
  losses_elsewhere_.flushed(done, token);
  if (done) flushed_elsewhere_ = std::max(flushed_elsewhere_, writes);
  co_return done;
}

bool SpilloverDrive::can_drain() const {
  return has_elsewhere() && units_[kElsewhere].used() > 0 && !closing_.requested();
}

void SpilloverDrive::wake_drainer() {
  if (!can_drain() || std::exchange(drainer_runs_, true)) return;
  gate().spawn(drain());
}

// Until everything is back, or nothing more fits: then the next discard wakes it again.
task::Task<void> SpilloverDrive::drain() {
  bool is_room = true;
  while (can_drain() && is_room) {
    const Result<void> slept = co_await task::sleep_for(env(), drain_pause_, closing_.token());
    if (!slept) break;
    const Result<void> mended = co_await guard_.mend(closing_.token());
    if (!mended) continue;
    Result<void> done = co_await commit(closing_.token());
    if (!done) continue;
    co_await units_[kLocal].return_now(*journal_);
    is_draining_ = true;
    const bool went_well = co_await drain_chunks();
    is_draining_ = false;
    // What was left elsewhere comes back once it is durable that it was.
    if (went_well) done = co_await commit(closing_.token());
    is_room = !went_well || units_[kLocal].space().free() + units_[kLocal].returning() > 0;
  }
  drainer_runs_ = false;
}

// False: a drive failed; it is tried again.
task::Task<bool> SpilloverDrive::drain_chunks() {
  while (can_drain() && units_[kLocal].space().free() > 0) {
    const std::optional<uint64_t> chunk = next_elsewhere();
    if (!chunk) co_return true;
    const Result<void> may = co_await drain_pace_.take(chunk_bytes_, closing_.token());
    if (!may) co_return false;
    const bool moved = co_await drain_chunk(*chunk);
    if (!moved) co_return false;
  }
  co_return true;
}

std::optional<uint64_t> SpilloverDrive::next_elsewhere() {
  for (uint64_t i = 0; i < map_.size(); ++i) {
    const uint64_t chunk = drain_next_;
    drain_next_ = (drain_next_ + 1) % map_.size();
    if ((map_.get(chunk) & SpilloverRecord::kElsewhere) != 0) return chunk;
  }
  return std::nullopt;
}

task::Task<bool> SpilloverDrive::drain_chunk(uint64_t chunk) {
  if (!guard_.is_sound()) co_return false;
  const MapGuard::Use use(guard_);
  Ranges::Hold alone = hold_alone(chunk, 1, closing_.token());
  const Result<void> held = co_await alone;
  if (!held) co_return false;
  const Result<void> mine = co_await claim_.check();
  if (!mine) co_return false;
  const std::optional<Place> from = find(chunk);
  if (!from || from->leg == kLocal) co_return true;
  const std::optional<uint64_t> unit = units_[kLocal].space().take();
  if (!unit) co_return true;
  const Place to{.leg = kLocal, .unit = *unit};
  const Result<void> copied = co_await fill(from, to, {.count = chunk_blocks()}, closing_.token());
  if (!copied || !guard_.is_sound()) {
    forsake(to);
    co_return false;
  }
  map(chunk, to, Journal::Needs::kData);
  ++drained_;
  co_return true;
}

}  // namespace cairn::drive
