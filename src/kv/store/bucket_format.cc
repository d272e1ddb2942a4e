// SPDX-License-Identifier: Apache-2.0
#include "kv/store/bucket_format.h"

#include <algorithm>

#include "base/check.h"
#include "base/crc32c.h"

namespace cairn::kv::store {

namespace {

constexpr uint16_t kMagic = 0x424b;  // "KB"
constexpr uint16_t kStartsBatch = 0x8000;
constexpr uint64_t kMask48 = (uint64_t{1} << 48) - 1;
constexpr uint64_t kMask47 = (uint64_t{1} << 47) - 1;
constexpr uint64_t kFresh = uint64_t{1} << 47;
constexpr int kPlaceBits = 39;

uint64_t load48(Bytes from) {
  return load<uint32_t>(from) | uint64_t{load<uint16_t>(from.subspan(4))} << 32;
}
void store48(MutableBytes to, uint64_t value) {
  cairn::store(to, static_cast<uint32_t>(value));
  cairn::store(to.subspan(4), static_cast<uint16_t>(value >> 32));
}

uint32_t checksum_of(const StoreId& id, uint64_t position, Bytes bucket) {
  const std::array<uint64_t, 3> seal = {id[0], id[1], position};
  const uint32_t so_far = crc32c(std::as_bytes(std::span(seal)));
  return crc32c(bucket.subspan(sizeof(uint32_t)), so_far);
}

Bytes item_bytes(Bytes bucket, size_t n) {
  return bucket.subspan(kBucketHeaderBytes + n * kItemBytes, kItemBytes);
}

void encode_item(const Item& item, MutableBytes to) {
  CHECK(item.key_bytes >= 1 && item.key_bytes <= 65536 && item.place >> kPlaceBits == 0);
  cairn::store(to, item.fingerprint);
  cairn::store(to.subspan(8), item.place | uint64_t{item.value_bytes} << kPlaceBits);
  store48(to.subspan(16), item.version & kMask48);
  store48(to.subspan(22), (item.expires_ms & kMask47) | (item.is_fresh ? kFresh : 0));
  cairn::store(to.subspan(28), static_cast<uint16_t>(item.key_bytes - 1));
}

}  // namespace

void encode_bucket(const StoreId& id, uint64_t position, const BucketHeader& header,
                   std::span<const Item> items, MutableBytes bucket) {
  CHECK(items.size() == header.items && items.size() <= items_in_bucket(bucket.size()));
  std::ranges::fill(bucket, std::byte{0});
  cairn::store(bucket.subspan(4), header.segment);
  cairn::store(bucket.subspan(8), kMagic);
  cairn::store(bucket.subspan(10), header.epoch);
  cairn::store(bucket.subspan(12),
               static_cast<uint16_t>(header.batch_left | (header.starts_batch ? kStartsBatch : 0)));
  cairn::store(bucket.subspan(14), header.unstable);
  cairn::store(bucket.subspan(16), header.chain_length);
  cairn::store(bucket.subspan(17), header.chain_index);
  cairn::store(bucket.subspan(18), header.items);
  cairn::store(bucket.subspan(20), header.key_delta);
  store48(bucket.subspan(22), header.value_head);
  cairn::store(bucket.subspan(28), header.unit_delta);
  for (size_t i = 0; i < items.size(); ++i) {
    encode_item(items[i], bucket.subspan(kBucketHeaderBytes + i * kItemBytes, kItemBytes));
  }
  cairn::store(bucket, checksum_of(id, position, bucket));
}

Result<BucketHeader> decode_bucket(const StoreId& id, uint64_t position, Bytes bucket) {
  if (load<uint16_t>(bucket.subspan(8)) != kMagic ||
      load<uint32_t>(bucket) != checksum_of(id, position, bucket)) {
    return fail(Errc::kCorrupt, "a bucket of the key log is damaged");
  }
  const auto batch = load<uint16_t>(bucket.subspan(12));
  const BucketHeader header{
      .segment = load<uint32_t>(bucket.subspan(4)),
      .epoch = load<uint16_t>(bucket.subspan(10)),
      .starts_batch = (batch & kStartsBatch) != 0,
      .batch_left = static_cast<uint16_t>(batch & ~kStartsBatch),
      .unstable = load<uint16_t>(bucket.subspan(14)),
      .chain_length = load<uint8_t>(bucket.subspan(16)),
      .chain_index = load<uint8_t>(bucket.subspan(17)),
      .items = load<uint16_t>(bucket.subspan(18)),
      .key_delta = load<int16_t>(bucket.subspan(20)),
      .unit_delta = load<int32_t>(bucket.subspan(28)),
      .value_head = load48(bucket.subspan(22)),
  };
  if (header.batch_left == 0 || header.chain_index >= header.chain_length ||
      header.items > items_in_bucket(bucket.size())) {
    return fail(Errc::kCorrupt, "a bucket of the key log makes no sense");
  }
  return header;
}

size_t item_count_of_bucket(Bytes bucket) { return load<uint16_t>(bucket.subspan(18)); }

Item item_of_bucket(Bytes bucket, size_t n) {
  const Bytes from = item_bytes(bucket, n);
  const auto where = load<uint64_t>(from.subspan(8));
  const uint64_t expires = load48(from.subspan(22));
  return {.fingerprint = load<uint64_t>(from),
          .place = where & ((uint64_t{1} << kPlaceBits) - 1),
          .value_bytes = static_cast<uint32_t>(where >> kPlaceBits),
          .key_bytes = load<uint16_t>(from.subspan(28)) + uint32_t{1},
          .version = load48(from.subspan(16)),
          .expires_ms = expires & kMask47,
          .is_fresh = (expires & kFresh) != 0};
}

uint64_t fingerprint_of_bucket(Bytes bucket, size_t n) {
  return load<uint64_t>(item_bytes(bucket, n));
}

Result<void> check_chain(const StoreId& id, uint64_t position, uint32_t segment, Bytes chain,
                         size_t bucket_bytes) {
  const size_t length = chain.size() / bucket_bytes;
  for (size_t i = 0; i < length; ++i) {
    const Result<BucketHeader> header =
        decode_bucket(id, position + i, chain.subspan(i * bucket_bytes, bucket_bytes));
    if (!header) return fail(header.error());
    if (header->segment != segment || header->chain_length != length || header->chain_index != i) {
      return fail(Errc::kCorrupt, "the key log holds another segment there");
    }
  }
  return {};
}

void append_items(Bytes chain, size_t bucket_bytes, std::vector<Item>& items) {
  // And one more, which is what most who read them come for.
  const size_t buckets = chain.size() / bucket_bytes;
  items.reserve(items.size() + buckets * items_in_bucket(bucket_bytes) + 1);
  for (; !chain.empty(); chain = chain.subspan(bucket_bytes)) {
    const size_t count = item_count_of_bucket(chain);
    for (size_t i = 0; i < count; ++i) {
      items.push_back(item_of_bucket(chain, i));
      items.back().is_fresh = false;
    }
  }
}

}  // namespace cairn::kv::store
