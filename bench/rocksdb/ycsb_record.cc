// SPDX-License-Identifier: Apache-2.0
#include "bench/rocksdb/ycsb_record.h"

#include <fmt/format.h>

#include <span>

#include "base/rng.h"

namespace cairn::bench {

namespace {

constexpr size_t kVersionBytes = 8;
static_assert(kVersionBytes < kYcsbValueBytes);

}  // namespace

std::string ycsb_key(uint64_t number) { return fmt::format("user{:016x}", mix64(number)); }

std::string ycsb_value(uint64_t number, uint64_t version) {
  std::string value(kYcsbValueBytes, '\0');
  for (size_t i = 0; i < kVersionBytes; ++i) value[i] = static_cast<char>(version >> (8 * i));
  Rng rng(mix64(number) ^ version);
  rng.fill(std::as_writable_bytes(std::span(value).subspan(kVersionBytes)));
  return value;
}

Result<uint64_t> ycsb_version(uint64_t number, std::string_view value) {
  if (value.size() != kYcsbValueBytes) {
    return fail(Errc::kCorrupt, "a record has not the length of those that were put");
  }
  uint64_t version = 0;
  for (size_t i = 0; i < kVersionBytes; ++i) {
    version |= uint64_t{static_cast<uint8_t>(value[i])} << (8 * i);
  }
  if (value != ycsb_value(number, version)) {
    return fail(Errc::kCorrupt, "a record is not one that was put under its key");
  }
  return version;
}

}  // namespace cairn::bench
