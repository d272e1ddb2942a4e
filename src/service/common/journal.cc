// SPDX-License-Identifier: Apache-2.0
#include "service/common/journal.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "task/when_all.h"

namespace cairn::drive {

namespace {

// Records that wait for a commit are written by themselves from here on.
constexpr size_t kWaitingMax = 65536;
constexpr size_t kMemory = 16384;  // of one durable write
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
    : env_(env),
      drive_(drive),
      area_(area),
      id_(id),
      owner_(owner),
      memory_(std::move(memory)),
      checkpoint_(env, drive, owner, id) {
  writer_rests_.set();
  saver_rests_.set();
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
  const Result<void> done = co_await (*journal)->save_now();
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
    // A process that was killed while it wrote may have left what was read in a volatile cache.
    // What the last records gave up is used from here on, so no power loss may undo them.
    if (claimed && with.drive.geometry().volatile_cache) claimed = co_await with.drive.flush();
    if (!claimed) co_return claimed;
  }
  journal = std::move(*made);
  co_return Result<void>();
}

uint64_t Journal::add(Bytes record, Needs needs) {
  // After a loss the record is lost. When a checkpoint must come next it is in there: told to the
  // one that was begun, or saved with the state.
  if (!has_lost_) {
    if (!must_checkpoint_) waiting_.add(record);
    checkpoint_.add(record);
  }
  needs_flush_ |= needs == Needs::kData;
  const uint64_t number = ++added_;
  if (has_work()) wake_writer();
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
  checkpoint_.drop();
  co_await gate_.close();
}

void Journal::lose() {
  has_lost_ = true;
  waiting_.clear();
  checkpoint_.drop();
  settle(UINT64_MAX, lost());
}

task::Task<Result<void>> Journal::reload() {
  CHECK(has_lost_, "a journal that lost nothing has no need of it");
  Result<void> rests = co_await writer_rests_.wait();
  CHECK(rests.has_value());
  rests = co_await saver_rests_.wait();
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
  const Result<void> saved = co_await save_now();
  if (saved) has_lost_ = false;
  co_return saved;
}

bool Journal::has_work() const {
  const size_t max = std::max(waiting_.size(), is_ready() ? checkpoint_.waiting() : 0);
  return !has_lost_ && (!commits_.empty() || max > kWaitingMax);
}

void Journal::wake_writer() {
  if (std::exchange(writer_runs_, true)) return;
  writer_rests_.reset();
  gate_.spawn(write_batches());
}

task::Task<void> Journal::write_batches() {
  while (has_work()) {
    if (is_full()) need_checkpoint();
    if (must_checkpoint_ && !is_ready()) {
      begin_saving(std::nullopt);
      const Result<void> rests = co_await saver_rests_.wait();
      CHECK(rests.has_value());
      if (!saved_) settle(added_, saved_);
      continue;
    }
    Batch batch = take_batch();
    const Result<void> done = co_await write_batch(batch);
    if (!done) need_checkpoint();
    settle(batch.number, done);
    save_early();
  }
  writer_runs_ = false;
  writer_rests_.set();
}

// Taken at one instant: a checkpoint has exactly the changes up to its number, and the flush that
// comes next covers the data of all of them.
Journal::Batch Journal::take_batch() {
  Batch batch{.is_checkpoint = must_checkpoint_ || is_ready(),
              .needs_flush = std::exchange(needs_flush_, false),
              .number = added_};
  if (batch.is_checkpoint) {
    take_checkpoint(batch);
  } else {
    batch.records = waiting_.take();
    batch.chain = log_;
  }
  return batch;
}

task::Task<Result<void>> Journal::check_claim() {
  if (claim_ == nullptr) co_return Result<void>();
  co_return co_await claim_->check();
}

task::Task<Result<void>> Journal::flush() {
  if (!drive_.geometry().volatile_cache) co_return Result<void>();
  const Result<void> flushed = co_await drive_.flush();
  if (!flushed) lose();
  co_return flushed;
}

task::Task<Result<void>> Journal::flush_data(const Batch& batch) {
  if (!batch.needs_flush) co_return Result<void>();
  co_return co_await flush();
}

// Nothing is written before it is known that nobody else does; meanwhile data is flushed.
task::Task<Result<void>> Journal::prepare(const Batch& batch) {
  auto [owned, flushed] = co_await task::when_all(check_claim(), flush_data(batch));
  if (batch.needs_flush && !owned) needs_flush_ = true;
  co_return owned ? flushed : owned;
}

// One write after the other, each durable: a block is never there without those of the writes
// before.
task::Task<Result<void>> Journal::write_batch(Batch& batch) {
  Bytes records = batch.records.bytes();
  Result<void> done;
  if (batch.is_checkpoint) done = co_await write_start(batch, records);
  if (!done) {
    needs_flush_ |= batch.needs_flush;
    co_return done;
  }
  done = co_await prepare(batch);
  if (!done) co_return done;
  if (batch.is_checkpoint && checkpoint_.may_be_lost()) {
    co_return fail(Errc::kIo, "the drive below was restarted while a checkpoint was written");
  }
  const uint64_t first = batch.chain.next;
  while (!records.empty() || (batch.is_checkpoint && batch.chain.next == first)) {
    done = co_await write_some(batch, records, true);
    if (!done) co_return done;
  }
  log_ = batch.chain;
  committed_ = log_.next;
  co_return done;
}

// What fits the memory. At the end of the batch it is durable when it is done.
task::Task<Result<void>> Journal::write_some(Batch& batch, Bytes& records, bool is_end) {
  using Kind = JournalBlockKind;
  const bool is_checkpoint = batch.is_checkpoint;
  const JournalChain::Blocks blocks{
      .kind = is_checkpoint ? Kind::kCheckpoint : Kind::kChanges,
      .last_kind = is_checkpoint ? Kind::kCheckpointEnd : Kind::kChanges,
      .batch = is_checkpoint ? 0 : log_.next,
      .has_last = is_end};
  const JournalChain::Piece piece = batch.chain.encode(id_, env_.rng(), blocks, records,
                                                       block_size(), memory_.first(memory_.size()));
  records = records.subspan(piece.taken);
  const Request request{.kind = Request::Kind::kWrite,
                        .durable = is_end,
                        .metadata = true,
                        .lba = Lba(first_of(batch.chain.generation) + piece.first),
                        .blocks = piece.count};
  const MutableBytes pieces[] = {memory_.first(piece.count * block_size())};
  co_return co_await drive_.submit(request, pieces);
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
