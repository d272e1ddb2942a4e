// SPDX-License-Identifier: Apache-2.0
#include "kv/store/table_format.h"

#include <algorithm>
#include <type_traits>

#include "base/check.h"
#include "base/crc32c.h"

namespace cairn::kv::store {

namespace {

// A Superblock as it lies in a label: 8 bytes each.
static_assert(std::has_unique_object_representations_v<Superblock>);
static_assert(sizeof(Layout) == 64 && sizeof(Checkpoint) == 64);
static_assert(sizeof(Superblock) == 152);
static_assert(sizeof(Superblock) <= drive::kLabelBodyMax);

uint32_t checksum_of(const StoreId& id, Bytes page) {
  const uint32_t so_far = crc32c(std::as_bytes(std::span(id)));
  return crc32c(page.subspan(sizeof(uint32_t), kPageBytes - sizeof(uint32_t)), so_far);
}

}  // namespace

std::vector<std::byte> encode_superblock(const Superblock& superblock) {
  std::vector<std::byte> body(sizeof superblock);
  cairn::store(body, superblock);
  return body;
}

Result<Superblock> decode_superblock(Bytes body) {
  if (body.size() != sizeof(Superblock)) {
    return fail(Errc::kCorrupt, "the superblock has another size");
  }
  auto superblock = load<Superblock>(body);
  const Checkpoint& checkpoint = superblock.checkpoint;
  if (checkpoint.key_from > checkpoint.key_stable ||
      checkpoint.value_head > checkpoint.value_tail ||
      checkpoint.value_tail - checkpoint.value_head > superblock.layout.value_units) {
    return fail(Errc::kCorrupt, "the superblock makes no sense");
  }
  return superblock;
}

void encode_entry(ChainPlace chain, MutableBytes entry) {
  entry[0] = static_cast<std::byte>(chain.length);
  cairn::store(entry.subspan(1), chain.place);
}

ChainPlace decode_entry(Bytes entry) {
  return {.length = static_cast<uint8_t>(entry[0]), .place = load<uint32_t>(entry.subspan(1))};
}

bool is_sound(ChainPlace chain, uint64_t key_buckets) {
  if (chain.length == 0) return chain.place <= ChainPlace::kDamaged;
  return uint64_t{chain.place} + chain.length <= key_buckets;
}

void encode_page(const StoreId& id, uint64_t checkpoint, uint32_t page, Bytes entries,
                 MutableBytes to) {
  CHECK(entries.size() <= kEntriesInPage * kEntryBytes && to.size() >= kPageBytes);
  std::ranges::fill(to, std::byte{0});
  cairn::store(to.subspan(4), page);
  cairn::store(to.subspan(8), checkpoint);
  std::ranges::copy(entries, to.begin() + kPageHeaderBytes);
  cairn::store(to, checksum_of(id, to));
}

Result<Bytes> decode_page(const StoreId& id, uint64_t checkpoint, uint32_t page, Bytes from) {
  if (load<uint32_t>(from) != checksum_of(id, from) || load<uint32_t>(from.subspan(4)) != page ||
      load<uint64_t>(from.subspan(8)) != checkpoint) {
    return fail(Errc::kCorrupt, "a page of the segment table's checkpoint is damaged; page",
                static_cast<int32_t>(page));
  }
  return from.subspan(kPageHeaderBytes, kEntriesInPage * kEntryBytes);
}

}  // namespace cairn::kv::store
