// SPDX-License-Identifier: Apache-2.0
// What encrypt keeps on the drive below, in blocks before the data.
//
//   block 0, 1                 the label (label.h), with the body below
//   from data_offset / 2 on    the journal: the old ciphertext of one window
//   from data_offset on        the data: sector n in block data_offset + n
//
// The data is windows of data_offset / 2 blocks each. All before block `rotated` has the new key;
// if has_journal, the window from there on is in the journal with the old key, and in place with
// any of both; all behind has the old key. Without rotation there is only the (new) key.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "service/common/label.h"

namespace cairn::drive {

inline constexpr LabelKind kEncryptLabel{.service = "encrypt", .version = 1};

struct EncryptState {
  using KeyCheck = std::array<std::byte, 32>;  // tells keys apart and nothing else about them
  uint64_t data_offset = 0;                    // blocks
  uint64_t data_blocks = 0;
  KeyCheck key{};
  KeyCheck old_key{};  // while is_rotating
  uint64_t rotated = 0;
  uint32_t journal_checksum = 0;  // CRC32C of the window, while has_journal
  bool is_rotating = false;
  bool has_journal = false;

  uint64_t window_blocks() const { return data_offset / 2; }
  uint64_t journal_offset() const { return data_offset / 2; }
  uint64_t window_size() const { return std::min(window_blocks(), data_blocks - rotated); }
};

// For a drive of that shape; none: it is too small.
std::optional<EncryptState> new_encrypt_state(const Geometry& below);

std::vector<std::byte> encode_encrypt_body(const EncryptState& state);
// kCorrupt: numbers that make no sense on a drive of the label's size.
Result<EncryptState> decode_encrypt_body(const Label& label);

}  // namespace cairn::drive
