// SPDX-License-Identifier: Apache-2.0
#include "kv/chain/command.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace cairn::kv::chain {

namespace {

std::optional<int64_t> number_of(const std::string& text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return number;
}

// The new value; none: it is erased. False: nothing changes.
bool carry_out(const std::optional<std::string>& now, uint64_t version, const Command& command,
               Outcome& outcome, std::optional<std::string>& after) {
  switch (command.kind) {
    case Command::Kind::kPut:
      after = command.value;
      return true;
    case Command::Kind::kErase:
      return now.has_value();
    case Command::Kind::kPutNew:
      after = command.value;
      return !now;
    case Command::Kind::kReplace:
      after = command.value;
      return now && version == command.version;
    case Command::Kind::kSwap:
      after = command.value;
      return version == command.version;
    case Command::Kind::kSwapErase:
      return version == command.version;
    case Command::Kind::kAdd: {
      const std::optional<int64_t> number = now ? number_of(*now) : 0;
      outcome.is_no_number =
          !number || __builtin_add_overflow(*number, command.amount, &outcome.number);
      if (outcome.is_no_number) outcome.number = 0;
      if (!outcome.is_no_number) after = fmt::format("{}", outcome.number);
      return !outcome.is_no_number;
    }
  }
  return false;
}

// `now` is null if there is no such key.
int64_t end_after(const Record* now, const Command& command) {
  if (command.kind != Command::Kind::kAdd) return command.expires_ms;
  return now != nullptr ? now->expires_ms : kNoEnd;
}

void remember(Record& record, RequestId id, const Outcome& outcome) {
  std::erase_if(record.requests,
                [id](const Remembered& each) { return each.id.client == id.client; });
  if (record.requests.size() == kRememberedMax) {
    record.forgotten = std::max(record.forgotten, record.requests.front().outcome.version);
    record.requests.erase(record.requests.begin());
  }
  record.requests.push_back({id, outcome});  // by their versions
}

}  // namespace

Decision decide(const std::optional<Record>& now, const Command& command, RequestId id,
                uint64_t since, uint64_t version, int64_t now_ms) {
  Decision decision;
  if (now) {
    const auto last = std::ranges::find(now->requests, id.client,
                                        [](const Remembered& each) { return each.id.client; });
    if (last != now->requests.end() && last->id.number >= id.number) {
      const bool is_same = last->id.number == id.number;
      decision.kind = is_same ? Decision::Kind::kRepeated : Decision::Kind::kOutdated;
      if (is_same) decision.outcome = last->outcome;
      return decision;
    }
    if (last == now->requests.end() && now->forgotten > since) {
      decision.kind = Decision::Kind::kDoubtful;
      return decision;
    }
  }
  std::optional<std::string> value;
  if (now && now->is_there(now_ms)) value = now->value;
  std::optional<std::string> after;
  if (!carry_out(value, now ? now->version : 0, command, decision.outcome, after)) return decision;
  decision.kind = Decision::Kind::kChanged;
  decision.outcome.done = true;
  decision.outcome.version = version;
  decision.record = {.version = version,
                     .is_erased = !after,
                     .expires_ms = after ? end_after(value ? &*now : nullptr, command) : kNoEnd,
                     .forgotten = now ? now->forgotten : 0,
                     .requests = now ? now->requests : std::vector<Remembered>(),
                     .value = after.value_or("")};
  remember(decision.record, id, decision.outcome);
  return decision;
}

}  // namespace cairn::kv::chain
