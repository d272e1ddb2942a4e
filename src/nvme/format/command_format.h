// SPDX-License-Identifier: Apache-2.0
// Submission and completion queue entries, and the SGL descriptor in the former.
//
// Entries are plain bytes: what a field means depends on the opcode, and the other *_format.h files
// give each command's fields names with decode() and encode().
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "nvme/format/field.h"
#include "nvme/format/opcode_format.h"
#include "nvme/format/status_format.h"

namespace cairn::nvme {

inline constexpr uint32_t kBroadcastNsid = 0xffff'ffff;  // "all namespaces", where a command allows

// NVMe Base 2.0, 4.1.2: type and sub type as the one byte that ends a descriptor.
enum class SglId : uint8_t {
  kDataBlockAddress = 0x00,
  kBitBucket = 0x10,           // of what is read, bytes that the host does not want
  kDataBlockOffset = 0x01,     // data in the capsule, at an offset
  kTransportDataBlock = 0x5a,  // data by the transport; NVMe/TCP's command data buffer
  kKeyedDataBlock = 0x40,
  kSegment = 0x20,
  kLastSegment = 0x30,
};

struct SglDescriptor {
  Le64 address;  // or an offset, or reserved, by type
  Le32 length;   // bytes
  Reserved<3> unused{};
  SglId id{};

  static constexpr SglDescriptor in_capsule(uint32_t length, uint64_t offset = 0) {
    return {.address = offset, .length = length, .id = SglId::kDataBlockOffset};
  }
  static constexpr SglDescriptor data(uint64_t address, uint32_t length) {
    return {.address = address, .length = length, .id = SglId::kDataBlockAddress};
  }
  static constexpr SglDescriptor transport(uint32_t length) {
    return {.length = length, .id = SglId::kTransportDataBlock};
  }
};
static_assert(sizeof(SglDescriptor) == 16 && std::is_trivially_copyable_v<SglDescriptor>);
static_assert(offsetof(SglDescriptor, length) == 8);
static_assert(offsetof(SglDescriptor, id) == 15);

// FUSE: two commands run as one, the first and then the second, or neither.
enum class Fuse : uint8_t { kNone = 0, kFirst = 1, kSecond = 2, kReserved = 3 };

// PSDT: what the data pointer holds. Fabrics demands kSgl.
enum class Psdt : uint8_t { kPrp = 0, kSgl = 1, kSglMetadataSgl = 2, kReserved = 3 };

// Submission queue entry (NVMe Base 2.0, 3.3.3.1).
struct Sqe {
  uint8_t opcode = 0;  // OPC
  uint8_t flags = 0;   // FUSE and PSDT
  Le16 cid;            // CID: unique among what is outstanding on its queue
  Le32 nsid;           // NSID; of a Fabrics command, byte 4 is FCTYPE
  Le32 cdw2;
  Le32 cdw3;
  Le64 mptr;           // MPTR
  SglDescriptor sgl1;  // DPTR
  Le32 cdw10;
  Le32 cdw11;
  Le32 cdw12;
  Le32 cdw13;
  Le32 cdw14;
  Le32 cdw15;

  constexpr AdminOpcode admin_opcode() const { return static_cast<AdminOpcode>(opcode); }
  constexpr IoOpcode io_opcode() const { return static_cast<IoOpcode>(opcode); }
  constexpr bool is_fabrics() const { return opcode == kFabricsOpcode; }
  constexpr FabricsType fabrics_type() const { return static_cast<FabricsType>(nsid & 0xff); }
  // Which way this command's data goes.
  constexpr Transfer transfer() const {
    return is_fabrics() ? transfer_of(fabrics_type()) : transfer_of(opcode);
  }

  constexpr Fuse fuse() const { return static_cast<Fuse>(bits<1, 0>(flags)); }
  constexpr void set_fuse(Fuse fuse) {
    flags = static_cast<uint8_t>((flags & ~3u) | static_cast<uint8_t>(fuse));
  }
  constexpr Psdt psdt() const { return static_cast<Psdt>(bits<7, 6>(flags)); }
  constexpr void set_psdt(Psdt psdt) {
    flags = static_cast<uint8_t>((flags & 0x3fu) | static_cast<uint8_t>(psdt) << 6);
  }

  // A 64-bit value in two dwords, low one first, such as a start LBA in 10 and 11.
  constexpr uint64_t cdw10_11() const { return uint64_t{cdw11} << 32 | cdw10; }
  constexpr void set_cdw10_11(uint64_t value) {
    cdw10 = static_cast<uint32_t>(value);
    cdw11 = static_cast<uint32_t>(value >> 32);
  }

  // An entry for a Fabrics transport, whose pointer is an SGL whatever the command.
  static constexpr Sqe make(AdminOpcode opcode, uint32_t nsid = 0) {
    return make(static_cast<uint8_t>(opcode), nsid);
  }
  static constexpr Sqe make(IoOpcode opcode, uint32_t nsid) {
    return make(static_cast<uint8_t>(opcode), nsid);
  }
  static constexpr Sqe make(FabricsType type) {
    return make(kFabricsOpcode, static_cast<uint32_t>(type));
  }

 private:
  static constexpr Sqe make(uint8_t opcode, uint32_t nsid) {
    Sqe sqe;
    sqe.opcode = opcode;
    sqe.set_psdt(Psdt::kSgl);
    sqe.nsid = nsid;
    sqe.sgl1 = SglDescriptor::transport(0);
    return sqe;
  }
};
static_assert(sizeof(Sqe) == 64 && std::is_trivially_copyable_v<Sqe>);
static_assert(offsetof(Sqe, flags) == 1);
static_assert(offsetof(Sqe, cid) == 2);
static_assert(offsetof(Sqe, nsid) == 4);
static_assert(offsetof(Sqe, cdw2) == 8);
static_assert(offsetof(Sqe, cdw3) == 12);
static_assert(offsetof(Sqe, mptr) == 16);
static_assert(offsetof(Sqe, sgl1) == 24);
static_assert(offsetof(Sqe, cdw10) == 40);
static_assert(offsetof(Sqe, cdw11) == 44);
static_assert(offsetof(Sqe, cdw12) == 48);
static_assert(offsetof(Sqe, cdw13) == 52);
static_assert(offsetof(Sqe, cdw14) == 56);
static_assert(offsetof(Sqe, cdw15) == 60);

// SQHD of a queue whose flow control was switched off when it was connected.
inline constexpr uint16_t kNoSqHead = 0xffff;

// Completion queue entry (NVMe Base 2.0, 3.3.3.2).
struct Cqe {
  Le32 dw0;     // command specific
  Le32 dw1;     // command specific
  Le16 sqhd;    // SQHD: submission queue head
  Le16 sqid;    // SQID: reserved in Fabrics
  Le16 cid;     // CID: of the command that ended
  Le16 status;  // status field and phase tag; see set_status()

  constexpr Status get_status() const { return Status::from_wire(status); }
  constexpr void set_status(Status value) { status = value.to_wire(); }
  // Both command specific dwords as one number, such as an 8-byte property.
  constexpr uint64_t result64() const { return uint64_t{dw1} << 32 | dw0; }
  constexpr void set_result64(uint64_t value) {
    dw0 = static_cast<uint32_t>(value);
    dw1 = static_cast<uint32_t>(value >> 32);
  }
};
static_assert(sizeof(Cqe) == 16 && std::is_trivially_copyable_v<Cqe>);
static_assert(offsetof(Cqe, dw1) == 4);
static_assert(offsetof(Cqe, sqhd) == 8);
static_assert(offsetof(Cqe, sqid) == 10);
static_assert(offsetof(Cqe, cid) == 12);
static_assert(offsetof(Cqe, status) == 14);

// Abort (NVMe Base 2.0, 5.1). Dword 0 of the completion has bit 0 clear if the command was aborted.
struct AbortFields {
  uint16_t sqid = 0;  // SQID: queue of the command to abort
  uint16_t cid = 0;   // CID: which one

  static constexpr AbortFields decode(const Sqe& sqe) {
    return {.sqid = static_cast<uint16_t>(bits<15, 0>(sqe.cdw10)),
            .cid = static_cast<uint16_t>(bits<31, 16>(sqe.cdw10))};
  }
  constexpr void encode(Sqe& sqe) const {
    sqe.cdw10 = to_bits32<15, 0>(sqid) | to_bits32<31, 16>(cid);
  }
};

}  // namespace cairn::nvme
