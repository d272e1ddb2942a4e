// SPDX-License-Identifier: Apache-2.0
#include "world/rocks/rows_format.h"

#include <bit>
#include <cstddef>

#include "base/bytes.h"
#include "base/crc32c.h"

namespace cairn::rocks {

namespace {

constexpr std::string_view kMagic = "cairn metadata";
constexpr uint32_t kVersion = 1;
constexpr size_t kChecksumSize = 4;
constexpr size_t kRowHeadSize = 1 + 8 + 8 + 4;

template <class T>
void put(std::string& to, T value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof(value));
}
template <class T>
T take(std::string_view& from) {
  const T value = load<T>(as_bytes(from));
  from.remove_prefix(sizeof(T));
  return value;
}

std::string sealed(std::string_view key, std::string value) {
  put(value, crc32c(as_bytes(value), crc32c(as_bytes(key))));
  return value;
}

// What is before the checksum, if that is right and there are `min` bytes.
Result<std::string_view> unsealed(std::string_view key, std::string_view value, size_t min) {
  if (value.size() >= min + kChecksumSize) {
    const std::string_view inside = value.substr(0, value.size() - kChecksumSize);
    const auto checksum = load<uint32_t>(as_bytes(value.substr(inside.size())));
    if (crc32c(as_bytes(inside), crc32c(as_bytes(key))) == checksum) return inside;
  }
  return fail(Errc::kCorrupt, "a row of the metadata folder is damaged: restore the folder");
}

std::unexpected<Error> odd_key() {
  return fail(Errc::kCorrupt, "the metadata folder has a row that nobody wrote");
}

}  // namespace

std::string format_value() {
  std::string value(kMagic);
  put(value, kVersion);
  return value;
}

Result<void> check_format(std::string_view value) {
  if (!value.starts_with(kMagic) || value.size() != kMagic.size() + sizeof(kVersion)) {
    return fail(Errc::kUnsupported, "the folder holds a RocksDB of something else");
  }
  const auto version = load<uint32_t>(as_bytes(value.substr(kMagic.size())));
  if (version != kVersion) {
    return fail(Errc::kUnsupported,
                "the metadata folder is of another version: use the program that wrote it",
                static_cast<int32_t>(version));
  }
  return {};
}

std::string lease_key(meta::LeaseId lease) {
  std::string key(1, kLeaseMark);
  put(key, std::byteswap(lease.value()));
  return key;
}

std::string row_key(meta::RowId row) {
  std::string key(1, kRowMark);
  put(key, std::byteswap(row.revision.value()));
  put(key, std::byteswap(row.index));
  return key;
}

std::string lease_value(const meta::Lease& lease) {
  std::string value;
  put(value, lease.ttl.ns);
  return sealed(lease_key(lease.id), std::move(value));
}

std::string row_value(const meta::Row& row) {
  std::string value;
  put(value, static_cast<uint8_t>(row.removed ? 1 : 0));
  put(value, row.entry.created.value());
  put(value, row.entry.lease.value());
  put(value, static_cast<uint32_t>(row.entry.key.size()));
  value += row.entry.key;
  value += row.entry.value;
  return sealed(row_key({row.entry.modified, row.index}), std::move(value));
}

std::string totals_value(const Totals& totals) {
  std::string value;
  put(value, totals.revision.value());
  put(value, totals.compacted.value());
  put(value, totals.last_lease.value());
  return sealed(kTotalsKey, std::move(value));
}

Result<meta::Lease> read_lease(std::string_view key, std::string_view value) {
  if (key.size() != 1 + 8) return odd_key();
  const Result<std::string_view> inside = unsealed(key, value, 8);
  if (!inside) return fail(inside.error());
  if (inside->size() != 8) return odd_key();
  const uint64_t id = std::byteswap(load<uint64_t>(as_bytes(key.substr(1))));
  return meta::Lease{meta::LeaseId(id), Duration{load<int64_t>(as_bytes(*inside))}};
}

Result<meta::Row> read_row(std::string_view key, std::string_view value) {
  if (key.size() != 1 + 8 + 4) return odd_key();
  const Result<std::string_view> inside = unsealed(key, value, kRowHeadSize);
  if (!inside) return fail(inside.error());
  std::string_view left = *inside;
  meta::Row row;
  const auto removed = take<uint8_t>(left);
  row.removed = removed == 1;
  row.entry.created = meta::Revision(take<uint64_t>(left));
  row.entry.lease = meta::LeaseId(take<uint64_t>(left));
  const auto key_size = take<uint32_t>(left);
  if (removed > 1 || key_size > left.size()) return odd_key();
  row.entry.key = left.substr(0, key_size);
  row.entry.value = left.substr(key_size);
  key.remove_prefix(1);
  row.entry.modified = meta::Revision(std::byteswap(take<uint64_t>(key)));
  row.index = std::byteswap(take<uint32_t>(key));
  return row;
}

Result<Totals> read_totals(std::string_view value) {
  const Result<std::string_view> inside = unsealed(kTotalsKey, value, 24);
  if (!inside) return fail(inside.error());
  if (inside->size() != 24) return odd_key();
  std::string_view left = *inside;
  Totals totals;
  totals.revision = meta::Revision(take<uint64_t>(left));
  totals.compacted = meta::Revision(take<uint64_t>(left));
  totals.last_lease = meta::LeaseId(take<uint64_t>(left));
  return totals;
}

}  // namespace cairn::rocks
