// SPDX-License-Identifier: Apache-2.0
// ObjectLabel: PATH/label, the object that says what a drive behind HTTP is and who has it.
//
// It is a drive::Label of 512 bytes, service "rest", version 1; its body, little-endian:
//
//   offset  0   u32      bytes of a block
//           4   u32      bytes of an object
//           8   u64[2]   the owner, drawn anew each time the drive is opened
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "base/error.h"

namespace cairn::rest {

inline constexpr size_t kLabelSize = 512;

struct ObjectLabel {
  std::array<uint64_t, 2> id{};  // of the drive
  uint64_t generation = 0;       // counts how often it was opened
  uint64_t blocks = 0;
  uint32_t block_size = 0;
  uint32_t object_size = 0;
  std::array<uint64_t, 2> owner{};

  std::array<std::byte, kLabelSize> encode() const;
  // kCorrupt: no label, or a damaged one, or numbers that make no drive. kUnsupported: of another
  // version.
  static Result<ObjectLabel> decode(Bytes bytes);
};

// kInvalid: these make no drive.
Result<void> check_shape(uint64_t blocks, uint32_t block_size, uint32_t object_size);

}  // namespace cairn::rest
