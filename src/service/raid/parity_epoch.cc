// SPDX-License-Identifier: Apache-2.0
#include "service/raid/parity_epoch.h"

#include <utility>

#include "service/common/label.h"

namespace cairn::drive {

ParityEpoch::ParityEpoch(const ParityContext& context, ParityLegs& legs, ParityState found,
                         Buffer block)
    : context_(context),
      legs_(legs),
      block_(std::move(block)),
      epoch_(found.epoch),
      sequence_(found.sequence),
      touched_(context.shape.regions),
      missed_(std::move(found.missed)) {}

// What is changed in this epoch may be nowhere but in the caches of a leg that is lost.
void ParityEpoch::note_change(RowSpan rows) {
  const RowSpan regions = context_.shape.regions_of(rows);
  const bool is_missed = !legs_.are_whole();
  for (uint64_t region = regions.first; region < regions.end(); ++region) {
    touched_.add(region);
    if (is_missed) missed_.add(region);
  }
}

task::Task<Result<void>> ParityEpoch::save() { return save(epoch_); }

task::Task<Result<void>> ParityEpoch::end() {
  const Result<void> saved = co_await save(epoch_ + 1);
  if (!saved) co_return saved;
  ++epoch_;
  touched_ = RegionSet(touched_.size());
  co_return saved;
}

task::Task<Result<void>> ParityEpoch::level() { return write(epoch_, sequence_); }

// One that fails is written again in the same place: the other block has
// the state that is in force.
task::Task<Result<void>> ParityEpoch::save(uint64_t epoch) {
  const Result<void> written = co_await write(epoch, sequence_ + 1);
  if (written) ++sequence_;
  co_return written;
}

// A leg that is dropped meanwhile has missed more than was written.
task::Task<Result<void>> ParityEpoch::write(uint64_t epoch, uint64_t sequence) {
  const Result<void> owned = co_await legs_.check_claim();
  if (!owned) co_return owned;
  const MutableBytes piece = block_.bytes();
  const Request request{.kind = Request::Kind::kWrite,
                        .durable = true,
                        .metadata = true,
                        .lba = Lba(parity_state_block(sequence)),
                        .blocks = 1};
  for (;;) {
    encode_parity_state({.epoch = epoch, .missed = missed_, .sequence = sequence}, legs_.label(),
                        piece);
    const ParityOutcome outcome = co_await legs_.submit_to_all(request, {&piece, 1});
    if (outcome.failed == 0 && outcome.other) co_return Result<void>();
    const Result<void> judged = co_await legs_.judge(outcome);
    if (!judged) co_return judged;
  }
}

task::Task<Result<void>> ParityEpoch::check() {
  for (Leg& leg : legs_.all()) {
    if (leg.state != ParityLegs::State::kGood) continue;
    for (uint64_t slot = 0; slot < 2; ++slot) {
      const Result<void> read =
          co_await leg.drive->read(Lba(parity_state_block(slot)), block_.bytes());
      if (!read) continue;
      const Result<ParityState> state = decode_parity_state(legs_.label(), block_.bytes());
      if (state && state->sequence > sequence_) co_return fail(changed_meanwhile());
    }
  }
  co_return Result<void>();
}

}  // namespace cairn::drive
