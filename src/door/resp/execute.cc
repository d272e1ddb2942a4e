// SPDX-License-Identifier: Apache-2.0
#include "door/resp/execute.h"

#include <optional>
#include <span>
#include <utility>

#include "base/error_text.h"
#include "door/resp/door_state.h"

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
    View view(keys_, now, call_.now);
    call_.command.data(call_, view);
    view.commit(edits);
    return {};
  }

 private:
  Call& call_;
  const KeySet& keys_;
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

task::Task<void> execute_data(Call& call) {
  KeySet keys;
  add_keys(call.command, call.args, keys);
  keys.seal();
  const size_t mark = call.reply.bytes.size();
  Result<void> done = co_await check_keys(call.door, keys, needs_of(call.command, call.args));
  if (done && call.command.is(kReads) && keys.keys().size() == 1) {
    done = co_await read_one(call, keys);
  } else if (done) {
    CommandChange change(call, keys);
    done = co_await call.door.keys.transact(keys.keys(), change);
  }
  if (done) co_return;
  call.reply.bytes.resize(mark);
  call.reply.error(keyspace_error(done.error()));
}

}  // namespace

std::string keyspace_error(const Error& error) {
  if (error == Errc::kNoSpace) {
    return "OOM command not allowed: there is no space for more keys and values (" +
           error_text(error) + ")";
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
  if (call.command.data != nullptr) {
    co_await execute_data(call);
  } else if (call.command.async != nullptr) {
    co_await call.command.async(call);
  } else {
    call.command.plain(call);
  }
}

}  // namespace cairn::door::resp
