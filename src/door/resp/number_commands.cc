// SPDX-License-Identifier: Apache-2.0
// Values as numbers: INCR and its kin.
#include <array>
#include <cmath>
#include <optional>
#include <string>

#include "door/resp/command_table.h"
#include "door/resp/number.h"

namespace cairn::door::resp {

namespace {

void add(Call& call, View& view, int64_t increment) {
  const kv::Entry* const entry = view.find(call.args[1]);
  std::optional<int64_t> value = 0;
  if (entry != nullptr) value = integer_word(call, entry->value);
  if (!value) return;
  int64_t sum = 0;
  if (__builtin_add_overflow(*value, increment, &sum)) {
    return call.reply.error("ERR increment or decrement would overflow");
  }
  view.put(call.args[1], std::to_string(sum), end_of(entry));
  call.reply.integer(sum);
}

void incr(Call& call, View& view) { add(call, view, 1); }

void decr(Call& call, View& view) { add(call, view, -1); }

void incrby(Call& call, View& view) {
  const std::optional<int64_t> increment = integer_word(call, call.args[2]);
  if (increment) add(call, view, *increment);
}

void decrby(Call& call, View& view) {
  const std::optional<int64_t> decrement = integer_word(call, call.args[2]);
  if (!decrement) return;
  if (*decrement == INT64_MIN) return call.reply.error("ERR decrement would overflow");
  add(call, view, -*decrement);
}

void incrbyfloat(Call& call, View& view) {
  const kv::Entry* const entry = view.find(call.args[1]);
  std::optional<long double> value = 0;
  if (entry != nullptr) value = parse_real(entry->value);
  const std::optional<long double> increment = parse_real(call.args[2]);
  if (!value || !increment) return call.reply.error("ERR value is not a valid float");
  const long double sum = *value + *increment;
  if (std::isnan(sum) || std::isinf(sum)) {
    return call.reply.error("ERR increment would produce NaN or Infinity");
  }
  const std::string text = format_real(sum);
  view.put(call.args[1], text, end_of(entry));
  call.reply.bulk(text);
}

constexpr uint32_t kFlags = kWrites | kGrows | kFast;

constexpr std::array kCommands = {
    Command{.name = "incr",
            .arity = 2,
            .flags = kFlags,
            .keys = kOneKey,
            .group = "string",
            .since = "1.0.0",
            .summary = "Increment the integer value of a key by one",
            .data = incr},
    Command{.name = "decr",
            .arity = 2,
            .flags = kFlags,
            .keys = kOneKey,
            .group = "string",
            .since = "1.0.0",
            .summary = "Decrement the integer value of a key by one",
            .data = decr},
    Command{.name = "incrby",
            .arity = 3,
            .flags = kFlags,
            .keys = kOneKey,
            .group = "string",
            .since = "1.0.0",
            .summary = "Increment the integer value of a key by the given amount",
            .data = incrby},
    Command{.name = "decrby",
            .arity = 3,
            .flags = kFlags,
            .keys = kOneKey,
            .group = "string",
            .since = "1.0.0",
            .summary = "Decrement the integer value of a key by the given number",
            .data = decrby},
    Command{.name = "incrbyfloat",
            .arity = 3,
            .flags = kFlags,
            .keys = kOneKey,
            .group = "string",
            .since = "2.6.0",
            .summary = "Increment the float value of a key by the given amount",
            .data = incrbyfloat},
};

}  // namespace

std::span<const Command> number_commands() { return kCommands; }

}  // namespace cairn::door::resp
