// SPDX-License-Identifier: Apache-2.0
#include "service/raid/parity_legs.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "drive/scratch.h"
#include "service/common/label.h"

namespace cairn::drive {

ParityLegs::ParityLegs(const ParityContext& context, Listener& listener, Legs legs,
                       const ParityLabel& label, uint64_t writer)
    : context_(context),
      listener_(listener),
      legs_(std::move(legs)),
      claim_(context.env, *this, legs_, context.gate),
      labels_(*this, legs_, claim_, label, writer) {}

LegSet ParityLegs::in(State state) const {
  LegSet set = 0;
  for (size_t i = 0; i < legs_.size(); ++i) {
    if (legs_[i].state == state) set |= LegSet{1} << i;
  }
  return set;
}

SymbolSet ParityLegs::symbols_on(uint64_t row, LegSet legs) const {
  SymbolSet set = 0;
  for (size_t symbol = 0; symbol < context_.shape.layout.legs; ++symbol) {
    if ((legs >> context_.shape.layout.leg_of(row, symbol) & 1) != 0) set |= SymbolSet{1} << symbol;
  }
  return set;
}

bool ParityLegs::drop(size_t leg) {
  Leg& lost = legs_[leg];
  if (lost.state == State::kLost) return true;
  const bool was_good = lost.state == State::kGood;
  if (was_good) {
    if (count(State::kGood) == context_.shape.layout.data) return false;
    lost.stale_from = Leg::kUnsaved;
    labels_.note_change();
  }
  lost.state = State::kLost;
  context_.env.trace().record("parity.leg_lost", leg, label().generation);
  listener_.leg_is_lost(was_good);
  return true;
}

// What a leg took into its log is there, whatever it forgot: where parity cannot replace it, that
// is put into place again.
void ParityLegs::look() {
  for (size_t leg = 0; leg < legs_.size(); ++leg) {
    if (!is_written(leg) || !legs_[leg].has_changed()) continue;
    context_.env.trace().record("parity.leg_changed", leg, label().generation);
    if (drop(leg)) continue;
    legs_[leg].remember();
    doubtful_ |= LegSet{1} << leg;
    ++doubts_;
    listener_.leg_is_doubtful();
  }
}

Result<void> ParityLegs::believed(size_t leg, const Result<void>& done) {
  look();
  if (is_trusted(leg) || (!done && blames_leg(done.error()))) return done;
  return fail(Errc::kIo, "the leg was restarted, and may lack what was written");
}

task::Task<Result<void>> ParityLegs::lose(LegSet legs) {
  for (size_t leg = 0; leg < legs_.size(); ++leg) {
    if ((legs >> leg & 1) == 0) continue;
    if (!drop(leg)) co_return fail(Errc::kIo, "more legs fail than parity can replace");
  }
  co_return co_await labels_.save();
}

task::Task<Result<void>> ParityLegs::judge(ParityOutcome outcome) {
  if (!outcome.other) co_return outcome.other;
  if (outcome.failed == 0) co_return Result<void>();
  co_return co_await lose(outcome.failed);
}

// A leg that does not do what it must, for whatever reason, lacks something from then on.
void ParityLegs::note(size_t leg, const Result<void>& done, ParityOutcome& outcome) {
  if (done) {
    outcome.done |= LegSet{1} << leg;
  } else if (done.error() == Errc::kLimit || done.error() == Errc::kCancelled) {
    outcome.other = done;
  } else {
    outcome.failed |= LegSet{1} << leg;
    if (outcome.failure) outcome.failure = done;
  }
}

task::Task<void> ParityLegs::submit_to(size_t leg, Request request, Memory memory,
                                       ParityOutcome& outcome, Join& join) {
  const Result<void> done = co_await legs_[leg].drive->submit(request, memory);
  note(leg, done, outcome);
  join.finish(done);
}

task::Task<ParityOutcome> ParityLegs::submit_to_all(Request request, Memory memory) {
  ParityOutcome outcome;
  Join join;
  for (size_t leg = 0; leg < legs_.size(); ++leg) {
    if (!is_written(leg)) continue;
    join.add();
    context_.gate.spawn(submit_to(leg, request, memory, outcome, join));
  }
  const Result<void> all = co_await join.all();
  (void)all;  // judged leg by leg
  co_return outcome;
}

task::Task<void> ParityLegs::zero_on(size_t leg, Request request, ParityOutcome& outcome,
                                     Join& join) {
  Drive& drive = *legs_[leg].drive;
  Result<void> done = co_await drive.submit(request, {});
  const auto is_unsupported = [&done] { return !done && done.error() == Errc::kUnsupported; };
  if (is_unsupported() && request.kind == Request::Kind::kDiscard) {
    request.kind = Request::Kind::kWriteZeroes;
    done = co_await drive.submit(request, {});
  }
  if (is_unsupported()) {
    Scratch zeroes;
    done = make_room(context_.env, zeroes, context_.shape.bytes(context_.shape.slice));
    if (done) std::ranges::fill(zeroes.bytes(), std::byte{0});
    const uint64_t end = request.lba.value() + request.blocks;
    for (uint64_t at = request.lba.value(); done && at < end; at += context_.shape.slice) {
      const uint64_t bytes = context_.shape.bytes(std::min(context_.shape.slice, end - at));
      done = co_await drive.write(Lba(at), zeroes.first(bytes));
    }
  }
  note(leg, done, outcome);
  join.finish(done);
}

task::Task<void> ParityLegs::place_on(size_t leg, ParityUpdate& update, ParityOutcome& outcome,
                                      Join& join) {
  const Request request{.kind = update.kind,
                        .keep_space = update.keep_space,
                        .priority = update.priority,
                        .lba = context_.shape.lba(update.rows.first),
                        .blocks = update.rows.count};
  if (update.is_zeroes()) co_return co_await zero_on(leg, request, outcome, join);
  const MutableBytes piece = update.content[leg].bytes();
  co_await submit_to(leg, request, {&piece, 1}, outcome, join);
}

task::Task<Result<void>> ParityLegs::check_claim(task::CancelToken token) {
  return claim_.check(label().generation, token);
}

bool ParityLegs::give_up(size_t leg, const Error& why) { return blames_leg(why) && drop(leg); }

task::Task<void> ParityLegs::bring_up_to_date(size_t leg) {
  const Result<void> written = co_await labels_.bring_up_to_date(leg);
  if (!written) drop(leg);
}

task::Task<Result<void>> ParityLegs::write_label_on(size_t leg, const ParityLabel& label) {
  ParityLabel one = label;
  one.own = static_cast<uint8_t>(leg);
  one.medium = legs_[leg].medium;
  Drive& drive = *legs_[leg].drive;
  Label own = encode_parity_label(one, drive.geometry().blocks);
  --own.generation;  // put_label() counts it up
  co_return co_await put_label(context_.env, drive, kParityLabel, own);
}

task::Task<Result<LegsClaim::Seen>> ParityLegs::look_at_label(size_t leg, task::CancelToken token) {
  const Result<std::optional<Label>> found =
      co_await read_label(context_.env, *legs_[leg].drive, kParityLabel, token);
  if (!found) co_return fail(found.error());
  if (!*found) co_return LegsClaim::Seen{};
  co_return LegsClaim::Seen{
      .is_others = (*found)->id == label().id && (*found)->writer != label().writer,
      .generation = (*found)->generation};
}

void ParityLegs::leg_is_silent(size_t leg) {
  const bool dropped = drop(leg);
  (void)dropped;  // if not, it is waited for
}

}  // namespace cairn::drive
