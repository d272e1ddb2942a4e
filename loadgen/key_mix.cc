// SPDX-License-Identifier: Apache-2.0
#include "loadgen/key_mix.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/bytes.h"

namespace cairn::loadgen {

namespace {

constexpr std::array<KeyMix, 6> kMixes = {{
    {.name = "a", .updates = 0.5},
    {.name = "b", .updates = 0.05},
    {.name = "c"},
    {.name = "d", .inserts = 0.05, .reads_latest = true},
    {.name = "f", .changes = 0.5},
    {.name = "wr", .updates = 1},
}};

}  // namespace

std::span<const KeyMix> key_mixes() { return kMixes; }

const KeyMix* find_key_mix(std::string_view name) {
  const auto* found = std::ranges::find(kMixes, name, &KeyMix::name);
  return found == kMixes.end() ? nullptr : found;
}

KeyOperations::KeyOperations(const KeyMix& mix, const KeyDraw& draw)
    : mix_(mix),
      keys_(draw.distribution, draw.records, draw.exponent),
      records_(draw.records),
      rng_(draw.seed) {}

KeyOperation::Kind KeyOperations::draw_kind() {
  const double part = rng_.uniform();
  if (part < mix_.updates) return KeyOperation::Kind::kUpdate;
  if (part < mix_.updates + mix_.inserts) return KeyOperation::Kind::kInsert;
  if (part < mix_.updates + mix_.inserts + mix_.changes) return KeyOperation::Kind::kChange;
  return KeyOperation::Kind::kRead;
}

KeyOperation KeyOperations::next() {
  const KeyOperation::Kind kind = draw_kind();
  if (kind == KeyOperation::Kind::kInsert) {
    const uint64_t record = records_ + inserted_++ % std::max<uint64_t>(records_ / 4, 1);
    return {.kind = kind, .record = record};
  }
  if (!mix_.reads_latest) return {.kind = kind, .record = keys_.draw(rng_)};
  // Newest first: those that were inserted, then the others from their end.
  const uint64_t rank = keys_.draw_rank(rng_);
  const uint64_t more = std::max<uint64_t>(records_ / 4, 1);
  const uint64_t there = std::min(inserted_, more);
  if (rank >= there) return {.kind = kind, .record = records_ - 1 - (rank - there)};
  return {.kind = kind, .record = records_ + (inserted_ - 1 - rank) % more};
}

std::string key_of_record(uint64_t record) { return fmt::format("{:016x}", mix64(record)); }

// The record's number, and then bytes that no store can make smaller.
std::string value_of_record(uint64_t record, size_t bytes) {
  std::string value(bytes, '\0');
  const std::span<char> all(value);
  cairn::store(std::as_writable_bytes(all), record);
  uint64_t state = mix64(record + 1);
  size_t at = kRecordValueBytesMin;
  for (; at + sizeof(state) <= bytes; at += sizeof(state)) {
    cairn::store(std::as_writable_bytes(all.subspan(at)), state);
    state = state * 0x5851f42d4c957f2d + 0x14057b7ef767814f;
  }
  return value;
}

bool is_value_of(uint64_t record, std::string_view value) {
  return value.size() >= kRecordValueBytesMin && load<uint64_t>(as_bytes(value)) == record;
}

}  // namespace cairn::loadgen
