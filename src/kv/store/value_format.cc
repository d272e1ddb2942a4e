// SPDX-License-Identifier: Apache-2.0
#include "kv/store/value_format.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/crc32c.h"

namespace cairn::kv::store {

namespace {

constexpr int kSizeBits = 28;

uint32_t checksum_of(const StoreId& id, uint64_t position, Bytes record) {
  const std::array<uint64_t, 3> seal = {id[0], id[1], position};
  const uint32_t so_far = crc32c(std::as_bytes(std::span(seal)));
  return crc32c(record.subspan(sizeof(uint32_t)), so_far);
}

// None: no record begins like this.
std::optional<RecordHeader> decode_header(Bytes from) {
  const auto size = load<uint32_t>(from.subspan(4));
  const auto kind = size >> kSizeBits;
  if (kind < static_cast<uint32_t>(RecordKind::kValue) ||
      kind > static_cast<uint32_t>(RecordKind::kSkip)) {
    return std::nullopt;
  }
  RecordHeader header{.kind = static_cast<RecordKind>(kind),
                      .key_bytes = load<uint16_t>(from.subspan(8)) + uint32_t{1},
                      .value_bytes = size & ((uint32_t{1} << kSizeBits) - 1),
                      .version = load<uint32_t>(from.subspan(10)) |
                                 uint64_t{load<uint16_t>(from.subspan(14))} << 32};
  if (header.kind == RecordKind::kSkip) {
    header.key_bytes = 0;
    header.value_bytes = 0;
  }
  if (header.kind == RecordKind::kPiece && header.key_bytes != kPieceOwnerBytes) {
    return std::nullopt;
  }
  if (header.bytes() > kRecordBytesMax) return std::nullopt;
  return header;
}

void encode_header(const RecordHeader& header, MutableBytes to) {
  cairn::store(to.subspan(4), header.value_bytes | static_cast<uint32_t>(header.kind) << kSizeBits);
  cairn::store(to.subspan(8), static_cast<uint16_t>(header.key_bytes - 1));
  cairn::store(to.subspan(10), static_cast<uint32_t>(header.version));
  cairn::store(to.subspan(14), static_cast<uint16_t>(header.version >> 32));
}

}  // namespace

void encode_owner(const PieceOwner& owner, MutableBytes to) {
  cairn::store(to, owner.fingerprint);
  cairn::store(to.subspan(8), owner.segment);
}
PieceOwner decode_owner(Bytes from) {
  return {.fingerprint = load<uint64_t>(from), .segment = load<uint32_t>(from.subspan(8))};
}

void encode_record(const StoreId& id, uint64_t position, const RecordHeader& header, Bytes key,
                   Bytes value, MutableBytes to) {
  CHECK(key.size() == header.key_bytes && value.size() == header.value_bytes);
  CHECK(header.bytes() <= kRecordBytesMax && to.size() == header.units() * kUnitBytes);
  encode_header(header, to);
  std::ranges::copy(key, to.begin() + kRecordHeaderBytes);
  std::ranges::copy(value, to.begin() + static_cast<ptrdiff_t>(kRecordHeaderBytes + key.size()));
  std::ranges::fill(to.subspan(header.bytes()), std::byte{0});
  cairn::store(to, checksum_of(id, position, to.first(header.bytes())));
}

void encode_skip(const StoreId& id, uint64_t position, MutableBytes to) {
  encode_header({.kind = RecordKind::kSkip}, to);
  cairn::store(to, checksum_of(id, position, to.first(kRecordHeaderBytes)));
}

std::optional<Record> decode_record(const StoreId& id, uint64_t position, Bytes from) {
  if (from.size() < kRecordHeaderBytes) return std::nullopt;
  const std::optional<RecordHeader> header = decode_header(from);
  if (!header || header->bytes() > from.size()) return std::nullopt;
  if (load<uint32_t>(from) != checksum_of(id, position, from.first(header->bytes()))) {
    return std::nullopt;
  }
  return Record{.header = *header,
                .key = from.subspan(kRecordHeaderBytes, header->key_bytes),
                .value = from.subspan(kRecordHeaderBytes + header->key_bytes, header->value_bytes)};
}

bool is_cut_short(Bytes from) {
  if (from.size() < kRecordHeaderBytes) return true;
  const std::optional<RecordHeader> header = decode_header(from);
  return header && header->bytes() > from.size();
}

std::optional<std::vector<uint64_t>> decode_places(Bytes from, uint64_t value_bytes,
                                                   uint64_t log_units) {
  const uint64_t count = pieces_of(value_bytes);
  if (count > kValuePiecesMax || from.size() != count * kPlaceBytes) return std::nullopt;
  std::vector<uint64_t> places;
  for (uint64_t i = 0; i < count; ++i) {
    places.push_back(load<uint64_t>(from.subspan(i * kPlaceBytes)));
    if (places.back() >= log_units) return std::nullopt;
  }
  return places;
}

}  // namespace cairn::kv::store
