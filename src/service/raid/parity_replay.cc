// SPDX-License-Identifier: Apache-2.0
#include "service/raid/parity_replay.h"

#include <utility>

#include "base/crc32c.h"
#include "service/raid/parity_update.h"

namespace cairn::drive {

task::Task<Result<void>> ParityReplay::run() {
  for (size_t leg = 0; leg < legs_.size(); ++leg) {
    if (legs_[leg].state != ParityLegs::State::kGood) continue;
    const Result<void> read = co_await read_log(leg);
    if (!read) co_return read;
  }
  for (const auto& [position, logged] : log_) {
    epoch_.note_change({logged.entry.first_row, logged.entry.rows});
    const Result<void> done = co_await carry_out(logged);
    if (!done) co_return done;
  }
  co_return Result<void>();
}

// Entries are found where they say they are. What else lies in a log, content that may look like an
// entry included, is of another place, epoch or id: ids are drawn, and no user of the drive knows
// them.
task::Task<Result<void>> ParityReplay::read_log(size_t leg) {
  const uint64_t size = context_.shape.block_size;
  Scratch memory;
  const uint64_t slice = context_.shape.slice;
  const Result<void> room = make_room(context_.env, memory, slice * size);
  if (!room) co_return room;
  uint64_t next = 0;
  for (uint64_t at = 0; at < context_.shape.log_blocks; at += slice) {
    const uint64_t count = std::min(slice, context_.shape.log_blocks - at);
    const MutableBytes piece = memory.first(count * size);
    ParityOutcome outcome;
    Join join;
    join.add();
    const Request request{.lba = Lba(context_.shape.log_offset + at), .blocks = count};
    co_await legs_.submit_to(leg, request, {&piece, 1}, outcome, join);
    if (outcome.done == 0) co_return co_await legs_.judge(outcome);
    for (; next < at + count; ++next) {
      const Result<ParityEntry> entry =
          decode_parity_entry(legs_.label(), piece.subspan((next - at) * size, size));
      if (!entry || entry->epoch != epoch_.number() || entry->position != next) continue;
      Logged& logged = log_.try_emplace(next, Logged{.entry = *entry}).first->second;
      if (entry->is_part_of(logged.entry)) {
        logged.have |= LegSet{1} << leg;
        logged.crc[leg] = entry->content_crc;
      }
      next += entry->blocks() - 1;
    }
  }
  co_return Result<void>();
}

task::Task<Result<void>> ParityReplay::carry_out(const Logged& logged) {
  const ParityEntry& entry = logged.entry;
  const auto needed = [this, &entry] { return entry.legs & legs_.in(ParityLegs::State::kGood); };
  ParityUpdate update{
      .rows = {entry.first_row, entry.rows},
      .kind = entry.is_zeroes ? Request::Kind::kWriteZeroes : Request::Kind::kWrite};
  for (size_t leg = 0; leg < legs_.size() && !entry.is_zeroes; ++leg) {
    if ((needed() >> leg & 1) == 0) continue;
    if ((logged.have >> leg & 1) == 0) co_return Result<void>();
    if (entry.rows > context_.shape.slice) {
      co_return fail(Errc::kCorrupt, "the size of an entry in parity's log");
    }
    const Result<void> room =
        make_room(context_.env, update.content[leg], context_.shape.bytes(entry.rows));
    if (!room) co_return room;
    const MutableBytes piece = update.content[leg].bytes();
    ParityOutcome outcome;
    Join join;
    join.add();
    const Request request{.lba = Lba(context_.shape.log_offset + entry.position + 1),
                          .blocks = entry.rows};
    co_await legs_.submit_to(leg, request, {&piece, 1}, outcome, join);
    const Result<void> judged = co_await legs_.judge(outcome);
    if (!judged) co_return judged;
    if (outcome.done != 0 && crc32c(piece) != logged.crc[leg]) co_return Result<void>();
  }
  if ((needed() & ~logged.have) != 0) co_return Result<void>();
  ParityOutcome outcome;
  Join join;
  for (size_t leg = 0; leg < legs_.size(); ++leg) {
    if ((needed() >> leg & 1) == 0) continue;
    join.add();
    context_.gate.spawn(legs_.place_on(leg, update, outcome, join));
  }
  const Result<void> all = co_await join.all();
  (void)all;  // judged leg by leg
  co_return co_await legs_.judge(outcome);
}

}  // namespace cairn::drive
