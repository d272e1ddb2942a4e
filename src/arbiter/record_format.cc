// SPDX-License-Identifier: Apache-2.0
#include "arbiter/record_format.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/crc32c.h"
#include "base/field_coder.h"

namespace cairn::arbiter {

namespace {

constexpr uint8_t kVersion = 1;
constexpr uint8_t kVolumeVersion = 2;
constexpr size_t kHeadSize = 8;
constexpr size_t kChecksumAt = 4;

enum class Kind : uint8_t { kPool = 1, kMegaVol, kVolume, kMap, kCleaning, kShare = 16 };

uint8_t newest_of(Kind kind) { return kind == Kind::kVolume ? kVolumeVersion : kVersion; }

uint32_t checksum_of(Kind kind, uint8_t version, Bytes body) {
  const std::byte head[] = {static_cast<std::byte>(kind), std::byte{version}};
  return crc32c(body, crc32c(head));
}

std::string framed(Kind kind, const std::string& body) {
  FieldWriter head;
  head.number(static_cast<uint8_t>(kind));
  head.number(newest_of(kind));
  head.number(uint16_t{0});
  head.number(checksum_of(kind, newest_of(kind), as_bytes(body)));
  return head.out + body;
}

Result<Bytes> unframed(Kind kind, Bytes bytes) {
  if (bytes.size() < kHeadSize || load<uint8_t>(bytes) != static_cast<uint8_t>(kind)) {
    return fail(Errc::kCorrupt, "this is no such record of a pool");
  }
  const auto version = load<uint8_t>(bytes.subspan(1));
  if (version == 0 || version > newest_of(kind)) {
    return fail(Errc::kUnsupported,
                "a newer cairn wrote this pool: use it for the arbiter; record version", version);
  }
  const Bytes body = bytes.subspan(kHeadSize);
  if (load<uint16_t>(bytes.subspan(2)) != 0 ||
      load<uint32_t>(bytes.subspan(kChecksumAt)) != checksum_of(kind, version, body)) {
    return fail(Errc::kCorrupt, "a record of a pool is damaged");
  }
  return body;
}

std::unexpected<Error> senseless() {
  return fail(Errc::kCorrupt, "a record of a pool makes no sense");
}

// Fields are named once, in these, and written or read.
template <class Coder, class Pool>
void pool_layout(Coder& coder, Pool& pool) {
  coder.number(pool.uuid);
  coder.number(pool.extent_bytes);
  coder.number(pool.next_volume);
  coder.number(pool.next_mega_vol);
}

template <class Coder, class Info>
void mega_vol_layout(Coder& coder, Info& info) {
  coder.number(info.id);
  coder.number(info.uuid);
  coder.text(info.uri);
  coder.text(info.box);
  coder.text(info.rack);
  coder.number(info.extents);
  coder.number(info.preference);
  coder.number(info.is_leaving);
}

template <class Coder, class Volume>
void volume_layout(Coder& coder, Volume& volume, uint8_t version = kVolumeVersion) {
  coder.number(volume.id);
  coder.text(volume.name);
  coder.number(volume.extents);
  coder.number(volume.replicas);
  coder.number(volume.weights);
  coder.number(volume.epoch);
  coder.text(volume.holder);
  coder.number(volume.is_clean);
  coder.number(volume.is_leaving);
  if (version == 1) return;
  coder.number(volume.family);
  coder.number(volume.origin);
  coder.number(volume.is_snapshot);
  coder.number(volume.made);
}

template <class Coder, class Share>
void share_layout(Coder& coder, Share& share) {
  coder.number(share.id);
  coder.number(share.terms.weight);
  coder.number(share.terms.floor);
  coder.number(share.terms.cap);
}

// A flag as a byte of its own, which from strangers may be anything.
struct Writer : FieldWriter {
  using FieldWriter::number;
  void number(const bool& value) { FieldWriter::number(static_cast<uint8_t>(value ? 1 : 0)); }
};
struct Reader : FieldReader {
  using FieldReader::FieldReader;
  using FieldReader::number;
  void number(bool& value) {
    uint8_t byte = 0;
    number(byte);
    if (byte > 1) spoil();
    value = byte == 1;
  }
};

// Absent if there are none.
void write_unfenced(Writer& body, const Unfenced& unfenced) {
  if (unfenced.empty()) return;
  body.number(static_cast<uint32_t>(unfenced.size()));
  for (const auto& [volume, host] : unfenced) {
    body.number(volume);
    body.text(host);
  }
}

Unfenced read_unfenced(Reader& body) {
  Unfenced unfenced;
  uint32_t count = 0;
  body.number(count);
  if (count == 0) body.spoil();
  for (uint32_t i = 0; i < count && body.is_good(); ++i) {
    VolumeId volume;
    std::string host;
    body.number(volume);
    body.text(host);
    // In their order, each once: there is one form for each value.
    const bool is_next = unfenced.empty() || unfenced.rbegin()->first < volume;
    if (!is_next || host.empty() || host.size() > volume::kUriMax) body.spoil();
    unfenced.emplace(volume, std::move(host));
  }
  return unfenced;
}

// Hexadecimal digits, exactly so many; none: something else.
// As keys are written: a key that says the same in capitals is another key.
std::optional<uint64_t> parse_hex(std::string_view text, size_t digits) {
  uint64_t value = 0;
  if (text.size() != digits || text.find_first_of("ABCDEF") != text.npos) return std::nullopt;
  const auto [end, error] = std::from_chars(text.begin(), text.end(), value, 16);
  if (error != std::errc() || end != text.end()) return std::nullopt;
  return value;
}

}  // namespace

std::string mega_vol_key(MegaVolId id) {
  return fmt::format("{}{:03x}", kMegaVolPrefix, id.value());
}
std::string volume_key(const std::string& name) { return kVolumePrefix + name; }
std::string share_key(const std::string& name) { return kSharePrefix + name; }
std::string map_key(VolumeId volume, uint32_t chunk) {
  return fmt::format("{}{:016x}/{:08x}", kMapPrefix, volume.value(), chunk);
}
std::string copy_key(VolumeId volume, uint32_t chunk) {
  return fmt::format("{}{:016x}/{:08x}", kCopyPrefix, volume.value(), chunk);
}
std::string cleaning_prefix(MegaVolId id) {
  return fmt::format("{}{:03x}/", kCleaningPrefix, id.value());
}
std::string cleaning_key(MegaVolId id, uint64_t number) {
  return fmt::format("{}{:016x}", cleaning_prefix(id), number);
}

Result<MapKey> parse_map_key(const std::string& key) {
  const bool is_copy = key.starts_with(kCopyPrefix);
  const std::string_view rest =
      std::string_view(key).substr(std::string_view(is_copy ? kCopyPrefix : kMapPrefix).size());
  const size_t slash = rest.find('/');
  if (slash == std::string_view::npos) return senseless();
  const auto volume = parse_hex(rest.substr(0, slash), 16);
  const auto chunk = parse_hex(rest.substr(slash + 1), 8);
  if (!volume || !chunk) return senseless();
  return MapKey{.volume = VolumeId(*volume), .chunk = static_cast<uint32_t>(*chunk)};
}

Result<CleaningKey> parse_cleaning_key(const std::string& key) {
  const std::string_view rest =
      std::string_view(key).substr(std::string_view(kCleaningPrefix).size());
  const size_t slash = rest.find('/');
  if (slash == std::string_view::npos) return senseless();
  const auto id = parse_hex(rest.substr(0, slash), 3);
  const auto number = parse_hex(rest.substr(slash + 1), 16);
  if (!id || !number) return senseless();
  return CleaningKey{.mega_vol = MegaVolId(static_cast<uint16_t>(*id)), .number = *number};
}

std::string encode(const PoolRecord& pool) {
  Writer body;
  pool_layout(body, pool);
  return framed(Kind::kPool, body.out);
}

std::string encode(const DriveRecord& drive) {
  Writer body;
  mega_vol_layout(body, drive.info);
  write_unfenced(body, drive.unfenced);
  return framed(Kind::kMegaVol, body.out);
}

std::string encode(const VolumeRecord& volume) {
  Writer body;
  volume_layout(body, volume);
  return framed(Kind::kVolume, body.out);
}

std::string encode(const ShareRecord& share) {
  Writer body;
  share_layout(body, share);
  return framed(Kind::kShare, body.out);
}

std::string encode(const MapChunk& chunk) {
  CHECK(chunk.size() == kChunkEntries);
  std::string body(chunk.size() * MapEntry::kSize, '\0');
  const MutableBytes bytes = std::as_writable_bytes(std::span(body));
  for (size_t i = 0; i < chunk.size(); ++i) chunk[i].store(bytes.subspan(i * MapEntry::kSize));
  return framed(Kind::kMap, body);
}

std::string encode_cleaning(const std::vector<uint32_t>& extents) {
  CHECK(extents.size() <= kCleaningMax);
  Writer body;
  for (const uint32_t extent : extents) body.number(extent);
  return framed(Kind::kCleaning, body.out);
}

Result<PoolRecord> decode_pool(Bytes bytes) {
  const Result<Bytes> body = unframed(Kind::kPool, bytes);
  if (!body) return fail(body.error());
  Reader reader(*body);
  PoolRecord pool;
  pool_layout(reader, pool);
  if (!reader.is_over() || !volume::check_extent_bytes(pool.extent_bytes) ||
      pool.next_mega_vol >= volume::kMegaVolsMax) {
    return senseless();
  }
  return pool;
}

Result<DriveRecord> decode_drive(Bytes bytes) {
  const Result<Bytes> body = unframed(Kind::kMegaVol, bytes);
  if (!body) return fail(body.error());
  Reader reader(*body);
  DriveRecord record;
  MegaVolInfo& info = record.info;
  mega_vol_layout(reader, info);
  if (!reader.is_over()) record.unfenced = read_unfenced(reader);
  const auto is_place = [](const std::string& name) {
    return name.empty() || volume::check_name(name);
  };
  if (!reader.is_over() || info.id.value() >= volume::kMegaVolsMax || info.extents < 2 ||
      info.extents > volume::kMegaVolExtentsMax || info.uri.size() > volume::kUriMax ||
      !is_place(info.box) || !is_place(info.rack)) {
    return senseless();
  }
  return record;
}

Result<VolumeRecord> decode_volume(Bytes bytes) {
  const Result<Bytes> body = unframed(Kind::kVolume, bytes);
  if (!body) return fail(body.error());
  Reader reader(*body);
  VolumeRecord record;
  const auto version = load<uint8_t>(bytes.subspan(1));
  volume_layout(reader, record, version);
  if (version == 1) record.family = record.id;
  const Result<void> named = record.is_snapshot ? volume::check_snapshot_name(record.name)
                                                : volume::check_name(record.name);
  if (!reader.is_over() || !named || record.family.value() == 0 || record.extents < 2 ||
      record.extents > volume::kVolumeExtentsMax || !volume::check_replicas(record.replicas) ||
      !volume::check_weights(record.weights) || record.holder.size() > volume::kUriMax) {
    return senseless();
  }
  return record;
}

Result<ShareRecord> decode_share(Bytes bytes) {
  const Result<Bytes> body = unframed(Kind::kShare, bytes);
  if (!body) return fail(body.error());
  Reader reader(*body);
  ShareRecord record;
  share_layout(reader, record);
  if (!reader.is_over() || !share::check_terms(record.terms)) return senseless();
  return record;
}

Result<MapChunk> decode_map(Bytes bytes) {
  const Result<Bytes> body = unframed(Kind::kMap, bytes);
  if (!body) return fail(body.error());
  if (body->size() != kChunkEntries * MapEntry::kSize) return senseless();
  MapChunk chunk;
  chunk.reserve(kChunkEntries);
  for (size_t i = 0; i < kChunkEntries; ++i) {
    const Result<MapEntry> entry =
        MapEntry::load(body->subspan(i * MapEntry::kSize, MapEntry::kSize));
    if (!entry) return fail(entry.error());
    chunk.push_back(*entry);
  }
  return chunk;
}

Result<std::vector<uint32_t>> decode_cleaning(Bytes bytes) {
  const Result<Bytes> body = unframed(Kind::kCleaning, bytes);
  if (!body) return fail(body.error());
  if (body->size() % sizeof(uint32_t) != 0 || body->size() > kCleaningMax * sizeof(uint32_t)) {
    return senseless();
  }
  std::vector<uint32_t> extents;
  for (size_t at = 0; at < body->size(); at += sizeof(uint32_t)) {
    extents.push_back(load<uint32_t>(body->subspan(at)));
    if (extents.back() == 0 || extents.back() >= volume::kMegaVolExtentsMax) return senseless();
  }
  return extents;
}

}  // namespace cairn::arbiter
