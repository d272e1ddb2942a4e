// SPDX-License-Identifier: Apache-2.0
#include "door/resp/execute.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>

#include "base/error_text.h"
#include "door/resp/cluster.h"
#include "door/resp/door_state.h"
#include "door/resp/number.h"

namespace cairn::door::resp {

namespace {

using Needs = kv::Change::Needs;

// So many values of any size may be in memory for one command; of more, the sizes are asked first.
constexpr size_t kValuesUnasked = 16;
static_assert(kValuesUnasked * kv::kValueBytesMax <= kReplyBytesMax);

// A data command as a change.
class CommandChange final : public kv::Change {
 public:
  CommandChange(Call& call, const KeySet& keys)
      : Change(needs_of(call.command, call.args)), call_(call), keys_(keys) {}

  Result<void> decide(std::span<const std::optional<kv::Entry>> now,
                      std::span<kv::Edit> edits) override {
    mark_.restore(call_.reply);
    View view(keys_, now, call_.now);
    call_.command.data(call_, view);
    view.commit(edits);
    changes_ = std::ranges::any_of(
        edits, [](const kv::Edit& each) { return each.kind != kv::Edit::Kind::kKeep; });
    return {};
  }
  bool changes() const { return changes_; }

 private:
  Call& call_;
  const KeySet& keys_;
  bool changes_ = false;
  const ReplyMark mark_{call_.reply};
};

void count_reads(DoorState& door, std::span<const std::optional<kv::Entry>> found) {
  for (const auto& each : found) ++(each ? door.stats.hits : door.stats.misses);
}

task::Task<Result<void>> read_one(Call& call, const KeySet& keys) {
  std::optional<kv::Entry> found;
  const std::string_view key = keys.keys().front();
  if (needs_of(call.command, call.args) == Needs::kValues) {
    Result<std::optional<kv::Entry>> got = co_await call.door.keys.get(key);
    if (!got) co_return fail(got.error());
    found = std::move(*got);
  } else {
    const Result<std::optional<kv::Meta>> got = co_await call.door.keys.look(key);
    if (!got) co_return fail(got.error());
    if (*got) found.emplace(kv::Entry{.meta = **got, .value = {}});
  }
  count_reads(call.door, std::span(&found, 1));
  View view(keys, std::span(&found, 1), call.now);
  call.command.data(call, view);
  co_return Result<void>();
}

task::Task<void> execute_by_key(Call& call);

task::Task<void> execute_data(Call& call) {
  KeySet keys;
  add_keys(call.command, call.args, keys);
  keys.seal();
  if (const std::string why = cluster_refusal(call.door, call.command, keys); !why.empty()) {
    call.reply.error(why);
    co_return;
  }
  if (call.door.options.cluster && keys.keys().size() > 1 && call.command.is(kSumOfKeys)) {
    co_return co_await execute_by_key(call);
  }
  const ReplyMark mark(call.reply);
  Result<void> done = co_await check_keys(call.door, keys, needs_of(call.command, call.args));
  if (done && call.command.is(kReads) && keys.keys().size() == 1) {
    done = co_await read_one(call, keys);
  } else if (done) {
    CommandChange change(call, keys);
    done = co_await call.door.keys.transact(keys.keys(), change);
    if (done && change.changes()) note_written(call.door, call.client, keys.keys().front());
  }
  if (done) co_return;
  mark.restore(call.reply);
  call.reply.error(keyspace_error(done.error()));
}

// As often as there are keys, each time with one; the replies are numbers, whose sum is told.
task::Task<void> execute_by_key(Call& call) {
  int64_t sum = 0;
  for (const std::string_view key : call.args.subspan(1)) {
    const std::array<std::string_view, 2> words = {call.args[0], key};
    Reply reply{.bytes = {}, .protocol = call.reply.protocol};
    Call one{call.door, call.client, call.command, words, reply, call.now};
    co_await execute_data(one);
    const std::string_view text = reply.bytes;
    const std::optional<int64_t> number =
        text.starts_with(':') ? parse_integer(text.substr(1, text.size() - 3)) : std::nullopt;
    if (!number) {
      call.reply.bytes += text;
      call.reply.errors += reply.errors;
      co_return;
    }
    sum += *number;
  }
  call.reply.integer(sum);
}

}  // namespace

std::string keyspace_error(const Error& error) {
  if (error == Errc::kNoSpace) {
    return "OOM command not allowed: there is no space for more keys and values (" +
           error_text(error) + ")";
  }
  if (error == Errc::kUnreachable) return "CLUSTERDOWN " + error_text(error);
  if (error == Errc::kTimedOut) {
    return "ERR nobody answered in time: it is not known whether the change happened, or will";
  }
  return "ERR " + error_text(error);
}

task::Task<Result<void>> check_keys(DoorState& door, const KeySet& keys, Needs needs) {
  for (const std::string_view key : keys.keys()) {
    if (key.empty()) co_return fail(Errc::kInvalid, "a key is empty, and must not be");
    if (key.size() > kv::kKeyBytesMax) {
      co_return fail(Errc::kInvalid, "a key is longer than 65536 bytes");
    }
  }
  if (needs != Needs::kValues || keys.keys().size() <= kValuesUnasked) co_return Result<void>();
  uint64_t together = 0;
  for (const std::string_view key : keys.keys()) {
    const Result<std::optional<kv::Meta>> meta = co_await door.keys.look(key);
    if (!meta) co_return fail(meta.error());
    if (*meta) together += (**meta).size;
  }
  if (together <= kReplyBytesMax) co_return Result<void>();
  co_return fail(Errc::kLimit, kTooMuchTogether);
}

task::Task<void> execute(Call& call) {
  const Time begun = call.door.env.now();
  if (call.command.data != nullptr) {
    co_await execute_data(call);
  } else if (call.command.async != nullptr) {
    co_await call.command.async(call);
  } else {
    call.command.plain(call);
  }
  call.door.stats.latency.record(call.door.env.now() - begun);
}

}  // namespace cairn::door::resp
