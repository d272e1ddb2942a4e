// SPDX-License-Identifier: Apache-2.0
// The NBD protocol as bytes: magics, numbers and layouts of fixed newstyle negotiation and of the
// transmission phase. Names follow the protocol's document (doc/proto.md of the NBD project).
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "base/bytes.h"

namespace cairn::door::nbd {

// A big-endian number inside a layout; reads and assigns like the number.
template <std::unsigned_integral T>
class Be {
 public:
  constexpr Be() = default;
  constexpr Be(T value)
      : bytes_(std::bit_cast<std::array<uint8_t, sizeof(T)>>(std::byteswap(value))) {}
  constexpr operator T() const { return std::byteswap(std::bit_cast<T>(bytes_)); }

 private:
  std::array<uint8_t, sizeof(T)> bytes_{};
};
using Be16 = Be<uint16_t>;
using Be32 = Be<uint32_t>;
using Be64 = Be<uint64_t>;

// The bytes of a layout; valid as long as `layout`.
template <class Layout>
Bytes bytes_of(const Layout& layout) {
  static_assert(std::is_trivially_copyable_v<Layout> && alignof(Layout) == 1);
  return std::as_bytes(std::span<const Layout, 1>(&layout, 1));
}

// ---- negotiation ----

inline constexpr uint64_t kNbdMagic = 0x4e42'444d'4147'4943;     // "NBDMAGIC"
inline constexpr uint64_t kOptionMagic = 0x4948'4156'454f'5054;  // "IHAVEOPT"
inline constexpr uint64_t kOptionReplyMagic = 0x0003'e889'0455'65a9;

// Of the server's greeting, and the same bits of the client's answer.
inline constexpr uint16_t kFixedNewstyle = 1 << 0;
inline constexpr uint16_t kNoZeroes = 1 << 1;

struct Greeting {
  Be64 magic = kNbdMagic;
  Be64 option_magic = kOptionMagic;
  Be16 flags = kFixedNewstyle | kNoZeroes;
};
static_assert(sizeof(Greeting) == 18);

enum class Option : uint32_t {
  kExportName = 1,
  kAbort = 2,
  kList = 3,
  kStartTls = 5,
  kInfo = 6,
  kGo = 7,
  kStructuredReply = 8,
  kListMetaContext = 9,
  kSetMetaContext = 10,
  kExtendedHeaders = 11,
};

struct OptionHeader {
  Be64 magic = kOptionMagic;
  Be32 option;
  Be32 length;
};
static_assert(sizeof(OptionHeader) == 16);

enum class OptionReply : uint32_t {
  kAck = 1,
  kServer = 2,
  kInfo = 3,
  kMetaContext = 4,
  kUnsupported = 0x8000'0001,
  kPolicy = 0x8000'0002,
  kInvalid = 0x8000'0003,
  kTlsRequired = 0x8000'0005,
  kUnknown = 0x8000'0006,
  kShutdown = 0x8000'0007,
  kTooBig = 0x8000'0009,
};

struct OptionReplyHeader {
  Be64 magic = kOptionReplyMagic;
  Be32 option;
  Be32 reply;
  Be32 length;
};
static_assert(sizeof(OptionReplyHeader) == 20);

enum class InfoType : uint16_t { kExport = 0, kName = 1, kDescription = 2, kBlockSize = 3 };

struct ExportInfo {
  Be16 type = static_cast<uint16_t>(InfoType::kExport);
  Be64 size;
  Be16 flags;
};
static_assert(sizeof(ExportInfo) == 12);

struct BlockSizeInfo {
  Be16 type = static_cast<uint16_t>(InfoType::kBlockSize);
  Be32 minimum;
  Be32 preferred;
  Be32 maximum;
};
static_assert(sizeof(BlockSizeInfo) == 14);

// The answer to kExportName, without a header. The zeroes are left out when both sides agreed.
struct ExportNameReply {
  Be64 size;
  Be16 flags;
  std::array<uint8_t, 124> zeroes{};
  static constexpr size_t kShortSize = 10;
};
static_assert(sizeof(ExportNameReply) == 134);

// What an export offers.
inline constexpr uint16_t kHasFlags = 1 << 0;
inline constexpr uint16_t kReadOnly = 1 << 1;
inline constexpr uint16_t kSendFlush = 1 << 2;
inline constexpr uint16_t kSendFua = 1 << 3;
inline constexpr uint16_t kSendTrim = 1 << 5;
inline constexpr uint16_t kSendWriteZeroes = 1 << 6;
inline constexpr uint16_t kSendDf = 1 << 7;
inline constexpr uint16_t kCanMultiConn = 1 << 8;
inline constexpr uint16_t kSendCache = 1 << 10;
inline constexpr uint16_t kSendFastZero = 1 << 11;

// Names, queries and messages; the protocol allows no more.
inline constexpr uint32_t kStringMax = 4096;
// The largest read or write that is served, and what clients assume when nobody tells them.
inline constexpr uint32_t kPayloadMax = 32 << 20;

// ---- transmission ----

inline constexpr uint32_t kRequestMagic = 0x2560'9513;
inline constexpr uint32_t kSimpleReplyMagic = 0x6744'6698;
inline constexpr uint32_t kChunkMagic = 0x668e'33ef;

enum class Command : uint16_t {
  kRead = 0,
  kWrite = 1,
  kDisconnect = 2,
  kFlush = 3,
  kTrim = 4,
  kCache = 5,
  kWriteZeroes = 6,
  kBlockStatus = 7,
  kResize = 8,
};

inline constexpr uint16_t kFlagFua = 1 << 0;
inline constexpr uint16_t kFlagNoHole = 1 << 1;
inline constexpr uint16_t kFlagDf = 1 << 2;
inline constexpr uint16_t kFlagReqOne = 1 << 3;
inline constexpr uint16_t kFlagFastZero = 1 << 4;

struct RequestHeader {
  Be32 magic = kRequestMagic;
  Be16 flags;
  Be16 command;
  Be64 cookie;
  Be64 offset;
  Be32 length;
};
static_assert(sizeof(RequestHeader) == 28);

struct SimpleReply {
  Be32 magic = kSimpleReplyMagic;
  Be32 error;
  Be64 cookie;
};
static_assert(sizeof(SimpleReply) == 16);

enum class ChunkType : uint16_t {
  kNone = 0,
  kOffsetData = 1,
  kOffsetHole = 2,
  kBlockStatus = 5,
  kError = 0x8001,
  kErrorOffset = 0x8002,
};
inline constexpr uint16_t kChunkDone = 1 << 0;

struct ChunkHeader {
  Be32 magic = kChunkMagic;
  Be16 flags;
  Be16 type;
  Be64 cookie;
  Be32 length;
};
static_assert(sizeof(ChunkHeader) == 20);

struct OffsetHole {
  Be64 offset;
  Be32 length;
};
static_assert(sizeof(OffsetHole) == 12);

// Without a message: its length is 0.
struct ChunkError {
  Be32 error;
  Be16 message_length;
};
static_assert(sizeof(ChunkError) == 6);
struct ChunkErrorOffset {
  ChunkError error;
  Be64 offset;
};
static_assert(sizeof(ChunkErrorOffset) == 14);

struct StatusExtent {
  Be32 length;
  Be32 flags;
};
static_assert(sizeof(StatusExtent) == 8);
// Of base:allocation. A hole that reads as zeroes has both.
inline constexpr uint32_t kStateHole = 1 << 0;
inline constexpr uint32_t kStateZero = 1 << 1;

// Error numbers as the protocol counts them.
enum class NbdError : uint32_t {
  kNone = 0,
  kPerm = 1,
  kIo = 5,
  kNoMemory = 12,
  kInvalid = 22,
  kNoSpace = 28,
  kOverflow = 75,
  kNotSupported = 95,
  kShutdown = 108,
};

}  // namespace cairn::door::nbd
