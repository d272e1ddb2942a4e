// SPDX-License-Identifier: Apache-2.0
// How offers and drives lie in the metadata store, and how a box is asked for space.
//
//   0   magic "CRAK"
//   4   kind: 1 offer, 2 drive, 3 request     one byte
//   5   version                               one byte
//   6   zero                                  two bytes
//   8   length of the body                    four bytes
//   12  CRC32C of bytes 0 to 11 and the body  four bytes
//   16  the body: numbers little-endian, texts with a length of four bytes before them
//
// A request is filled up with zeroes to a multiple of four bytes, because NVMe moves those.
// Everything is read as hostile input: what decodes keeps every limit of rack/types.h, and encoding
// it again gives the same bytes.
#pragma once

#include <cstddef>
#include <string>

#include "base/bytes.h"
#include "base/error.h"
#include "rack/types.h"

namespace cairn::rack {

inline constexpr size_t kRequestMax = 1024;  // bytes of an encoded request

std::string encode(const Offer& offer);
std::string encode(const DriveRecord& drive);
std::string encode(const SpaceRequest& request);

// kCorrupt: damaged, or not such a record. kUnsupported: of another version.
Result<Offer> decode_offer(Bytes bytes);
Result<DriveRecord> decode_drive(Bytes bytes);
Result<SpaceRequest> decode_request(Bytes bytes);

}  // namespace cairn::rack
