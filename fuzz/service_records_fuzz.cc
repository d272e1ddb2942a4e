// SPDX-License-Identifier: Apache-2.0
// Any bytes as what services keep on the drives below them: what is understood keeps its limits and
// is the same when it is written again. The first byte says which record is meant; checksums and
// magic numbers are made right, because a stranger can do that too.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/check.h"
#include "base/crc32c.h"
#include "input.h"
#include "rest/object_label_format.h"
#include "service/cache/fast_cache_format.h"
#include "service/common/journal_format.h"
#include "service/common/label_format.h"
#include "service/common/region_set_format.h"
#include "service/common/sealed_format.h"
#include "service/integrity/atomic_format.h"
#include "service/integrity/checksum_format.h"
#include "service/integrity/encrypt_format.h"
#include "service/mapped/compress_format.h"
#include "service/mapped/dedup_format.h"
#include "service/mapped/mapped_format.h"
#include "service/mapped/snapshot_format.h"
#include "service/mapped/spillover_format.h"
#include "service/mapped/thin_format.h"
#include "service/raid/mirror_format.h"
#include "service/raid/parity_format.h"

namespace cairn::drive {
namespace {

using fuzz::Input;

constexpr uint64_t kBytesMax = uint64_t{1} << 62;  // of a drive

// As many bytes as are asked for; what is missing is zero.
std::vector<std::byte> take(Input& input, size_t size) {
  std::vector<std::byte> bytes(size);
  std::ranges::copy(input.take(size), bytes.begin());
  return bytes;
}

template <class T>
std::vector<std::byte> bytes_of(const T& record) {
  std::vector<std::byte> bytes(sizeof record);
  store(MutableBytes(bytes), record);
  return bytes;
}

// Drives of any size, huge ones too.
Geometry take_shape(Input& input) {
  const uint32_t block_size = 512U << input.value<uint8_t>() % 8;
  const uint64_t blocks = input.value<uint64_t>() >> input.value<uint8_t>() % 64;
  return {.blocks = std::clamp<uint64_t>(blocks, 3, kBytesMax / block_size),
          .block_size = block_size};
}

// The label of a service whose body is any bytes, with or without what follows.
Label take_label(Input& input, size_t body_bytes) {
  const Geometry shape = take_shape(input);
  Label label{.id = {input.value<uint64_t>(), input.value<uint64_t>()},
              .generation = input.value<uint64_t>(),
              .blocks = shape.blocks,
              .block_size = shape.block_size};
  label.body = take(input, body_bytes + (input.value<uint8_t>() == 1 ? 1 : 0));
  return label;
}

// A block with a checksum of its own at `offset`, made right.
std::vector<std::byte> take_block(Input& input, size_t size, size_t offset) {
  std::vector<std::byte> block = take(input, size);
  store(MutableBytes(block).subspan(offset), uint32_t{0});
  store(MutableBytes(block).subspan(offset), crc32c(block));
  return block;
}

void check_label(Input& input) {
  constexpr size_t kChecksumOffset = 28;
  const std::vector<std::byte> block =
      take_block(input, 512U << input.value<uint8_t>() % 4, kChecksumOffset);
  const std::string_view all = as_text(Bytes(block).subspan(8, kLabelServiceMax));
  const LabelKind kind{.service = all.substr(0, all.find('\0')),
                       .version = load<uint32_t>(Bytes(block).subspan(24))};
  const Result<Label> label = decode_label(kind, block);
  if (!label) return;
  CHECK(label->body.size() <= kLabelBodyMax && label->generation > 0);
  std::vector<std::byte> written(block.size());
  encode_label(kind, *label, written);
  const Result<Label> again = decode_label(kind, written);
  CHECK(again && again->body == label->body && again->writer == label->writer);
  const std::optional<LabelStamp> stamp = decode_label_stamp(label->id, block);
  CHECK(stamp && stamp->generation == label->generation && stamp->writer == label->writer);
}

void check_object_label(Input& input) {
  const std::vector<std::byte> body = take(input, 24);
  const LabelKind kind{.service = "rest", .version = 1};
  std::array<std::byte, rest::kLabelSize> block{};
  encode_label(kind,
               {.generation = input.value<uint64_t>(),
                .blocks = input.value<uint64_t>(),
                .block_size = rest::kLabelSize,
                .body = body},
               block);
  const Result<rest::ObjectLabel> label = rest::ObjectLabel::decode(block);
  if (!label) return;
  CHECK(rest::check_shape(label->blocks, label->block_size, label->object_size));
  CHECK(std::ranges::equal(label->encode(), block));
}

// The numbers of a layout are inside the drive, one part behind the other.
void check_mapped(const MappedLayout& layout, const Geometry& below) {
  CHECK(layout.chunks() > 0 && layout.chunks() < kMappedChunksMax);
  CHECK(layout.units > 0 && layout.units < kMappedChunksMax);
  CHECK(layout.journal_first + layout.journal_blocks <= layout.data_first);
  CHECK(layout.units * layout.chunk_blocks <= below.blocks - layout.data_first);
}

void check_layout(Input& input) {
  const Geometry below = take_shape(input);
  const std::vector<std::byte> body = take(input, sizeof(MappedLayout));
  const Result<MappedLayout> layout = decode_layout(body, below);
  if (!layout) return;
  check_mapped(*layout, below);
  CHECK(encode_layout(*layout) == body);
}

void check_plan(Input& input) {
  const Geometry below = take_shape(input);
  const MappedPlan plan{.chunk_bytes = input.value<uint64_t>() >> input.value<uint8_t>() % 64,
                        .records_per_unit = input.value<uint8_t>() % 8U,
                        .records_more = input.value<uint16_t>(),
                        .record_size = size_t{8} + input.value<uint8_t>() % 64U};
  const Result<MappedLayout> planned = plan_layout(below, plan);
  if (!planned) return;
  const Result<MappedLayout> read = decode_layout(encode_layout(*planned), below);
  CHECK(read && *read == *planned);
}

MappedLayout take_layout(Input& input) {
  return {.blocks = input.value<uint32_t>(),
          .chunk_blocks = uint64_t{1} << input.value<uint8_t>() % 8,
          .units = input.value<uint32_t>()};
}

void check_mapped_records(Input& input) {
  const MappedLayout layout = take_layout(input);
  const size_t more = input.value<uint8_t>() == 1 ? 1 : 0;
  const std::vector<std::byte> thin = take(input, sizeof(ThinRecord) + more);
  if (const Result<ThinRecord> record = decode_thin_record(thin, layout)) {
    CHECK(record->chunk < layout.chunks() && record->unit <= layout.units);
    CHECK(bytes_of(*record) == thin);
  }
  const std::vector<std::byte> dedup = take(input, sizeof(DedupRecord) + more);
  if (const Result<DedupRecord> record = decode_dedup_record(dedup, layout)) {
    CHECK(record->block < layout.blocks && record->unit <= layout.units);
    CHECK(bytes_of(*record) == dedup);
  }
  const std::vector<std::byte> compress = take(input, sizeof(CompressRecord) + more);
  if (const Result<CompressRecord> record = decode_compress_record(compress, layout, 4096)) {
    CHECK(record->chunk.bytes <= record->chunk.used().size() * 4096);
    for (const uint32_t unit : record->chunk.used()) CHECK(unit < layout.units);
    CHECK(bytes_of(*record) == compress);
  }
}

void check_spillover(Input& input) {
  const Geometry local = take_shape(input);
  const std::vector<std::byte> bytes = take(input, sizeof(SpilloverBody));
  const Result<SpilloverBody> body = decode_spillover_body(bytes);
  if (!body) return;
  CHECK(encode_spillover_body(*body) == bytes);
  if (!check_spillover_body(*body, local)) return;
  check_mapped(body->layout, local);
  CHECK(body->end_elsewhere() > body->elsewhere_first);
  CHECK(body->end_elsewhere() / body->layout.chunk_blocks > body->elsewhere_units);
  const std::vector<std::byte> written = take(input, sizeof(SpilloverRecord));
  const Result<SpilloverRecord> record = decode_spillover_record(written, *body);
  if (record) CHECK(bytes_of(*record) == written);
}

void check_snapshot(Input& input) {
  const std::vector<std::byte> bytes = take(input, input.value<uint8_t>() % 64U);
  const Result<NamedSnapshotRecord> record = decode_snapshot_record(bytes);
  if (!record) return;
  CHECK(record->name.size() <= kSnapshotNameMax);
  CHECK(encode_snapshot_record(record->record, record->name) == bytes);
}

void check_cache(Input& input) {
  const Label slow_label = take_label(input, sizeof(SlowState));
  const Result<SlowState> slow = decode_slow_state(slow_label);
  const Label fast_label = take_label(input, sizeof(FastState));
  const Result<FastState> fast = decode_fast_state(fast_label);
  if (slow) {
    CHECK(slow->data_blocks <= slow_label.blocks - slow->data_first);
    CHECK(encode_slow_state(*slow) == slow_label.body);
  }
  if (fast) {
    CHECK(fast->journal_blocks < fast->lines_first);
    CHECK(fast->slots * fast->line_blocks <= fast_label.blocks - fast->lines_first);
    CHECK(encode_fast_state(*fast) == fast_label.body);
  }
  if (!slow || !fast) return;
  const std::vector<std::byte> bytes = take(input, sizeof(FastRecord));
  const Result<FastRecord> record = decode_fast_record(bytes, *fast, *slow);
  if (!record) return;
  CHECK(record->slot < fast->slots && record->line <= slow->data_blocks / fast->line_blocks);
  CHECK(bytes_of(*record) == bytes);
}

void check_journal(Input& input) {
  constexpr size_t kChecksumOffset = 56;
  static_assert(offsetof(JournalHead, checksum) == kChecksumOffset);
  const std::vector<std::byte> block =
      take_block(input, 512U << input.value<uint8_t>() % 8, kChecksumOffset);
  const auto id = load<JournalId>(Bytes(block).subspan(offsetof(JournalHead, id)));
  const std::optional<JournalBlock> read = decode_journal_block(id, block);
  if (!read) return;
  Bytes rest = read->records;
  while (!rest.empty()) {
    const std::optional<Bytes> record = take_record(rest);
    CHECK(record && !record->empty() && record->size() <= kJournalRecordMax);
  }
  CHECK(records_that_fit(read->records, block.size()) == read->records.size());
  std::vector<std::byte> written(block.size());
  encode_journal_block(read->head, read->records, written);
  const std::optional<JournalBlock> again = decode_journal_block(id, written);
  CHECK(again && std::ranges::equal(again->records, read->records));
}

void check_atomic(Input& input) {
  const Label label = take_label(input, 24);
  const Result<AtomicLayout> layout = decode_atomic_layout(label);
  if (!layout) return;
  CHECK(encode_atomic_layout(*layout) == label.body);
  CHECK(layout->log_blocks < layout->data_first);
  CHECK(layout->data_blocks <= label.blocks - layout->data_first);
  constexpr size_t kChecksumOffset = 40;
  const std::vector<std::byte> block = take_block(input, label.block_size, kChecksumOffset);
  const AtomicBatch::Name name{.id = load<std::array<uint64_t, 2>>(Bytes(block).subspan(8)),
                               .generation = load<uint64_t>(Bytes(block).subspan(24)),
                               .index = load<uint64_t>(Bytes(block).subspan(32))};
  const uint64_t left = 1 + input.value<uint64_t>() % layout->log_blocks;
  const Result<AtomicBatch> batch = decode_atomic_batch(block, name, *layout, left);
  if (!batch) return;
  CHECK(batch->content_blocks() < left);
  for (const AtomicBatch::Record& record : batch->records) {
    CHECK(record.first + record.blocks <= layout->data_blocks);
  }
  std::vector<std::byte> written(block.size());
  encode_atomic_batch(*batch, written);
  CHECK(decode_atomic_batch(written, name, *layout, left).has_value());
}

void check_checksum(Input& input) {
  Label label = take_label(input, 32);
  if (input.value<uint8_t>() == 1) {
    const auto right = new_checksum_shape({.blocks = label.blocks, .block_size = label.block_size});
    if (right) label.body = encode_checksum_body(*right);
  }
  const Result<ChecksumShape> shape = decode_checksum_body(label);
  if (!shape) return;
  CHECK(shape->data_blocks <= label.blocks - shape->data_offset);
  CHECK(kChecksumTableBlock + shape->pages() <= shape->data_offset);
  std::vector<std::byte> block = take(input, shape->block_size);
  const Result<RegionSet> any = decode_checksum_bitmap(*shape, block);
  CHECK(!any || any->size() == shape->regions());
  RegionSet regions(shape->regions());
  regions.add(input.value<uint64_t>() % shape->regions());
  encode_checksum_bitmap(*shape, regions, block);
  const Result<RegionSet> read = decode_checksum_bitmap(*shape, block);
  CHECK(read && std::ranges::equal(read->words(), regions.words()));
  std::vector<uint32_t> entries(shape->page_entries(), input.value<uint32_t>());
  const uint64_t page = input.value<uint64_t>() % shape->pages();
  encode_checksum_page(*shape, page, entries, block);
  std::vector<uint32_t> again(entries.size());
  CHECK(decode_checksum_page(*shape, page, block, again).has_value() && again == entries);
}

void check_encrypt(Input& input) {
  const Label label = take_label(input, 96);
  const Result<EncryptState> state = decode_encrypt_body(label);
  if (!state) return;
  CHECK(state->rotated <= state->data_blocks);
  CHECK(state->data_offset + state->data_blocks <= label.blocks);
  CHECK(encode_encrypt_body(*state) == label.body);
}

// A sealed block of a kind that the decoder may know.
std::vector<std::byte> take_sealed(Input& input, size_t size, uint64_t magic, uint32_t version) {
  std::vector<std::byte> block = take(input, size);
  seal(block, magic, version);
  return block;
}

void check_mirror(Input& input) {
  constexpr uint64_t kLabelMagic = 0x726f7272694d6e43;
  constexpr uint64_t kBitmapMagic = 0x7370614d72694d43;
  const size_t size = 512U << input.value<uint8_t>() % 8;
  const std::vector<std::byte> block = take_sealed(input, size, kLabelMagic, kMirrorVersion);
  const Result<MirrorLabel> label = decode_label(block);
  if (!label) return;
  CHECK(label->regions() <= mirror_regions_max(label->block_size));
  CHECK(label->leg_blocks() > label->data_offset && label->primary < label->leg_count);
  CHECK(label->own_member().id == label->own_id);
  std::vector<std::byte> written(size);
  encode_label(*label, written);
  const Result<MirrorLabel> again = decode_label(written);
  CHECK(again && *again == *label);
  std::vector<std::byte> bitmap = take(input, size);
  store(MutableBytes(bitmap).subspan(sizeof(Seal)), label->id);
  store(MutableBytes(bitmap).subspan(sizeof(Seal) + sizeof label->id), uint64_t{label->regions()});
  seal(bitmap, kBitmapMagic, kMirrorVersion);
  const Result<RegionSet> regions = decode_bitmap(*label, bitmap);
  CHECK(regions && regions->size() == label->regions());
}

void check_parity(Input& input) {
  const Label bytes = take_label(input, 24 + 16 * kSymbolsMax);
  const Result<ParityLabel> label = decode_parity_label(bytes);
  if (!label) return;
  CHECK(label->regions() > 0 && label->data_offset() >= label->log_offset() + label->log_blocks);
  CHECK(label->leg_blocks() > label->rows);
  const Result<ParityLabel> again =
      decode_parity_label(encode_parity_label(*label, label->leg_blocks()));
  CHECK(again && again->members == label->members && again->rows == label->rows);
  std::vector<std::byte> block = take(input, label->block_size);
  seal(block, load<uint64_t>(block), load<uint32_t>(Bytes(block).subspan(8)));
  if (const Result<ParityState> state = decode_parity_state(*label, block)) {
    CHECK(state->missed.size() == label->regions() && state->epoch > 0);
  }
  if (const Result<ParityEntry> entry = decode_parity_entry(*label, block)) {
    CHECK(entry->first_row + entry->rows <= label->rows);
    CHECK(entry->position + entry->blocks() <= label->log_blocks);
    std::vector<std::byte> written(block.size());
    encode_parity_entry(*entry, *label, written);
    const Result<ParityEntry> read = decode_parity_entry(*label, written);
    CHECK(read && read->is_part_of(*entry) && read->content_crc == entry->content_crc);
  }
}

constexpr std::array kChecks = {
    check_label,     check_object_label, check_layout, check_plan,    check_mapped_records,
    check_spillover, check_snapshot,     check_cache,  check_journal, check_atomic,
    check_checksum,  check_encrypt,      check_mirror, check_parity};

}  // namespace
}  // namespace cairn::drive

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  cairn::fuzz::Input input(std::as_bytes(std::span(data, size)));
  const auto which = input.value<uint8_t>();
  cairn::drive::kChecks[which % cairn::drive::kChecks.size()](input);
  return 0;
}
