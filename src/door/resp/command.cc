// SPDX-License-Identifier: Apache-2.0
#include "door/resp/command.h"

#include <algorithm>

#include "door/resp/number.h"

namespace cairn::door::resp {

void add_keys(const Command& command, Args args, KeySet& keys) {
  for_each_key(command, args, [&](std::string_view key) { keys.add(key); });
}

kv::Change::Needs needs_of(const Command& command, Args args) {
  return command.needs_of != nullptr ? command.needs_of(args) : command.needs;
}

bool is_word(std::string_view word, std::string_view lower) {
  return std::ranges::equal(word, lower, [](char typed, char small) {
    return (typed >= 'A' && typed <= 'Z' ? typed - 'A' + 'a' : typed) == small;
  });
}

std::optional<int64_t> integer_word(Call& call, std::string_view word) {
  const std::optional<int64_t> value = parse_integer(word);
  if (!value) call.reply.error(kNoInteger);
  return value;
}

}  // namespace cairn::door::resp
