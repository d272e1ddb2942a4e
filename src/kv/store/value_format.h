// SPDX-License-Identifier: Apache-2.0
// Records of the value log, each in units of 16 bytes, one after the other:
//
//   header (16 bytes) | key | value | zeroes up to the unit
//
// header  0 checksum 4, 4 value size (28 bits) and kind (4 bits) 4, 8 key size - 1 2, 10 version 6
//
// A value that with its key has more than kInlineBytesMax lies in pieces of its own, and the record
// of its key says where. All numbers are little-endian. The checksum is the CRC32C of the store's
// id, the record's position in the log (8 bytes each, not stored) and the record after the checksum
// without the zeroes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "kv/store/bucket_format.h"
#include "kv/store/layout.h"

namespace cairn::kv::store {

inline constexpr size_t kRecordHeaderBytes = 16;
inline constexpr size_t kInlineBytesMax = 64UL * 1024;  // of key and value
inline constexpr size_t kPieceBytes = 64UL * 1024;  // of a value in one record; the last has less
inline constexpr size_t kValuePiecesMax = 256;
inline constexpr size_t kPlaceBytes = 8;  // of a piece, in the record of its key
// A key of 64 KiB and the places of all pieces, or one piece.
inline constexpr size_t kRecordBytesMax =
    kRecordHeaderBytes + 64UL * 1024 + kValuePiecesMax * kPlaceBytes;

enum class RecordKind : uint8_t {
  kValue = 1,   // key and value
  kPieces = 2,  // key and the places of the value's pieces
  kPiece = 3,   // whose it is (PieceOwner) and bytes of a value
  kSkip = 4,    // the log goes on at its first unit
};

struct RecordHeader {
  RecordKind kind = RecordKind::kValue;
  uint32_t key_bytes = 1;  // 1 to 65536
  uint32_t value_bytes = 0;
  uint64_t version = 0;  // 48 bits
  size_t bytes() const { return kRecordHeaderBytes + key_bytes + value_bytes; }
  uint64_t units() const { return (bytes() + kUnitBytes - 1) / kUnitBytes; }
  friend bool operator==(const RecordHeader&, const RecordHeader&) = default;
};

constexpr bool is_in_pieces(uint64_t key_bytes, uint64_t value_bytes) {
  return key_bytes + value_bytes > kInlineBytesMax;
}
constexpr uint64_t pieces_of(uint64_t value_bytes) {
  return (value_bytes + kPieceBytes - 1) / kPieceBytes;
}

// What lies in place of the key in the record of a piece.
struct PieceOwner {
  uint64_t fingerprint = 0;
  uint32_t segment = 0;
};
inline constexpr size_t kPieceOwnerBytes = 12;
void encode_owner(const PieceOwner& owner, MutableBytes to);
PieceOwner decode_owner(Bytes from);

// What a key and its value take in the log, with all pieces.
constexpr uint64_t record_units(uint64_t key_bytes, uint64_t value_bytes) {
  const auto units = [](uint64_t bytes) {
    return (kRecordHeaderBytes + bytes + kUnitBytes - 1) / kUnitBytes;
  };
  if (!is_in_pieces(key_bytes, value_bytes)) return units(key_bytes + value_bytes);
  const uint64_t pieces = pieces_of(value_bytes);
  const uint64_t last = value_bytes - (pieces - 1) * kPieceBytes;
  return units(key_bytes + pieces * kPlaceBytes) +
         (pieces - 1) * units(kPieceOwnerBytes + kPieceBytes) + units(kPieceOwnerBytes + last);
}

// Writes a record, whole units; `key` and `value` have the sizes that the header says.
void encode_record(const StoreId& id, uint64_t position, const RecordHeader& header, Bytes key,
                   Bytes value, MutableBytes to);
// Where the log has no room for a record before its end.
void encode_skip(const StoreId& id, uint64_t position, MutableBytes to);

struct Record {
  RecordHeader header;
  Bytes key;
  Bytes value;
};
// The record at the front of `from`; key and value point into it. None: there is no record of this
// store and position, it is damaged, or `from` ends before it does.
std::optional<Record> decode_record(const StoreId& id, uint64_t position, Bytes from);
// Whether `from` is too short to tell what decode_record would give with more.
bool is_cut_short(Bytes from);

// The places of a value's pieces, in units of the log; none: they make no sense.
std::optional<std::vector<uint64_t>> decode_places(Bytes from, uint64_t value_bytes,
                                                   uint64_t log_units);

}  // namespace cairn::kv::store
