// SPDX-License-Identifier: Apache-2.0
#include "meta/types.h"

#include <algorithm>

namespace cairn::meta {

Range Range::one(std::string_view key) {
  return {.first = std::string(key), .end = std::string(key) + '\0'};
}

Range Range::prefix(std::string_view prefix) {
  Range range{.first = std::string(prefix), .end = std::string(prefix)};
  while (!range.end.empty() && range.end.back() == '\xff') range.end.pop_back();
  if (!range.end.empty()) ++range.end.back();
  return range;
}

Result<void> check_key(std::string_view key) {
  if (key.empty()) return fail(Errc::kInvalid, "a metadata key is empty");
  if (key.size() > kKeyMax) {
    return fail(Errc::kInvalid, "a metadata key is longer than 1024 bytes",
                static_cast<int32_t>(std::min<size_t>(key.size(), INT32_MAX)));
  }
  return {};
}

Result<void> check_range(const Range& range) {
  // One byte more than a key: the range behind the longest key begins there.
  if (range.first.size() > kKeyMax + 1 || range.end.size() > kKeyMax + 1) {
    return fail(Errc::kInvalid, "an end of a range of metadata keys is longer than any key");
  }
  if (!range.end.empty() && range.end <= range.first) {
    return fail(Errc::kInvalid, "a range of metadata keys ends before it begins");
  }
  return {};
}

Result<void> check_list(const ListOptions& options) {
  if (options.limit == 0 || options.limit > kPageMax) {
    return fail(Errc::kInvalid, "a page has 1 to 256 metadata entries",
                static_cast<int32_t>(std::min<size_t>(options.limit, INT32_MAX)));
  }
  return check_range(options.range);
}

Result<void> check_batch(const Batch& batch) {
  if (batch.writes.size() > kBatchWritesMax || batch.preconditions.size() > kBatchWritesMax) {
    return fail(Errc::kInvalid, "a metadata batch has more than 128 writes or preconditions");
  }
  size_t bytes = 0;
  for (const Precondition& condition : batch.preconditions) {
    if (const Result<void> key = check_key(condition.key); !key) return key;
    const bool has_revision = condition.kind == Precondition::Kind::kModified ||
                              condition.kind == Precondition::Kind::kCreated;
    if (has_revision && condition.revision == Revision()) {
      return fail(Errc::kInvalid, "a precondition needs a revision; an absent key is if_absent");
    }
    bytes += condition.key.size() + condition.value.size();
  }
  std::vector<std::string_view> keys;
  for (const Write& write : batch.writes) {
    if (const Result<void> key = check_key(write.key); !key) return key;
    if (write.value && write.value->size() > kValueMax) {
      return fail(Errc::kInvalid, "a metadata value is longer than 64 KiB",
                  static_cast<int32_t>(std::min<size_t>(write.value->size(), INT32_MAX)));
    }
    bytes += write.key.size() + (write.value ? write.value->size() : 0);
    keys.push_back(write.key);
  }
  if (bytes > kBatchBytesMax) {
    return fail(Errc::kInvalid, "a metadata batch is longer than 1 MiB: split it",
                static_cast<int32_t>(std::min<size_t>(bytes, INT32_MAX)));
  }
  std::ranges::sort(keys);
  if (std::ranges::adjacent_find(keys) != keys.end()) {
    return fail(Errc::kInvalid, "a metadata batch writes a key twice");
  }
  return {};
}

Result<void> check_ttl(Duration ttl) {
  if (ttl < kLeaseTtlMin || ttl > kLeaseTtlMax) {
    return fail(Errc::kInvalid, "a lease lasts from a second to a day");
  }
  return {};
}

}  // namespace cairn::meta
