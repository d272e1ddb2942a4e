// SPDX-License-Identifier: Apache-2.0
// The block of a label (label.h), little-endian:
//
//   offset  0   u64       magic
//           8   char[16]  the service
//          24   u32       the version of its format
//          28   u32       checksum: the CRC32C of the block with the checksum's own bytes zero
//          32   u64[2]    id
//          48   u64       generation
//          56   u64       blocks of the drive that it is on
//          64   u32       bytes of a block
//          68   u32       bytes of the body, which follows
//         496   u64       what the drive stands on (base/medium_id.h)
//         504   u64       the writer (claim.h)
//
// The last two were zero before there were any; what is not named is zero.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"

namespace cairn::drive {

inline constexpr uint64_t kLabelBlocks = 2;
inline constexpr size_t kLabelBodyMax = 416;  // fits a block of 512 bytes
inline constexpr size_t kLabelServiceMax = 15;

struct Label {
  std::array<uint64_t, 2> id{};
  uint64_t generation = 0;
  uint64_t blocks = 0;  // of the drive it is on
  uint32_t block_size = 0;
  std::vector<std::byte> body;
  uint64_t writer = 0;  // drawn by each opening; 0: not known
  uint64_t medium = 0;  // what the drive stands on (base/medium_id.h); 0: not known
};

// Whose label it is. Both are part of the format.
struct LabelKind {
  std::string_view service;  // at most kLabelServiceMax letters
  uint32_t version = 1;
};

// `block` is a whole block, 512 bytes or more.
void encode_label(const LabelKind& kind, const Label& label, MutableBytes block);
// kNotFound: the block is all zeroes. kUnsupported: another version of the service. kInvalid: no
// label, or that of another service. kCorrupt: a label whose checksum or numbers are wrong.
Result<Label> decode_label(const LabelKind& kind, Bytes block);

// What tells labels of one id apart.
struct LabelStamp {
  uint64_t generation = 0;
  uint64_t writer = 0;
};
// None: no whole label of that id, whatever service made it.
std::optional<LabelStamp> decode_label_stamp(const std::array<uint64_t, 2>& id, Bytes block);

}  // namespace cairn::drive
