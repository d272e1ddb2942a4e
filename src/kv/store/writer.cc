// SPDX-License-Identifier: Apache-2.0
#include "kv/store/writer.h"

#include <algorithm>
#include <array>
#include <vector>

namespace cairn::kv::store {

using task::Task;

namespace {

Task<Result<uint64_t>> write_record(Core& core, RecordHeader header, Bytes key, Bytes value,
                                    bool is_durable, Room& room) {
  const Result<uint64_t> written = co_await core.values->append(header, key, value, is_durable);
  if (written) room.used(header.units());
  co_return written;
}

Task<Result<uint64_t>> write_in_pieces(Core& core, NewValue value, Room& room) {
  std::array<std::byte, kPieceOwnerBytes> owner;
  encode_owner({.fingerprint = value.hash.fingerprint, .segment = value.hash.segment}, owner);
  std::vector<uint64_t> places;
  for (Bytes left = as_bytes(value.value); !left.empty();) {
    const Bytes piece = left.first(std::min(kPieceBytes, left.size()));
    const RecordHeader header{.kind = RecordKind::kPiece,
                              .key_bytes = kPieceOwnerBytes,
                              .value_bytes = static_cast<uint32_t>(piece.size()),
                              .version = value.version};
    const Result<uint64_t> written =
        co_await write_record(core, header, owner, piece, value.is_durable, room);
    if (!written) co_return written;
    places.push_back(core.value_space.place_of(*written));
    left = left.subspan(piece.size());
  }
  const Bytes list = std::as_bytes(std::span(places));
  const RecordHeader header{.kind = RecordKind::kPieces,
                            .key_bytes = static_cast<uint32_t>(value.key.size()),
                            .value_bytes = static_cast<uint32_t>(list.size()),
                            .version = value.version};
  Result<uint64_t> written =
      co_await write_record(core, header, as_bytes(value.key), list, value.is_durable, room);
  co_return written;
}

}  // namespace

Task<Result<uint64_t>> write_value(Core& core, NewValue value, Room& room) {
  if (is_in_pieces(value.key.size(), value.value.size())) {
    return write_in_pieces(core, value, room);
  }
  const RecordHeader header{.kind = RecordKind::kValue,
                            .key_bytes = static_cast<uint32_t>(value.key.size()),
                            .value_bytes = static_cast<uint32_t>(value.value.size()),
                            .version = value.version};
  return write_record(core, header, as_bytes(value.key), as_bytes(value.value), value.is_durable,
                      room);
}

}  // namespace cairn::kv::store
