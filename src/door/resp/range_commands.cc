// SPDX-License-Identifier: Apache-2.0
// Parts of values: bytes and bits.
#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "door/resp/command_table.h"
#include "door/resp/number.h"

namespace cairn::door::resp {

namespace {

constexpr std::string_view kTooLong =
    "ERR string exceeds maximum allowed size (proto-max-bulk-len)";
constexpr std::string_view kNoBitOffset = "ERR bit offset is not an integer or out of range";

std::string value_of(const kv::Entry* entry) {
  return entry != nullptr ? entry->value : std::string();
}

void append(Call& call, View& view) {
  const kv::Entry* const entry = view.find(call.args[1]);
  const size_t before = entry != nullptr ? entry->value.size() : 0;
  if (before + call.args[2].size() > kv::kValueBytesMax) return call.reply.error(kTooLong);
  std::string value;
  value.reserve(before + call.args[2].size());
  value += value_of(entry);
  value += call.args[2];
  call.reply.integer(static_cast<int64_t>(value.size()));
  view.put(call.args[1], std::move(value), end_of(entry));
}

void strlen(Call& call, View& view) {
  const kv::Entry* const entry = view.find(call.args[1]);
  call.reply.integer(entry != nullptr ? static_cast<int64_t>(entry->meta.size) : 0);
}

void getrange(Call& call, View& view) {
  const std::optional<int64_t> first = integer_word(call, call.args[2]);
  if (!first) return;
  const std::optional<int64_t> last = integer_word(call, call.args[3]);
  if (!last) return;
  const kv::Entry* const entry = view.find(call.args[1]);
  if (entry == nullptr) return call.reply.bulk("");
  const auto size = static_cast<int64_t>(entry->value.size());
  if (*first < 0 && *last < 0 && *first > *last) return call.reply.bulk("");
  const int64_t begin = std::max<int64_t>(*first < 0 ? *first + size : *first, 0);
  const int64_t end = std::max<int64_t>(*last < 0 ? *last + size : *last, 0);
  const int64_t stop = std::min(end, size - 1);
  if (begin > stop || size == 0) return call.reply.bulk("");
  call.reply.bulk(std::string_view(entry->value)
                      .substr(static_cast<size_t>(begin), static_cast<size_t>(stop - begin + 1)));
}

void setrange(Call& call, View& view) {
  const std::optional<int64_t> offset = integer_word(call, call.args[2]);
  if (!offset) return;
  if (*offset < 0) return call.reply.error("ERR offset is out of range");
  const std::string_view piece = call.args[3];
  const kv::Entry* const entry = view.find(call.args[1]);
  if (piece.empty()) {
    return call.reply.integer(entry != nullptr ? static_cast<int64_t>(entry->value.size()) : 0);
  }
  const auto begin = static_cast<uint64_t>(*offset);
  if (begin > kv::kValueBytesMax || begin + piece.size() > kv::kValueBytesMax) {
    return call.reply.error(kTooLong);
  }
  std::string value = value_of(entry);
  value.resize(std::max<size_t>(value.size(), begin + piece.size()));
  value.replace(begin, piece.size(), piece);
  call.reply.integer(static_cast<int64_t>(value.size()));
  view.put(call.args[1], std::move(value), end_of(entry));
}

// The number of a bit in a value; none, and an error in the reply: there can be no such bit.
std::optional<uint64_t> bit_word(Call& call, std::string_view word) {
  const std::optional<int64_t> offset = parse_integer(word);
  if (offset && *offset >= 0 && static_cast<uint64_t>(*offset) / 8 < kv::kValueBytesMax) {
    return static_cast<uint64_t>(*offset);
  }
  call.reply.error(kNoBitOffset);
  return std::nullopt;
}

void getbit(Call& call, View& view) {
  const std::optional<uint64_t> bit = bit_word(call, call.args[2]);
  if (!bit) return;
  const kv::Entry* const entry = view.find(call.args[1]);
  if (entry == nullptr || *bit / 8 >= entry->value.size()) return call.reply.integer(0);
  const auto byte = static_cast<unsigned char>(entry->value[*bit / 8]);
  call.reply.integer((byte >> (7 - *bit % 8)) & 1);
}

void setbit(Call& call, View& view) {
  const std::optional<uint64_t> bit = bit_word(call, call.args[2]);
  if (!bit) return;
  if (call.args[3] != "0" && call.args[3] != "1") {
    return call.reply.error("ERR bit is not an integer or out of range");
  }
  const kv::Entry* const entry = view.find(call.args[1]);
  std::string value = value_of(entry);
  value.resize(std::max<size_t>(value.size(), *bit / 8 + 1));
  const auto mask = static_cast<unsigned char>(1U << (7 - *bit % 8));
  auto byte = static_cast<unsigned char>(value[*bit / 8]);
  call.reply.integer((byte & mask) != 0 ? 1 : 0);
  byte = static_cast<unsigned char>(call.args[3] == "1" ? byte | mask : byte & ~mask);
  value[*bit / 8] = static_cast<char>(byte);
  view.put(call.args[1], std::move(value), end_of(entry));
}

constexpr std::array kCommands = {
    Command{.name = "append",
            .arity = 3,
            .flags = kWrites | kGrows | kFast,
            .keys = kOneKey,
            .group = "string",
            .since = "2.0.0",
            .summary = "Append a value to a key",
            .data = append},
    Command{.name = "strlen",
            .arity = 2,
            .flags = kReads | kFast,
            .keys = kOneKey,
            .group = "string",
            .since = "2.2.0",
            .summary = "Get the length of the value stored in a key",
            .data = strlen,
            .needs = kv::Change::Needs::kMeta},
    Command{.name = "getrange",
            .arity = 4,
            .flags = kReads,
            .keys = kOneKey,
            .group = "string",
            .since = "2.4.0",
            .summary = "Get a substring of the string stored at a key",
            .data = getrange},
    Command{.name = "substr",
            .arity = 4,
            .flags = kReads,
            .keys = kOneKey,
            .group = "string",
            .since = "1.0.0",
            .summary = "Get a substring of the string stored at a key",
            .data = getrange},
    Command{.name = "setrange",
            .arity = 4,
            .flags = kWrites | kGrows,
            .keys = kOneKey,
            .group = "string",
            .since = "2.2.0",
            .summary = "Overwrite part of a string at key starting at the specified offset",
            .data = setrange},
    Command{.name = "getbit",
            .arity = 3,
            .flags = kReads | kFast,
            .keys = kOneKey,
            .group = "bitmap",
            .since = "2.2.0",
            .summary = "Returns the bit value at offset in the string value stored at key",
            .data = getbit},
    Command{.name = "setbit",
            .arity = 4,
            .flags = kWrites | kGrows,
            .keys = kOneKey,
            .group = "bitmap",
            .since = "2.2.0",
            .summary = "Sets or clears the bit at offset in the string value stored at key",
            .data = setbit},
};

}  // namespace

std::span<const Command> range_commands() { return kCommands; }

}  // namespace cairn::door::resp
