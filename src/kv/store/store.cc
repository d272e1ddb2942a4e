// SPDX-License-Identifier: Apache-2.0
#include "kv/store/store.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "drive/scratch.h"
#include "kv/store/reader.h"
#include "kv/store/recovery.h"
#include "kv/store/transaction.h"
#include "task/deadline.h"

namespace cairn::kv::store {

using task::Task;

namespace {

constexpr Duration kCheckpointRetry = 1_s;
constexpr size_t kSegmentsTried = 64;  // at random, before all are looked at in turn

Result<void> check_key(std::string_view key) {
  if (key.empty()) return fail(Errc::kInvalid, "a key of no bytes");
  if (key.size() > kKeyBytesMax) return fail(Errc::kInvalid, "a key is longer than 64 KiB");
  return {};
}

// What was found counts from now on, so it has to be durable. A flush is not enough: one that
// failed before may have left what is read now, and is never going to be written.
Task<Result<void>> settle(env::Env& env, drive::Drive& drive, const Recovered& found,
                          Duration io_timeout) {
  BlockIo io(env, drive, io_timeout);
  for (const Recovered::Blocks& blocks : found.unsettled) {
    const Result<drive::Scratch> memory =
        drive::Scratch::make(env, blocks.count * io.block_bytes());
    if (!memory) co_return fail(memory.error());
    Result<void> done = co_await io.read(blocks.first, memory->bytes());
    if (done) done = co_await io.write(blocks.first, memory->bytes(), true);
    if (!done) co_return done;
  }
  Result<void> flushed = co_await io.flush();
  co_return flushed;
}

// Has the drive, as it was found, with a new epoch.
Task<Result<void>> claim(env::Env& env, drive::Drive& drive, Recovered& found,
                         Duration io_timeout) {
  Result<void> done = co_await drive::claim_label(env, drive, kLabelKind, found.label);
  if (done) done = co_await settle(env, drive, found, io_timeout);
  if (!done) co_return done;
  ++found.superblock.epoch;
  Checkpoint& checkpoint = found.superblock.checkpoint;
  checkpoint.key_stable = std::max(checkpoint.key_stable, found.keys.tail);
  found.label.body = encode_superblock(found.superblock);
  done = co_await drive::write_label(env, drive, kLabelKind, found.label);
  co_return done;
}

Task<Result<std::unique_ptr<Core>>> open_core(env::Env& env, std::unique_ptr<drive::Drive>& drive,
                                              StoreOptions options) {
  Result<Recovered> found = co_await recover(env, *drive, options.io_timeout);
  if (!found) co_return fail(found.error());
  const Result<void> claimed = co_await claim(env, *drive, *found, options.io_timeout);
  if (!claimed) co_return fail(claimed.error());
  auto core = std::make_unique<Core>(env, std::move(drive), options, std::move(*found));
  Result<std::unique_ptr<ValueLog>> values =
      co_await ValueLog::open({.env = env,
                               .io = core->io,
                               .layout = core->superblock.layout,
                               .id = core->label.id,
                               .space = core->value_space});
  Result<std::unique_ptr<KeyLog>> keys =
      KeyLog::open({.env = env,
                    .io = core->io,
                    .syncer = core->syncer,
                    .layout = core->superblock.layout,
                    .id = core->label.id,
                    .space = core->key_space,
                    .values = core->value_space,
                    .table = core->table,
                    .totals = core->totals,
                    .epoch = static_cast<uint16_t>(core->superblock.epoch)});
  if (!values || !keys) {
    drive = core->take_drive();
    co_return fail(values ? keys.error() : values.error());
  }
  core->values = std::move(*values);
  core->keys = std::move(*keys);
  co_return core;
}

}  // namespace

Task<Result<void>> format(env::Env& env, drive::Drive& drive, FormatOptions options) {
  const Result<Layout> layout = plan_layout(drive.geometry(), options.object_bytes);
  if (!layout) co_return fail(layout.error());
  const Result<std::optional<drive::Label>> found =
      co_await drive::find_label(env, drive, kLabelKind, {.may_format = options.may_format});
  if (!found && !options.may_format) co_return fail(found.error());
  if (found && *found && !options.may_format) {
    co_return fail(Errc::kExists, "the drive holds a key-value store");
  }
  drive::Label label = drive::new_label(env, drive);
  Superblock superblock{.layout = *layout};
  env.fill_secret(std::as_writable_bytes(std::span(superblock.hash_key)));
  // Logs begin with their second lap, so that no position is below a lap's.
  Checkpoint& checkpoint = superblock.checkpoint;
  checkpoint.key_from = checkpoint.key_stable = layout->key_buckets;
  checkpoint.value_head = checkpoint.value_tail = layout->value_units;
  Result<void> done = co_await drive::begin_label(env, drive, kLabelKind, label);
  if (!done) co_return done;
  label.body = encode_superblock(superblock);
  done = co_await drive::finish_label(env, drive, kLabelKind, label);
  co_return done;
}

// What admits a command among those at work, for as long as it is.
class Store::Admission {
 public:
  // kClosed; waits while too many are at work.
  static Task<Result<Admission>> enter(Store& store) {
    const Result<void> entered = store.gate_.enter();
    if (!entered) co_return fail(entered.error());
    Admission admission(store);
    const Result<void> turn = co_await store.commands_.acquire(1, store.core_->stopping.token());
    if (!turn) co_return fail(turn.error());
    admission.turn_ = task::Units(store.commands_, 1);
    ++store.core_->stats.commands;
    co_return std::move(admission);
  }
  Admission(Admission&& other) noexcept
      : store_(std::exchange(other.store_, nullptr)), turn_(std::move(other.turn_)) {}
  Admission& operator=(Admission&&) = delete;
  ~Admission() {
    turn_.release();
    if (store_ != nullptr) store_->gate_.leave();
  }

 private:
  explicit Admission(Store& store) : store_(&store) {}
  Store* store_;
  task::Units turn_;
};

Task<Result<std::unique_ptr<Store>>> Store::open(env::Env& env, std::unique_ptr<drive::Drive> drive,
                                                 StoreOptions options) {
  Result<std::unique_ptr<Core>> core = co_await open_core(env, drive, options);
  if (!core) {
    co_await drive->close();
    co_return fail(core.error());
  }
  co_return std::make_unique<Store>(std::move(*core));
}

Store::Store(std::unique_ptr<Core> core)
    : core_(std::move(core)),
      checkpointer_(*core_),
      key_compactor_(*core_),
      value_compactor_(*core_),
      commands_(core_->options.commands_max) {
  core_->note_commit();  // what recovery has read is too much to read again
  background_.spawn(key_compactor_.run());
  background_.spawn(value_compactor_.run());
  background_.spawn(save_checkpoints());
  if (core_->options.durability == Durability::kInterval) background_.spawn(sync_at_intervals());
}

Task<void> Store::save_checkpoints() {
  const task::CancelToken stop = core_->stopping.token();
  while (!stop.requested()) {
    const Result<void> woken = co_await core_->checkpoint_wanted.wait(stop);
    if (!woken) co_return;
    const Result<void> saved = co_await checkpointer_.save();
    if (saved) continue;
    [[maybe_unused]] const Result<void> slept =
        co_await task::sleep_for(core_->env, kCheckpointRetry, stop);
    core_->checkpoint_wanted.set();
  }
}

// A failure is told by the commits that follow (KeyLog::sync).
Task<void> Store::sync_at_intervals() {
  const task::CancelToken stop = core_->stopping.token();
  while (true) {
    const Result<void> slept =
        co_await task::sleep_for(core_->env, core_->options.sync_interval, stop);
    if (!slept) co_return;
    if (core_->keys->stable() == core_->key_space.tail()) continue;
    [[maybe_unused]] const Result<void> synced = co_await core_->keys->sync();
  }
}

Task<Result<std::optional<Entry>>> Store::get(std::string_view key) {
  const Result<void> checked = check_key(key);
  if (!checked) co_return fail(checked.error());
  const Result<Admission> admission = co_await Admission::enter(*this);
  if (!admission) co_return fail(admission.error());
  Result<std::optional<Entry>> entry = co_await read_entry(*core_, key);
  co_return entry;
}

Task<Result<std::optional<Meta>>> Store::look(std::string_view key) {
  const Result<void> checked = check_key(key);
  if (!checked) co_return fail(checked.error());
  const Result<Admission> admission = co_await Admission::enter(*this);
  if (!admission) co_return fail(admission.error());
  const Result<std::optional<Item>> item = co_await find_item(*core_, core_->hash(key));
  if (!item) co_return fail(item.error());
  if (!*item) co_return std::optional<Meta>();
  co_return meta_of(**item);
}

Task<Result<void>> Store::transact(std::span<const std::string_view> keys, Change& change) {
  for (const std::string_view key : keys) {
    const Result<void> checked = check_key(key);
    if (!checked) co_return checked;
  }
  const Result<Admission> admission = co_await Admission::enter(*this);
  if (!admission) co_return fail(admission.error());
  task::Deadline deadline(core_->env, core_->env.now() + core_->options.put_wait_max,
                          core_->stopping.token());
  Transaction transaction(*core_, keys, change);
  Result<void> done = co_await transaction.run(deadline.token());
  co_return done;
}

// The key of an item; none: the key is not there any more. kCorrupt: it cannot be told.
Task<Result<std::optional<std::string>>> Store::key_of_item(uint32_t segment, Item item) {
  const SegmentTable::Chain chain = core_->table.at(segment);
  Result<std::string> key = co_await read_key(*core_, item);
  if (!key && key.error() == Errc::kCorrupt) {
    // A record that is gone belonged to a key that changed or went, or moved; look() tells.
    const Result<std::optional<Item>> now =
        co_await find_item(*core_, {.fingerprint = item.fingerprint, .segment = segment});
    if (!now) co_return fail(now.error());
    if (!*now) co_return std::optional<std::string>();
    if (**now == item && core_->table.at(segment) == chain) {
      key = co_await read_key_of_damaged(*core_, item, segment);
    } else {
      key = co_await read_key(*core_, **now);
    }
  }
  if (!key) co_return fail(key.error());
  co_return std::optional<std::string>(std::move(*key));
}

// What is damaged is counted, and the others are told.
Task<Result<void>> Store::scan_segment(uint32_t segment, ScanPage& page) {
  const auto pass = [&](const Error& error) -> Result<void> {
    if (error != Errc::kCorrupt) return fail(error);
    ++page.unreadable;
    ++core_->stats.unlisted;
    return {};
  };
  const Result<std::vector<Item>> items = co_await read_items(*core_, segment);
  if (!items) co_return pass(items.error());
  for (const Item& item : *items) {
    Result<std::optional<std::string>> key = co_await key_of_item(segment, item);
    if (!key) {
      const Result<void> passed = pass(key.error());
      if (!passed) co_return passed;
    } else if (*key) {
      page.keys.push_back(std::move(**key));
    }
  }
  co_return Result<void>();
}

Task<Result<ScanPage>> Store::scan(uint64_t cursor, size_t count) {
  const Result<Admission> admission = co_await Admission::enter(*this);
  if (!admission) co_return fail(admission.error());
  ScanPage page;
  const uint64_t segments = core_->table.segments();
  // Empty segments cost nothing but the look; so many are a page of their own.
  const uint64_t end = cursor + std::min<uint64_t>(segments, 65536);
  for (page.next = cursor; page.next < std::min(segments, end);) {
    const auto segment = static_cast<uint32_t>(page.next++);
    if (core_->table.at(segment) == SegmentTable::Chain()) continue;
    const Result<void> scanned = co_await scan_segment(segment, page);
    if (!scanned) co_return fail(scanned.error());
    if (page.keys.size() >= count) break;
  }
  if (page.next >= segments) page.next = 0;
  co_return page;
}

Task<Result<std::optional<std::string>>> Store::any_key_of(uint32_t segment) {
  ScanPage page;
  const Result<void> scanned = co_await scan_segment(segment, page);
  if (!scanned) co_return fail(scanned.error());
  if (page.keys.empty()) co_return std::optional<std::string>();
  co_return std::move(page.keys[core_->env.rng().below(page.keys.size())]);
}

Task<Result<std::optional<std::string>>> Store::random_key() {
  const Result<Admission> admission = co_await Admission::enter(*this);
  if (!admission) co_return fail(admission.error());
  const uint64_t segments = core_->table.segments();
  uint64_t segment = core_->env.rng().below(segments);
  for (uint64_t tried = 0; tried < segments + kSegmentsTried; ++tried) {
    const auto here = static_cast<uint32_t>(segment);
    segment = tried < kSegmentsTried ? core_->env.rng().below(segments) : (segment + 1) % segments;
    if (core_->table.at(here).length == 0) continue;
    Result<std::optional<std::string>> key = co_await any_key_of(here);
    if (!key || *key) co_return key;
  }
  co_return std::optional<std::string>();
}

Task<Result<void>> Store::lock_all(std::vector<task::Units>& held) {
  for (size_t i = 0; i < SegmentLocks::kLocks; ++i) {
    task::Semaphore& one = core_->locks.at(i);
    const Result<void> locked = co_await one.acquire(1, core_->stopping.token());
    if (!locked) co_return locked;
    held.emplace_back(one, 1);
  }
  co_return Result<void>();
}

Task<Result<void>> Store::clear() {
  const Result<Admission> admission = co_await Admission::enter(*this);
  if (!admission) co_return fail(admission.error());
  std::vector<task::Units> held;
  Result<void> done = co_await lock_all(held);
  if (done) done = co_await checkpointer_.save_empty();
  if (!done) co_return done;
  core_->table.clear();
  core_->totals = {};
  core_->key_space.move_head(core_->key_space.tail());
  core_->value_space.move_head(core_->value_space.tail());
  co_return done;
}

StoreStats Store::stats() const {
  StoreStats stats = core_->stats;
  stats.keys = core_->totals.keys;
  stats.live_bytes = core_->totals.live_units * kUnitBytes;
  stats.live_bytes_max = live_units_max(core_->superblock.layout) * kUnitBytes;
  stats.table_bytes = core_->table.segments() * kEntryBytes;
  stats.io = core_->io.stats();
  return stats;
}

Task<void> Store::close() {
  co_await gate_.close();
  core_->stopping.request(Errc::kClosed);
  co_await background_.close();
  // Without it the next opening reads more of the key log, and finds the same.
  [[maybe_unused]] const Result<void> saved = co_await checkpointer_.save();
  co_await core_->keys->close();
  co_await core_->values->close();
  co_await core_->drive->close();
}

}  // namespace cairn::kv::store
