// SPDX-License-Identifier: Apache-2.0
#include "service/integrity/encrypt_format.h"

#include <algorithm>

#include "base/units.h"

namespace cairn::drive {

namespace {

constexpr uint64_t kHeadBytes = 128_KiB;
constexpr uint64_t kHeadBlocksMin = 4;  // two for the label, two for the journal

struct Body {
  uint64_t data_offset;
  uint64_t data_blocks;
  EncryptState::KeyCheck key;
  EncryptState::KeyCheck old_key;
  uint64_t rotated;
  uint32_t journal_checksum;
  uint16_t is_rotating;
  uint16_t has_journal;
};
static_assert(sizeof(Body) == 96 && sizeof(Body) <= kLabelBodyMax);

uint64_t head_of(uint32_t block_size) {
  return std::max<uint64_t>(kHeadBytes / block_size, kHeadBlocksMin);
}

}  // namespace

std::optional<EncryptState> new_encrypt_state(const Geometry& below) {
  EncryptState state{.data_offset = head_of(below.block_size)};
  if (below.blocks <= state.data_offset) return std::nullopt;
  state.data_blocks = below.blocks - state.data_offset;
  return state;
}

std::vector<std::byte> encode_encrypt_body(const EncryptState& state) {
  const Body body{.data_offset = state.data_offset,
                  .data_blocks = state.data_blocks,
                  .key = state.key,
                  .old_key = state.old_key,
                  .rotated = state.rotated,
                  .journal_checksum = state.journal_checksum,
                  .is_rotating = state.is_rotating,
                  .has_journal = state.has_journal};
  std::vector<std::byte> bytes(sizeof body);
  store(bytes, body);
  return bytes;
}

Result<EncryptState> decode_encrypt_body(const Label& label) {
  const auto wrong = fail(Errc::kCorrupt, "the label's numbers make no sense");
  if (label.body.size() != sizeof(Body)) return wrong;
  const auto body = load<Body>(label.body);
  if (body.is_rotating > 1 || body.has_journal > body.is_rotating) return wrong;
  const EncryptState state{.data_offset = body.data_offset,
                           .data_blocks = body.data_blocks,
                           .key = body.key,
                           .old_key = body.old_key,
                           .rotated = body.rotated,
                           .journal_checksum = body.journal_checksum,
                           .is_rotating = body.is_rotating == 1,
                           .has_journal = body.has_journal == 1};
  if (state.data_offset != head_of(label.block_size) || label.blocks <= state.data_offset ||
      state.data_blocks != label.blocks - state.data_offset || state.rotated > state.data_blocks ||
      (state.has_journal && state.rotated == state.data_blocks)) {
    return wrong;
  }
  return state;
}

}  // namespace cairn::drive
