// SPDX-License-Identifier: Apache-2.0
// MULTI, EXEC and WATCH. A queue of commands is one change of all keys that they name, and of those
// watched, whose versions it looks at. Commands that go through the whole keyspace cannot be part
// of a change: they run by themselves, between what is before and behind them.
#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "door/resp/cluster.h"
#include "door/resp/command_table.h"
#include "door/resp/door_state.h"
#include "door/resp/execute.h"

namespace cairn::door::resp {

namespace {

using Needs = kv::Change::Needs;

// Keys of one client that are watched.
constexpr size_t kWatchedMax = 10'000;

std::vector<std::string_view> args_of(const QueuedCommand& queued) {
  return {queued.args.begin(), queued.args.end()};
}

// Commands of a queue as one change.
class Batch final : public kv::Change {
 public:
  Batch(Call& call, std::span<const QueuedCommand> queue, std::span<const WatchedKey> watched)
      : Change(needs_for(queue, watched)), call_(call), queue_(queue), watched_(watched) {
    for (const QueuedCommand& each : queue) {
      args_.push_back(args_of(each));
      add_keys(*each.command, args_.back(), keys_);
    }
    for (const WatchedKey& each : watched) keys_.add(each.key);
    keys_.seal();
  }

  const KeySet& keys() const { return keys_; }
  bool is_stale() const { return is_stale_; }

  Result<void> decide(std::span<const std::optional<kv::Entry>> now,
                      std::span<kv::Edit> edits) override {
    mark_.restore(call_.reply);
    is_stale_ = false;
    for (const WatchedKey& each : watched_) {
      const std::optional<kv::Entry>& entry = now[keys_.index_of(each.key)];
      const uint64_t version = entry ? entry->meta.version : 0;
      is_stale_ |= version != each.version;
    }
    if (is_stale_) return fail(Errc::kMismatch, "a watched key has changed");
    View view(keys_, now, call_.now);
    const size_t mark = call_.reply.bytes.size();
    for (size_t i = 0; i < queue_.size(); ++i) {
      const Command& command = *queue_[i].command;
      Call its{call_.door, call_.client, command, args_[i], call_.reply, call_.now};
      command.data != nullptr ? command.data(its, view) : command.plain(its);
      if (call_.reply.bytes.size() - mark > kReplyBytesMax) {
        return fail(Errc::kLimit, kTooMuchTogether);
      }
    }
    view.commit(edits);
    changes_ = std::ranges::any_of(
        edits, [](const kv::Edit& each) { return each.kind != kv::Edit::Kind::kKeep; });
    return {};
  }
  bool changes() const { return changes_; }

 private:
  static Needs needs_for(std::span<const QueuedCommand> queue,
                         std::span<const WatchedKey> watched) {
    Needs max = watched.empty() ? Needs::kNothing : Needs::kMeta;
    for (const QueuedCommand& each : queue) {
      if (each.command->data == nullptr) continue;
      max = std::max(max, needs_of(*each.command, args_of(each)));
    }
    return max;
  }

  Call& call_;
  const std::span<const QueuedCommand> queue_;
  const std::span<const WatchedKey> watched_;
  std::vector<std::vector<std::string_view>> args_;  // of the queue
  KeySet keys_;
  const ReplyMark mark_{call_.reply};
  bool is_stale_ = false;
  bool changes_ = false;
};

// Empty, or the error to answer: then nothing is changed. `is_stale`: a watched key was.
task::Task<std::string> run_batch(Call& call, std::span<const QueuedCommand> queue,
                                  std::span<const WatchedKey> watched, bool& is_stale) {
  Batch batch(call, queue, watched);
  std::string refusal = cluster_refusal(call.door, batch.keys());
  if (!refusal.empty()) co_return refusal;
  Result<void> done = co_await check_keys(call.door, batch.keys(), batch.needs);
  if (!done) co_return keyspace_error(done.error());
  if (batch.keys().keys().empty()) {
    done = batch.decide({}, {});
  } else {
    done = co_await call.door.keys.transact(batch.keys().keys(), batch);
    if (done && batch.changes()) note_written(call.door, call.client, batch.keys().keys().front());
  }
  is_stale = batch.is_stale();
  co_return done ? std::string() : keyspace_error(done.error());
}

// How many commands at the front of a queue can be one change.
size_t batch_size(std::span<const QueuedCommand> queue) {
  const auto is_async = [](const QueuedCommand& each) { return each.command->async != nullptr; };
  return static_cast<size_t>(std::ranges::find_if(queue, is_async) - queue.begin());
}

// The commands behind the first batch, which are bound to answer now.
task::Task<void> run_rest(Call& call, std::span<const QueuedCommand> queue) {
  while (!queue.empty()) {
    const size_t count = batch_size(queue);
    if (count == 0) {
      const std::vector<std::string_view> args = args_of(queue.front());
      Call its{call.door, call.client, *queue.front().command, args, call.reply, call.now};
      co_await execute(its);
      queue = queue.subspan(1);
      continue;
    }
    const ReplyMark mark(call.reply);
    bool is_stale = false;
    const std::string error = co_await run_batch(call, queue.first(count), {}, is_stale);
    if (!error.empty()) {
      mark.restore(call.reply);
      for (size_t i = 0; i < count; ++i) call.reply.error(error);
    }
    queue = queue.subspan(count);
  }
}

task::Task<void> exec(Call& call) {
  if (!call.client.transaction.is_open) {
    call.reply.error("ERR EXEC without MULTI");
    co_return;
  }
  const Transaction transaction = std::exchange(call.client.transaction, {});
  if (transaction.is_broken) {
    call.reply.error("EXECABORT Transaction discarded because of previous errors.");
    co_return;
  }
  const std::span<const QueuedCommand> queue(transaction.queue);
  const size_t first = batch_size(queue);
  const ReplyMark mark(call.reply);
  call.reply.array(queue.size());
  bool is_stale = false;
  const std::string error =
      co_await run_batch(call, queue.first(first), transaction.watched, is_stale);
  if (error.empty()) {
    co_await run_rest(call, queue.subspan(first));
    co_return;
  }
  mark.restore(call.reply);
  if (is_stale) {
    call.reply.null_array();
  } else {
    call.reply.error(error);
  }
}

void multi(Call& call) {
  if (call.client.transaction.is_open) {
    return call.reply.error("ERR MULTI calls can not be nested");
  }
  call.client.transaction.is_open = true;
  call.reply.ok();
}

void discard(Call& call) {
  if (!call.client.transaction.is_open) return call.reply.error("ERR DISCARD without MULTI");
  call.client.transaction = {};
  call.reply.ok();
}

task::Task<void> watch(Call& call) {
  Transaction& transaction = call.client.transaction;
  if (transaction.is_open) {
    call.reply.error("ERR WATCH inside MULTI is not allowed");
    co_return;
  }
  for (const std::string_view key : call.args.subspan(1)) {
    if (std::ranges::find(transaction.watched, key, &WatchedKey::key) !=
        transaction.watched.end()) {
      continue;
    }
    if (transaction.watched.size() == kWatchedMax) {
      call.reply.error("ERR too many keys are watched");
      co_return;
    }
    const Result<std::optional<kv::Meta>> meta = co_await call.door.keys.look(key);
    if (!meta) {
      call.reply.error(keyspace_error(meta.error()));
      co_return;
    }
    transaction.watched.push_back({std::string(key), *meta ? (**meta).version : 0});
    transaction.bytes += key.size() + sizeof(WatchedKey);
  }
  call.reply.ok();
}

void unwatch(Call& call) {
  call.client.transaction.watched.clear();
  call.reply.ok();
}

constexpr std::array kCommands = {
    Command{.name = "multi",
            .arity = 1,
            .flags = kFast | kNeverQueued,
            .keys = {},
            .group = "transactions",
            .since = "1.2.0",
            .summary = "Mark the start of a transaction block",
            .plain = multi},
    Command{.name = "exec",
            .arity = 1,
            .flags = kNeverQueued,
            .keys = {},
            .group = "transactions",
            .since = "1.2.0",
            .summary = "Execute all commands issued after MULTI",
            .async = exec},
    Command{.name = "discard",
            .arity = 1,
            .flags = kFast | kNeverQueued,
            .keys = {},
            .group = "transactions",
            .since = "2.0.0",
            .summary = "Discard all commands issued after MULTI",
            .plain = discard},
    Command{.name = "watch",
            .arity = -2,
            .flags = kFast | kNeverQueued,
            .keys = kAllKeys,
            .group = "transactions",
            .since = "2.2.0",
            .summary = "Watch the given keys to determine execution of the MULTI/EXEC block",
            .async = watch},
    Command{.name = "unwatch",
            .arity = 1,
            .flags = kFast,
            .keys = {},
            .group = "transactions",
            .since = "2.2.0",
            .summary = "Forget about all watched keys",
            .plain = unwatch},
};

}  // namespace

std::span<const Command> transaction_commands() { return kCommands; }

}  // namespace cairn::door::resp
