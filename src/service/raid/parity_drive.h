// SPDX-License-Identifier: Apache-2.0
// ParityDrive: the working parts of parity.h, which has the contract. Internal.
//
// A leg's state goes down (good or copying to lost) at any time, and up only while no update is
// under way: then no update knows a leg as worse than its log does.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/buffer.h"
#include "base/error.h"
#include "drive/join.h"
#include "drive/ranges.h"
#include "drive/scratch.h"
#include "env/env.h"
#include "service/common/claim.h"
#include "service/common/pace.h"
#include "service/common/region_set.h"
#include "service/common/service_drive.h"
#include "service/raid/leg_labels.h"
#include "service/raid/leg_reviver.h"
#include "service/raid/legs.h"
#include "service/raid/legs_claim.h"
#include "service/raid/parity.h"
#include "service/raid/parity_code.h"
#include "service/raid/parity_format.h"
#include "service/raid/parity_layout.h"
#include "task/deadline.h"
#include "task/sync.h"

namespace cairn::drive {

struct ParityOptions {
  size_t parity = 1;
  uint64_t chunk_bytes = 0;
  size_t spares = 0;
  bool degraded = false;
  bool moved = false;
  uint64_t rate = 0;  // bytes per second of copying and scrubbing; 0: any
  Duration retry;
};

// What opening found, and the drive starts with.
struct ParityFound {
  ParityLabel label;
  Legs legs;
  ParityState state;
  bool states_differ = false;  // a crash came between two legs
  bool is_new = false;         // all is to be written
};

// The newest label of a leg. kNotFound: it is blank. Errors as read_label and decode_parity_label.
task::Task<Result<ParityLabel>> read_parity_label(env::Env& env, Drive& drive,
                                                  task::CancelToken token);

class ParityDrive final : public ServiceDrive,
                          private LegReviver::Owner,
                          private LegsClaim::Owner,
                          private LegLabels<ParityLabel>::Owner {
 public:
  // `slice` is the most rows of one update.
  ParityDrive(env::Env& env, ParityOptions options, ParityFound found, LateDrives* late,
              uint64_t slice, Buffer state_block);

  // Puts what was found onto the legs and carries out what their logs demand. Once, before any
  // request. `newest` is the label as it was found.
  task::Task<Result<void>> begin(ParityLabel newest);
  task::Task<void> close() override;
  ParityStatus status() const;
  std::vector<Fact> facts() const override;
  // Of the whole: legs come and go.
  Incarnation incarnation() const override {
    return {.medium = (label().id[0] ^ label().id[1]) | 1, .opening = opening_};
  }
  std::vector<Concern> concerns() const override;
  std::vector<Job> jobs() const override;
  task::Task<std::expected<std::string, std::string>> tell(std::vector<std::string> words) override;

 private:
  using State = Leg::State;
  using Memory = std::span<const MutableBytes>;
  using LegSet = SymbolSet;
  using Buffers = std::array<Scratch, kSymbolsMax>;  // by symbol or by leg
  struct Outcome {
    SymbolSet done = 0;
    SymbolSet failed = 0;  // and the leg is to blame
    Result<void> failure;  // the first of them
    Result<void> other;    // an error that blames no leg
  };
  // A write as its request sees it; it may outlive the request, whose memory it then lacks.
  struct Waiting {
    task::Event done;
    Result<void> result;
  };
  struct Change {
    Request request;
    Memory data;
    Memory second;
    Waiting* waiting = nullptr;  // null: the request is gone
    bool is_comparing = false;   // its memory is lent to drives below
    task::CancelSource stop;
  };
  // New content of some legs' blocks of the same rows: logged, then put into place.
  struct Update {
    RowSpan rows;
    Request::Kind kind = Request::Kind::kWrite;
    bool keep_space = false;
    Priority priority = Priority::kNormal;
    uint64_t position = 0;  // in the log
    LegSet legs = 0;        // whose content is known
    Buffers content;        // by leg; none for zeroes
    task::Units units;
    bool is_stuck = false;  // it waits, or did, for a leg that cannot be dropped
    bool is_zeroes() const { return kind != Request::Kind::kWrite; }
  };

  // Reads (parity_read.cc).
  task::Task<Result<void>> run(DriveOp& op) override;
  task::Task<Result<void>> flush();
  task::Task<Result<void>> read(DriveOp& op);
  task::Task<Result<void>> read_blocks(const Request& request, Memory memory, bool is_alone,
                                       task::CancelToken token);
  task::Task<Result<void>> read_chunks(Request request, Memory memory, bool is_alone,
                                       task::CancelToken token);
  struct Part {
    Request request;
    RowSpan rows;
    size_t symbol = 0;
    uint64_t offset = 0;  // in the request's memory, in bytes
  };
  task::Task<void> read_part(Part part, Memory memory, bool is_alone, task::CancelToken token,
                             Join& join);
  static constexpr Duration kRowPatience = 10_s;
  // Rows, and for how long they are waited for.
  struct RowHold {
    RowHold(ParityDrive& drive, Ranges::Mode mode, RowSpan of, task::CancelToken token)
        : patience(drive.env_, drive.env_.now() + kRowPatience, token),
          rows(drive.ranges_, mode, of.first, of.count, patience.token()) {}
    task::Deadline patience;
    Ranges::Hold rows;
  };
  task::Task<Result<void>> take(std::optional<RowHold>& hold, Ranges::Mode mode, RowSpan rows,
                                task::CancelToken token);
  task::Task<Result<void>> read_chunk(Part part, Memory memory, bool is_alone,
                                      task::CancelToken token);
  task::Task<Result<void>> compute(Part part, Memory memory, bool is_alone,
                                   task::CancelToken token);
  task::Task<Result<void>> compute_slice(Part part, Memory memory, bool is_alone,
                                         task::CancelToken token);
  // Any symbols that suffice for all others, but those to `avoid`.
  task::Task<Result<SymbolSet>> read_word(RowSpan rows, SymbolSet avoid, Buffers& into,
                                          task::CancelToken token);
  task::Task<Outcome> read_symbols(RowSpan rows, SymbolSet symbols, Buffers& into,
                                   task::CancelToken token);
  task::Task<void> read_symbol(RowSpan rows, size_t symbol, MutableBytes into,
                               task::CancelToken token, Outcome& outcome, Join& join);
  task::Task<void> write_back(RowSpan rows, size_t symbol);
  // Writes what a leg should hold. A leg that does not take it is dropped.
  task::Task<Result<void>> mend(RowSpan rows, size_t symbol, MutableBytes content);

  // Changes (parity_write.cc).
  task::Task<Result<void>> change(DriveOp& op);
  task::Task<void> apply(std::unique_ptr<Change> change);
  task::Task<Result<void>> apply_alone(Change& change);
  void report(Change& change, const Result<void>& result);
  task::Task<void> write_segment(Change& change, ParityLayout::Segment segment, Join& join);
  task::Task<Result<void>> run_segment(Change& change, ParityLayout::Segment segment);
  task::Task<void> zero_stripes(Change& change, RowSpan rows, Join& join);
  Result<void> take_data(Change& change, const ParityLayout::Segment& segment, Buffers& fresh);
  task::Task<Result<void>> make_parity(RowSpan rows, SymbolSet written, Buffers& fresh,
                                       task::CancelToken token);

  // The log (parity_log.cc).
  task::Task<Result<void>> admit(Update& update, task::CancelToken token);
  task::Task<Result<void>> commit(Update& update, Change& change);
  enum class Step : uint8_t { kLog, kPlace };
  task::Task<Result<void>> carry_out(Update& update, Step step, Change& change);
  task::Task<void> log_on(size_t leg, Update& update, LegSet legs, Outcome& outcome, Join& join);
  task::Task<void> place_on(size_t leg, Update& update, Outcome& outcome, Join& join);
  task::Task<void> zero_on(size_t leg, Request request, Outcome& outcome, Join& join);
  task::Task<Result<void>> checkpoint(uint64_t room, task::CancelToken token);
  task::Task<Result<void>> checkpoint_alone();
  task::Task<Result<void>> save_state(uint64_t epoch);
  task::Task<Result<void>> write_state(uint64_t epoch, uint64_t sequence);
  uint64_t units_of(uint64_t rows) const;

  // What a log holds when the drive opens (parity_replay.cc).
  struct Logged {
    ParityEntry entry;
    LegSet have = 0;
    std::array<uint32_t, kSymbolsMax> crc{};
  };
  using Log = std::map<uint64_t, Logged>;  // by position
  task::Task<Result<void>> replay();
  task::Task<Result<void>> read_log(size_t leg, Log& log);
  task::Task<Result<void>> replay_entry(const Logged& logged);

  // Legs and labels (parity_legs.cc).
  size_t count(State state) const { return legs_.count(state); }
  bool is_whole() const { return legs_.are_whole(); }
  bool is_written(size_t leg) const { return legs_.is_written(leg); }
  LegSet legs_in(State state) const;
  // Whether what it holds is right.
  bool is_trusted(size_t leg) const {
    return legs_[leg].state == State::kGood && (doubtful_ >> leg & 1) == 0;
  }
  // The symbols of a row that lie on these legs.
  SymbolSet symbols_on(uint64_t row, LegSet legs) const;
  bool drop(size_t leg);
  // Drops legs whose drives lost something, or are others now. To be called whenever a leg has
  // given rows, before anybody believes them: it must not be in doubt, or lost, then.
  void look_at_legs();
  Result<void> believed(size_t leg, const Result<void>& done);
  task::Task<Result<void>> lose(LegSet legs);
  // What follows for legs from what they did. An error: nothing can be done about it now.
  task::Task<Result<void>> judge(Outcome outcome);
  static void note(size_t leg, const Result<void>& done, Outcome& outcome);
  task::Task<void> submit_to(size_t leg, Request request, Memory memory, Outcome& outcome,
                             Join& join);
  // On each leg that is written.
  task::Task<Outcome> submit_to_all(Request request, Memory memory);
  const ParityLabel& label() const { return labels_.label(); }
  task::Task<Result<void>> write_label_on(size_t leg, const ParityLabel& label) override;
  bool give_up(size_t leg, const Error& why) override;
  task::Task<Result<LegsClaim::Seen>> look_at_label(size_t leg, task::CancelToken token) override;
  void leg_is_silent(size_t leg) override;
  task::Task<Result<void>> check_state();
  task::Task<void> bring_up_to_date(size_t leg);
  task::Task<Result<void>> make_new();
  task::Task<Result<void>> begin_alone(const ParityLabel& newest);
  void note_missed(RowSpan rows);

  // What runs in the background (parity_rebuild.cc).
  void wake_copier();
  task::Task<void> copy_all();
  task::Task<bool> copy_region(size_t region);
  uint64_t hole_rows(RowSpan rows) const;
  task::Task<uint64_t> copy_rows(RowSpan rows);
  task::Task<bool> make_rows(RowSpan rows);
  task::Task<bool> zero_rows(RowSpan rows);
  task::Task<void> copy_to(size_t leg, Request request, MutableBytes content, Outcome& outcome,
                           Join& join);
  task::Task<Result<void>> finish_copying();
  task::Task<Result<void>> make_good();
  task::Task<bool> revive(size_t leg) override;
  task::Task<void> replace(size_t leg) override;
  // A drive that lacks everything gets it, in a lost leg's place: the one that is there, or a
  // spare.
  task::Task<bool> fill_anew(size_t leg, bool by_spare);
  bool fits(const Geometry& shape) const;
  void wake_recovery();
  task::Task<void> recover();
  task::Task<Newcomer> meet(std::unique_ptr<Drive>& drive) override;

  // Scrubbing (parity_scrub.cc).
  struct Scrubbed {
    uint64_t rows = 0;
    uint64_t wrong = 0;       // rows that were no words of the code
    uint64_t located = 0;     // of them, those of which one block was known to be wrong
    uint64_t unreadable = 0;  // blocks
  };
  task::Task<Result<void>> scrub(Scrubbed& found);
  task::Task<Result<void>> scrub_rows(RowSpan rows, Scrubbed& found);
  task::Task<Result<void>> scrub_alone(RowSpan rows, Scrubbed& found);
  task::Task<Result<void>> scrub_unreadable(RowSpan rows, Outcome outcome, Buffers& word,
                                            Scrubbed& found);
  SymbolSet find_wrong(const Buffers& word, uint64_t row, Buffers& right);

  // Rows from there on that one slice may have, up to `end`.
  RowSpan slice_at(uint64_t row, uint64_t end) const {
    return {row, std::min({slice_, end - row, layout_.chunk - row % layout_.chunk})};
  }
  Result<void> make_room(Scratch& buffer, uint64_t rows);
  std::array<std::byte*, kSymbolsMax> pointers(const Buffers& buffers) const;
  RowSpan regions_of(RowSpan rows) const {
    const uint64_t first = rows.first / region_rows_;
    return {first, (rows.end() - 1) / region_rows_ - first + 1};
  }

  env::Env& env_;
  const ParityOptions options_;
  const ParityLayout layout_;
  ParityCode code_;
  const uint64_t slice_;
  const uint64_t region_rows_;
  Legs legs_;
  const uint64_t opening_;
  const bool is_new_;
  Ranges ranges_;  // of rows: a change has its rows alone

  // Who computes has units for his memory; who has all of them is alone with all rows.
  static constexpr uint64_t kUnits = 2048;  // of 4 KiB
  task::Semaphore units_{kUnits};
  uint64_t epoch_ = 0;
  uint64_t state_sequence_ = 0;  // of the newest state
  bool states_differ_ = false;
  uint64_t log_head_ = 0;     // where the next entry goes
  bool must_replay_ = false;  // a flush failed: what is in place may not last
  LegSet doubtful_ = 0;       // good legs whose rows may be old, until the log was replayed
  uint64_t doubts_ = 0;       // times that a leg became doubtful
  bool recovery_runs_ = false;
  task::Event recovery_tried_;  // since the last doubt
  RegionSet touched_;           // changed in this epoch
  RegionSet missed_;            // that legs which are not good may lack
  RegionSet lacking_;           // of them, those that legs which are copied to still lack
  uint32_t stuck_ = 0;          // updates that wait for a leg that cannot be dropped
  uint32_t leftover_ = 0;       // changes whose requests have completed
  bool is_broken_ = false;      // an update was given up: the next start judges it

  LegsClaim claim_;
  LegLabels<ParityLabel> labels_;
  Buffer state_block_;

  task::CancelSource closing_;
  LegReviver reviver_;
  Pace pace_;
  size_t copied_region_ = 0;
  bool copy_again_ = false;  // regions were added meanwhile
  bool copier_runs_ = false;
  bool scrub_runs_ = false;
  uint64_t scrub_row_ = 0;
  uint64_t computed_ = 0;
  uint64_t mended_ = 0;
};

}  // namespace cairn::drive
