// SPDX-License-Identifier: Apache-2.0
#include "drive/journal.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "task/when_all.h"

namespace cairn::drive {

namespace {

// Records that wait for a commit are written by themselves from here on.
constexpr size_t kWaitingMax = 65536;
constexpr size_t kMemory = 16384;
// Room for changes in each half beside twice its checkpoint.
constexpr uint64_t kChangeBlocks = 8;

Result<void> lost() { return fail(Errc::kIo, "the drive below lost writes that were not flushed"); }

}  // namespace

uint64_t Journal::blocks_for(uint64_t records, size_t record_size, uint32_t block_size) {
  const uint64_t room = std::min<uint64_t>(block_size - sizeof(JournalHead), kJournalUsedMax);
  const uint64_t per_block = room / (record_size + sizeof(uint16_t));
  const uint64_t state = records / per_block + 1;
  return 2 * (2 * state + kChangeBlocks);
}

Journal::Journal(env::Env& env, Drive& drive, JournalArea area, JournalId id, JournalOwner& owner,
                 Buffer memory)
    : env_(env), drive_(drive), area_(area), id_(id), owner_(owner), memory_(std::move(memory)) {
  writer_rests_.set();
}

Result<std::unique_ptr<Journal>> Journal::make(env::Env& env, Drive& drive, JournalArea area,
                                               JournalId id, JournalOwner& owner) {
  const Geometry& below = drive.geometry();
  if (area.blocks < 4 || area.blocks / 2 > UINT32_MAX || area.first > below.blocks ||
      area.blocks > below.blocks - area.first) {
    return fail(Errc::kInvalid, "the area of the journal does not fit the drive below");
  }
  const uint64_t blocks =
      std::clamp<uint64_t>(kMemory / below.block_size, 1, below.transfer_blocks);
  Result<Buffer> memory = env.buffers().allocate(blocks * below.block_size);
  if (!memory) return fail(memory.error());
  return std::unique_ptr<Journal>(new Journal(env, drive, area, id, owner, std::move(*memory)));
}

task::Task<Result<std::unique_ptr<Journal>>> Journal::create(env::Env& env, Drive& drive,
                                                             JournalArea area, JournalId id,
                                                             JournalOwner& owner, Claim* claim) {
  Result<std::unique_ptr<Journal>> journal = make(env, drive, area, id, owner);
  if (!journal) co_return journal;
  (*journal)->claim_ = claim;
  const Batch batch = (*journal)->take_batch();
  const Result<void> done = co_await (*journal)->write(batch);
  if (!done) co_return fail(done.error());
  co_return journal;
}

task::Task<Result<std::unique_ptr<Journal>>> Journal::open(env::Env& env, Drive& drive,
                                                           JournalArea area, JournalId id,
                                                           JournalOwner& owner) {
  Result<std::unique_ptr<Journal>> journal = make(env, drive, area, id, owner);
  if (!journal) co_return journal;
  const Result<void> done = co_await (*journal)->read_all();
  if (!done) co_return fail(done.error());
  co_return journal;
}

task::Task<Result<void>> Journal::start(JournalStart with, bool is_new,
                                        std::unique_ptr<Journal>& journal) {
  if (is_new) {
    const Result<void> begun = co_await begin_label(with.env, with.drive, with.kind, with.label);
    if (!begun) co_return begun;
  }
  Result<std::unique_ptr<Journal>> made =
      is_new
          ? co_await create(with.env, with.drive, with.area, with.label.id, with.owner, &with.claim)
          : co_await open(with.env, with.drive, with.area, with.label.id, with.owner);
  if (!made) co_return fail(made.error());
  if (!is_new) {
    Result<void> claimed = co_await claim_label(with.env, with.drive, with.kind, with.label);
    if (claimed) claimed = co_await (*made)->own(with.claim);
    if (!claimed) co_return claimed;
  }
  journal = std::move(*made);
  co_return Result<void>();
}

uint64_t Journal::add(Bytes record, Needs needs) {
  // After a failure the next write is a checkpoint, which has the record in it; after a loss the
  // record is lost.
  if (!must_checkpoint_ && !has_lost_) waiting_.add(record);
  needs_flush_ |= needs == Needs::kData;
  const uint64_t number = ++added_;
  if (waiting_.size() > kWaitingMax) wake_writer();
  return number;
}

Journal::Commit Journal::sync(task::CancelToken token) {
  ++added_;
  needs_flush_ = true;
  return commit(token);
}

void Journal::Commit::start() {
  if (number_ <= journal_.durable_) return complete({});
  if (journal_.has_lost_) return complete(lost());
  journal_.commits_.push_back(*this);
  journal_.wake_writer();
}

task::Task<void> Journal::close() {
  // What a drive below that fails does not take was never promised.
  [[maybe_unused]] const Result<void> done = co_await commit();
  co_await gate_.close();
}

void Journal::lose() {
  has_lost_ = true;
  waiting_.clear();
  settle(UINT64_MAX, lost());
}

task::Task<Result<void>> Journal::reload() {
  CHECK(has_lost_, "a journal that lost nothing has no need of it");
  const Result<void> rests = co_await writer_rests_.wait();
  CHECK(rests.has_value());
  // From here on the drive below has told of the loss.
  if (drive_.geometry().volatile_cache) {
    const Result<void> flushed = co_await drive_.flush();
    if (!flushed) co_return flushed;
  }
  const Result<void> replayed = co_await replay_durable();
  if (!replayed) co_return replayed;
  needs_flush_ = false;
  must_checkpoint_ = true;
  // Behind what is durable may lie blocks of a write that failed, which can be read and yet go in a
  // crash: nothing follows them, for a new generation begins.
  const Batch batch = take_batch();
  const Result<void> written = co_await write(batch);
  if (!written) co_return written;
  durable_ = batch.number;
  has_lost_ = false;
  co_return Result<void>();
}

bool Journal::has_work() const {
  return !has_lost_ && (!commits_.empty() || waiting_.size() > kWaitingMax);
}

void Journal::wake_writer() {
  if (std::exchange(writer_runs_, true)) return;
  writer_rests_.reset();
  gate_.spawn(write_batches());
}

task::Task<void> Journal::write_batches() {
  while (has_work()) {
    const Batch batch = take_batch();
    const Result<void> done = co_await write(batch);
    if (!done) must_checkpoint_ = true;
    settle(batch.number, done);
  }
  writer_runs_ = false;
  writer_rests_.set();
}

// Taken at one instant: a checkpoint has exactly the changes up to its number, and the flush that
// comes next covers the data of all of them.
Journal::Batch Journal::take_batch() {
  Batch batch{.records = waiting_.take(),
              .is_checkpoint = must_checkpoint_,
              .needs_flush = std::exchange(needs_flush_, false),
              .number = added_};
  const uint64_t room = half_blocks() - std::min(next_, half_blocks());
  if (!batch.is_checkpoint) {
    batch.is_checkpoint = blocks_of_records(batch.records.bytes(), block_size()) > room;
  }
  if (batch.is_checkpoint) {
    batch.records.clear();
    owner_.save(batch.records);
    must_checkpoint_ = false;
  }
  return batch;
}

task::Task<Result<void>> Journal::check_claim() {
  if (claim_ == nullptr) co_return Result<void>();
  co_return co_await claim_->check();
}

task::Task<Result<void>> Journal::flush_data(const Batch& batch) {
  if (!batch.needs_flush || !drive_.geometry().volatile_cache) co_return Result<void>();
  const Result<void> flushed = co_await drive_.flush();
  if (!flushed) lose();
  co_return flushed;
}

// Nothing is written before it is known that nobody else does; meanwhile data is flushed.
task::Task<Result<void>> Journal::prepare(const Batch& batch) {
  auto [owned, flushed] = co_await task::when_all(check_claim(), flush_data(batch));
  if (batch.needs_flush && !owned) needs_flush_ = true;
  co_return owned ? flushed : owned;
}

task::Task<Result<void>> Journal::write(const Batch& batch) {
  const Result<void> prepared = co_await prepare(batch);
  if (!prepared) co_return prepared;
  if (batch.records.empty() && !batch.is_checkpoint) co_return Result<void>();
  const uint64_t blocks = blocks_of_records(batch.records.bytes(), block_size());
  if (!batch.is_checkpoint) {
    const Result<void> added = co_await write_blocks(generation_, batch.records.bytes(), false);
    if (added) committed_ = next_;
    co_return added;
  }
  if (blocks > half_blocks()) {
    co_return fail(Errc::kNoSpace, "the state has outgrown the area of its journal");
  }
  next_ = 0;
  tag_ = 0;
  // One that fails is written again in the same place: the other half is all there is until then.
  const Result<void> done = co_await write_blocks(generation_ + 1, batch.records.bytes(), true);
  if (done) {
    ++generation_;
    committed_ = next_;
  }
  co_return done;
}

// One write after the other, each durable: a block is never there without those of the writes
// before.
task::Task<Result<void>> Journal::write_blocks(uint64_t generation, Bytes records,
                                               bool is_checkpoint) {
  const uint64_t batch = next_;
  bool is_first = true;
  while (is_first || !records.empty()) {
    uint64_t count = 0;
    const uint64_t first = next_;
    while ((is_first || !records.empty()) && (count + 1) * block_size() <= memory_.size()) {
      const size_t fit = records_that_fit(records, block_size());
      const bool is_last = fit == records.size();
      JournalBlockKind kind = JournalBlockKind::kChanges;
      if (is_checkpoint) {
        kind = is_last ? JournalBlockKind::kCheckpointEnd : JournalBlockKind::kCheckpoint;
      }
      const uint64_t tag = env_.rng().next();
      const JournalHead head{.id = id_,
                             .generation = generation,
                             .tag = tag,
                             .previous = tag_,
                             .index = static_cast<uint32_t>(next_),
                             .batch = static_cast<uint32_t>(batch),
                             .kind = static_cast<uint16_t>(kind)};
      encode_journal_block(head, records.first(fit),
                           memory_.subspan(count * block_size(), block_size()));
      records = records.subspan(fit);
      tag_ = tag;
      is_first = false;
      ++next_;
      ++count;
    }
    const Request request{.kind = Request::Kind::kWrite,
                          .durable = true,
                          .metadata = true,
                          .lba = Lba(first_of(generation) + first),
                          .blocks = count};
    const MutableBytes pieces[] = {memory_.first(count * block_size())};
    const Result<void> done = co_await drive_.submit(request, pieces);
    if (!done) co_return done;
  }
  co_return Result<void>();
}

void Journal::settle(uint64_t number, const Result<void>& done) {
  if (done) durable_ = number;
  while (Commit* commit = commits_.front()) {
    if (commit->number_ > number) break;
    commits_.pop_front();
    commit->complete(done);
  }
}

}  // namespace cairn::drive
