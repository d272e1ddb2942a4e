// SPDX-License-Identifier: Apache-2.0
// What the logs of legs hold, and carrying it out.
#include <algorithm>
#include <utility>

#include "base/crc32c.h"
#include "service/raid/parity_drive.h"

namespace cairn::drive {

// In the order of the log: later entries are about newer content. Whoever calls it has all units,
// or the drive is not open yet.
task::Task<Result<void>> ParityDrive::replay() {
  Log log;
  for (size_t leg = 0; leg < legs_.size(); ++leg) {
    if (legs_[leg].state != State::kGood) continue;
    const Result<void> read = co_await read_log(leg, log);
    if (!read) co_return read;
  }
  for (const auto& [position, logged] : log) {
    note_missed({logged.entry.first_row, logged.entry.rows});
    const Result<void> done = co_await replay_entry(logged);
    if (!done) co_return done;
  }
  co_return Result<void>();
}

// Entries are found where they say they are. What else lies in a log, content that may look like an
// entry included, is of another place, epoch or id: ids are drawn, and no user of the drive knows
// them.
task::Task<Result<void>> ParityDrive::read_log(size_t leg, Log& log) {
  const uint64_t size = geometry_.block_size;
  Scratch memory;
  if (Result<void> room = make_room(memory, slice_); !room) co_return room;
  uint64_t next = 0;
  for (uint64_t at = 0; at < label().log_blocks; at += slice_) {
    const uint64_t count = std::min<uint64_t>(slice_, label().log_blocks - at);
    const MutableBytes piece = memory.first(count * size);
    Outcome outcome;
    Join join;
    join.add();
    const Request request{.lba = Lba(label().log_offset() + at), .blocks = count};
    co_await submit_to(leg, request, {&piece, 1}, outcome, join);
    if (outcome.done == 0) co_return co_await judge(outcome);
    for (; next < at + count; ++next) {
      const Result<ParityEntry> entry =
          decode_parity_entry(label(), piece.subspan((next - at) * size, size));
      if (!entry || entry->epoch != epoch_ || entry->position != next) continue;
      Logged& logged = log.try_emplace(next, Logged{.entry = *entry}).first->second;
      if (entry->is_part_of(logged.entry)) {
        logged.have |= LegSet{1} << leg;
        logged.crc[leg] = entry->content_crc;
      }
      next += entry->blocks() - 1;
    }
  }
  co_return Result<void>();
}

task::Task<Result<void>> ParityDrive::replay_entry(const Logged& logged) {
  const ParityEntry& entry = logged.entry;
  const auto needed = [this, &entry] { return entry.legs & legs_in(State::kGood); };
  Update update{.rows = {entry.first_row, entry.rows},
                .kind = entry.is_zeroes ? Request::Kind::kWriteZeroes : Request::Kind::kWrite};
  for (size_t leg = 0; leg < legs_.size() && !entry.is_zeroes; ++leg) {
    if ((needed() >> leg & 1) == 0) continue;
    if ((logged.have >> leg & 1) == 0) co_return Result<void>();
    if (entry.rows > slice_) co_return fail(Errc::kCorrupt, "the size of an entry in parity's log");
    if (Result<void> room = make_room(update.content[leg], entry.rows); !room) co_return room;
    const MutableBytes piece = update.content[leg].bytes();
    Outcome outcome;
    Join join;
    join.add();
    const Request request{.lba = Lba(label().log_offset() + entry.position + 1),
                          .blocks = entry.rows};
    co_await submit_to(leg, request, {&piece, 1}, outcome, join);
    const Result<void> judged = co_await judge(outcome);
    if (!judged) co_return judged;
    if (outcome.done != 0 && crc32c(piece) != logged.crc[leg]) co_return Result<void>();
  }
  if ((needed() & ~logged.have) != 0) co_return Result<void>();
  Outcome outcome;
  Join join;
  for (size_t leg = 0; leg < legs_.size(); ++leg) {
    if ((needed() >> leg & 1) == 0) continue;
    join.add();
    gate().spawn(place_on(leg, update, outcome, join));
  }
  const Result<void> all = co_await join.all();
  (void)all;  // judged leg by leg
  co_return co_await judge(outcome);
}

}  // namespace cairn::drive
