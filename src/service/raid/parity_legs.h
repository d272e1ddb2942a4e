// SPDX-License-Identifier: Apache-2.0
// ParityLegs: the legs of parity. Which of them have all data and are believed, what follows from
// what they did, and the labels that say so.
//
// A leg's state goes down (good or copying to lost) at any time, and up only while no update is
// under way: then no update knows a leg as worse than its log does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/error.h"
#include "drive/join.h"
#include "service/raid/leg_labels.h"
#include "service/raid/legs.h"
#include "service/raid/legs_claim.h"
#include "service/raid/parity_code.h"
#include "service/raid/parity_format.h"
#include "service/raid/parity_shape.h"
#include "service/raid/parity_update.h"
#include "task/task.h"

namespace cairn::drive {

using LegSet = SymbolSet;

// What became of requests to several legs, or for several symbols.
struct ParityOutcome {
  SymbolSet done = 0;
  SymbolSet failed = 0;  // and the leg is to blame
  Result<void> failure;  // the first of them
  Result<void> other;    // an error that blames no leg
};

// The newest label of a leg. kNotFound: it is blank. Errors as read_label and decode_parity_label.
task::Task<Result<ParityLabel>> read_parity_label(env::Env& env, Drive& drive,
                                                  task::CancelToken token);

class ParityLegs final : private LegsClaim::Owner, private LegLabels<ParityLabel>::Owner {
 public:
  using State = Leg::State;
  using Memory = std::span<const MutableBytes>;
  // Hears at once of what happens to legs.
  class Listener {
   public:
    // A leg is not written any more. One that was good lacks what comes from here on, and what is
    // in its caches.
    virtual void leg_is_lost(bool was_good) = 0;
    // A good leg that parity cannot replace may lack what was put into place: it is in doubt.
    virtual void leg_is_doubtful() = 0;

   protected:
    ~Listener() = default;
  };

  // `writer` is the number of this opening.
  ParityLegs(const ParityContext& context, Listener& listener, Legs legs, const ParityLabel& label,
             uint64_t writer);

  Legs& all() { return legs_; }
  const Legs& all() const { return legs_; }
  size_t size() const { return legs_.size(); }
  Leg& operator[](size_t leg) { return legs_[leg]; }
  const Leg& operator[](size_t leg) const { return legs_[leg]; }
  size_t count(State state) const { return legs_.count(state); }
  bool are_whole() const { return legs_.are_whole(); }
  bool is_written(size_t leg) const { return legs_.is_written(leg); }
  LegSet in(State state) const;
  // The symbols of a row that lie on these legs.
  SymbolSet symbols_on(uint64_t row, LegSet legs) const;

  // Whether what it holds is right.
  bool is_trusted(size_t leg) const {
    return legs_[leg].state == State::kGood && (doubtful_ >> leg & 1) == 0;
  }
  LegSet doubtful() const { return doubtful_; }
  // Times that a leg became doubtful.
  uint64_t doubts() const { return doubts_; }
  // The log was replayed since.
  void clear_doubts() { doubtful_ = 0; }

  // Its writes are missed from here on. False: parity cannot replace one more.
  bool drop(size_t leg);
  // Drops legs whose drives lost something, or are others now. To be called whenever a leg has
  // given rows, before anybody believes them: it must not be in doubt, or lost, then.
  void look();
  // What a leg's answer to a read is worth. kIo: it was restarted.
  Result<void> believed(size_t leg, const Result<void>& done);
  // Drops them, durably.
  task::Task<Result<void>> lose(LegSet legs);
  // What follows for legs from what they did. An error: nothing can be done about it now.
  task::Task<Result<void>> judge(ParityOutcome outcome);
  static void note(size_t leg, const Result<void>& done, ParityOutcome& outcome);

  // Requests to legs; what became of them is noted, and judged by the caller.
  task::Task<void> submit_to(size_t leg, Request request, Memory memory, ParityOutcome& outcome,
                             Join& join);
  // On each leg that is written.
  task::Task<ParityOutcome> submit_to_all(Request request, Memory memory);
  // A drive that cannot discard may write zeroes, and any can write.
  task::Task<void> zero_on(size_t leg, Request request, ParityOutcome& outcome, Join& join);
  task::Task<void> place_on(size_t leg, ParityUpdate& update, ParityOutcome& outcome, Join& join);

  const ParityLabel& label() const { return labels_.label(); }
  LegLabels<ParityLabel>& labels() { return labels_; }
  LegsClaim& claim() { return claim_; }
  // kDenied: the legs belong to another opening.
  task::Task<Result<void>> check_claim(task::CancelToken token = {});
  // The label that others have, on a leg that is to be copied to. One that does not take it is
  // lost.
  task::Task<void> bring_up_to_date(size_t leg);

 private:
  task::Task<Result<void>> write_label_on(size_t leg, const ParityLabel& label) override;
  bool give_up(size_t leg, const Error& why) override;
  task::Task<Result<LegsClaim::Seen>> look_at_label(size_t leg, task::CancelToken token) override;
  void leg_is_silent(size_t leg) override;

  const ParityContext& context_;
  Listener& listener_;
  Legs legs_;
  LegsClaim claim_;
  LegLabels<ParityLabel> labels_;
  LegSet doubtful_ = 0;  // good legs whose rows may be old, until the log was replayed
  uint64_t doubts_ = 0;
};

}  // namespace cairn::drive
