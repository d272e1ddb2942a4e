// SPDX-License-Identifier: Apache-2.0
#include "nvme/controller/namespace_ids.h"

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/rng.h"

namespace cairn::nvme {

namespace {

// 64 bits of a text; another salt gives other bits. The result is part of what hosts remember of
// their drives: it may never change.
uint64_t hash(std::string_view text, uint64_t salt) {
  uint64_t value = mix64(salt ^ text.size());
  for (const char c : text) value = mix64(value ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
  return mix64(value);
}

std::array<uint8_t, 16> hash128(std::string_view text, uint64_t salt) {
  std::array<uint8_t, 16> bytes;
  const MutableBytes to = std::as_writable_bytes(std::span(bytes));
  store(to, hash(text, salt));
  store(to.subspan(8), hash(text, salt + 1));
  return bytes;
}

std::string_view kind_of(drive::Spec::Kind kind) {
  switch (kind) {
    case drive::Spec::Kind::kMemory:
      return "mem:";
    case drive::Spec::Kind::kFile:
      return "file:";
    case drive::Spec::Kind::kFlash:
      return "flash:";
  }
  return "";
}

NamespaceIds ids_of(const std::string& text) {
  NamespaceIds ids{.nguid = hash128(text, 0x1001), .uuid = hash128(text, 0x2001)};
  ids.nguid[0] |= 1;  // never all zero
  // RFC 9562: version 8 is for bits of one's own making.
  ids.uuid[6] = static_cast<uint8_t>((ids.uuid[6] & 0x0f) | 0x80);
  ids.uuid[8] = static_cast<uint8_t>((ids.uuid[8] & 0x3f) | 0x80);
  return ids;
}

}  // namespace

NamespaceIds make_namespace_ids(std::string_view nqn, uint32_t nsid, const drive::Spec& drive) {
  return ids_of(fmt::format("{}\n{}\n{}{}", nqn, nsid, kind_of(drive.kind), drive.path));
}

NamespaceIds make_named_ids(std::string_view nqn, std::string_view name) {
  return ids_of(fmt::format("{}\nnamed\n{}", nqn, name));
}

std::string make_serial(std::string_view nqn) {
  return fmt::format("{:016x}{:04x}", hash(nqn, 0x3001), hash(nqn, 0x3002) & 0xffff);
}

}  // namespace cairn::nvme
