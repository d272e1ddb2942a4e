// SPDX-License-Identifier: Apache-2.0
// Journal: state of a service that survives crashes. The state itself is the owner's, in memory;
// the journal keeps the changes to it, in an area of the drive below.
//
//   journal->add(change);                      // the owner has made the same change in memory
//   Result<void> done = co_await journal->commit(token);    // it survives a crash
//
// Records are replayed in the order of add(). What is added while a write is on its way goes
// together into the next. A record is there wholly or not at all, and never without those before
// it: changes that belong together are one record.
//
// The area has two halves. A half begins with a checkpoint, the whole state as records, and goes on
// with changes. Before it is full, the next checkpoint is written to the other half, part by part
// (journal_owner.h) and in bounded memory, while changes are committed to the first one as ever.
// The other half counts once the last block of its checkpoint is durable: the commit of that moment
// is in this block, and whatever was committed before is in the checkpoint too. Only a half that
// becomes full sooner keeps commits waiting for the checkpoint. Blocks name their owner, their
// generation and the block before them (journal_format.h): a torn tail is cut, remains of older
// writes are never taken for new ones, and a hole in what was durable is kCorrupt instead of an old
// state. (One in a checkpoint that nothing followed yet looks like a crash while it was written:
// the state before it counts, which lacks at most what was committed with the checkpoint's end.)
//
// Order with data. A drive with a volatile cache may lose data that was written below before the
// record that points to it. A record added with `Needs::kData` becomes durable only after a flush
// of the drive below that began after add(): write the data, then add. In the other direction,
// space that a record gives up must not be used again before the record is durable: add() returns
// its number, durable() says up to which they are (Space::give_after in space.h).
//
// A write that fails fails every commit() that waits for it. Nothing is lost: the next commit
// writes a checkpoint of the state as it is then, with all that was added.
//
// A flush that fails is another matter: data that was written below may be gone, and the owner's
// state, which points to it, is ahead of the medium. Then nothing is committed any more until the
// owner has made its state anew by reload(), from what is durable. The same when the owner saw the
// loss itself, and told of it by lose().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/list.h"
#include "drive/drive.h"
#include "env/env.h"
#include "service/common/claim.h"
#include "service/common/journal_chain.h"
#include "service/common/journal_checkpoint.h"
#include "service/common/journal_format.h"
#include "service/common/journal_owner.h"
#include "task/gate.h"
#include "task/operation.h"
#include "task/sync.h"
#include "task/task.h"

namespace cairn::drive {

struct JournalArea {
  uint64_t first = 0;
  uint64_t blocks = 0;
};

// What a service that has a journal and a label starts with; all outlive the journal.
struct JournalStart {
  env::Env& env;
  Drive& drive;
  JournalArea area;
  LabelKind kind;
  Label& label;
  JournalOwner& owner;
  Claim& claim;  // of this label
};

class Journal {
 public:
  // An area for a state of at most so many records of that size, whose checkpoints are rare.
  static uint64_t blocks_for(uint64_t records, size_t record_size, uint32_t block_size);

  // Begins a new journal with the owner's state, durably: before the label that names `id` is
  // finished. The drive, the owner and the claim outlive the journal; without a claim it never
  // looks whether somebody else has the drive. kInvalid: the area cannot hold the state.
  static task::Task<Result<std::unique_ptr<Journal>>> create(env::Env& env, Drive& drive,
                                                             JournalArea area, JournalId id,
                                                             JournalOwner& owner,
                                                             Claim* claim = nullptr);
  // Replays what there is and writes nothing. kCorrupt: no journal of that id, or a damaged one;
  // errors of replay() and of the drive.
  static task::Task<Result<std::unique_ptr<Journal>>> open(env::Env& env, Drive& drive,
                                                           JournalArea area, JournalId id,
                                                           JournalOwner& owner);
  // Before the first change of a journal that was opened, right after its drive was claimed: from
  // here on it looks before each write. changed_meanwhile(): what was replayed is old.
  task::Task<Result<void>> own(Claim& claim);
  // Both, each at its time: of a new drive, whose label is to be finished then, or of one that was
  // labelled, which is claimed when all of the journal was read and nothing was written before. On
  // failure `journal` is untouched.
  static task::Task<Result<void>> start(JournalStart with, bool is_new,
                                        std::unique_ptr<Journal>& journal);
  ~Journal() = default;

  enum class Needs : uint8_t { kNothing, kData };
  // The number of the record, whose change the owner has made already: the state may be saved
  // within this call. It becomes durable by a later commit(), sync(), close(), or when many wait.
  // Never fails.
  uint64_t add(Bytes record, Needs needs);
  template <class T>
  uint64_t add(const T& record, Needs needs) {
    static_assert(std::has_unique_object_representations_v<T>, "no undefined bytes on a drive");
    return add(Bytes(reinterpret_cast<const std::byte*>(&record), sizeof record), needs);
  }
  // All records up to this number survive a crash.
  uint64_t durable() const { return durable_; }
  uint64_t added() const { return added_; }

  class Commit final : public task::Operation<void>, public ListHook<Journal> {
   public:
    Commit(Journal& journal, uint64_t number, task::CancelToken token)
        : Operation(token), journal_(journal), number_(number) {}

   private:
    friend class Journal;
    void start() override;
    void cancel() override {
      ListHook<Journal>::unlink();
      complete(cancelled());
    }
    Journal& journal_;
    uint64_t number_;
  };
  // Done when everything added so far is durable: at once when it is. Whoever stops waiting does
  // not stop the records.
  Commit commit(task::CancelToken token = {}) { return {*this, added_, token}; }
  // The same, and everything that was written to the drive below before is durable too: what a
  // service does for a flush.
  Commit sync(task::CancelToken token = {});
  // add() and commit().
  Commit append(Bytes record, Needs needs, task::CancelToken token = {}) {
    add(record, needs);
    return commit(token);
  }

  // Data below may be lost: what was added and is not durable never will be, and every commit()
  // fails.
  void lose();
  bool has_lost() const { return has_lost_; }
  // Replays what is durable, for an owner whose state is empty again and who adds nothing
  // meanwhile. On success the loss is over, and that state is the journal's; after an error it can
  // be tried again, with an empty state. kCorrupt: what was durable is not there any more.
  task::Task<Result<void>> reload();

  // Commits what was added; then it can be destroyed. Once, before the drive is closed.
  task::Task<void> close();

  uint64_t generation() const { return log_.generation; }
  // A checkpoint is on its way, or waits for the commit that ends it.
  bool is_saving() const { return checkpoint_.has_begun(); }

 private:
  struct Half;
  Journal(env::Env& env, Drive& drive, JournalArea area, JournalId id, JournalOwner& owner,
          Buffer memory);
  static Result<std::unique_ptr<Journal>> make(env::Env& env, Drive& drive, JournalArea area,
                                               JournalId id, JournalOwner& owner);

  uint64_t half_blocks() const { return area_.blocks / 2; }
  uint64_t first_of(uint64_t generation) const {
    return area_.first + generation % 2 * half_blocks();
  }
  uint32_t block_size() const { return drive_.geometry().block_size; }

  // Reading (journal_replay.cc).
  task::Task<Result<void>> read_all();
  task::Task<Result<void>> scan(Half& half);
  task::Task<Result<void>> replay(const Half& chosen);
  task::Task<Result<void>> replay_durable();
  task::Task<Result<uint64_t>> read_blocks(uint64_t half, uint64_t index);
  task::Task<Result<bool>> has_grown();

  // Writing: changes.
  struct Batch {
    JournalRecords records;
    JournalChain chain;  // where they go
    bool is_checkpoint = false;
    bool needs_flush = false;
    uint64_t number = 0;
  };
  bool has_work() const;
  void wake_writer();
  task::Task<void> write_batches();
  Batch take_batch();
  task::Task<Result<void>> check_claim();
  task::Task<Result<void>> flush();
  task::Task<Result<void>> flush_data(const Batch& batch);
  task::Task<Result<void>> prepare(const Batch& batch);
  task::Task<Result<void>> write_batch(Batch& batch);
  task::Task<Result<void>> write_some(Batch& batch, Bytes& records, bool is_end);
  void settle(uint64_t number, const Result<void>& done);

  // Writing: checkpoints (journal_save.cc).
  bool is_full() const;
  void need_checkpoint();
  bool is_ready() const { return checkpoint_.has_begun() && saver_rests_.is_set(); }
  JournalCheckpoint::Half next_half() const;
  void save_early();
  void begin_saving(std::optional<Buffer> memory);
  task::Task<void> save(std::optional<Buffer> memory);
  task::Task<Result<void>> save_parts(MutableBytes memory);
  task::Task<Result<void>> save_now();
  void take_checkpoint(Batch& batch);
  task::Task<Result<void>> write_start(Batch& batch, Bytes& records);

  env::Env& env_;
  Drive& drive_;
  const JournalArea area_;
  const JournalId id_;
  JournalOwner& owner_;
  Claim* claim_ = nullptr;
  Buffer memory_;

  JournalChain log_;             // of the half that counts
  uint64_t committed_ = 0;       // blocks of it, which are durable
  uint64_t other_tag_ = 0;       // of the first block of the other half, when it was read
  bool other_is_begun_ = false;  // there was a part of a newer checkpoint
  bool must_checkpoint_ = true;  // nothing can be added to the half that counts

  JournalCheckpoint checkpoint_;
  task::Event saver_rests_;
  Result<void> saved_;  // what became of the last one

  JournalRecords waiting_;    // for the half that counts
  bool needs_flush_ = false;  // before what waits
  uint64_t added_ = 0;
  uint64_t durable_ = 0;
  List<Commit, Journal> commits_;
  bool writer_runs_ = false;
  task::Event writer_rests_;
  bool has_lost_ = false;
  task::Gate gate_;
};

}  // namespace cairn::drive
