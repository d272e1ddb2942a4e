// SPDX-License-Identifier: Apache-2.0
// Identify Namespace in its three forms: of the NVM command set (CNS 00h), that set's newer fields
// (CNS 05h; both NVM Command Set 1.0, 4.1.5), and what all command sets share (CNS 08h, NVMe
// Base 2.0, 5.17.2).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "nvme/format/field.h"

namespace cairn::nvme {

// NSFEAT
struct Nsfeat {
  static constexpr uint8_t kThin = 1 << 0;    // NCAP may be below NSZE; NUSE is kept
  static constexpr uint8_t kAtomic = 1 << 1;  // NAWUN, NAWUPF, NACWU and NAB* are this one's own
  static constexpr uint8_t kDeallocatedError = 1 << 2;
  static constexpr uint8_t kIdsNotReused = 1 << 3;
  static constexpr uint8_t kOptimal = 1 << 4;  // NPWG, NPWA, NPDG, NPDA and NOWS are given
};
// The same byte of CNS 08h, whose bits differ.
struct IndependentNsfeat {
  static constexpr uint8_t kIdsNotReused = 1 << 3;
};
// NMIC
struct Nmic {
  static constexpr uint8_t kShared = 1 << 0;  // several controllers may attach it
};
// RESCAP
struct Rescap {
  static constexpr uint8_t kPersist = 1 << 0;  // through power loss
  static constexpr uint8_t kWriteExclusive = 1 << 1;
  static constexpr uint8_t kExclusiveAccess = 1 << 2;
  static constexpr uint8_t kWriteExclusiveRegistrants = 1 << 3;
  static constexpr uint8_t kExclusiveAccessRegistrants = 1 << 4;
  static constexpr uint8_t kWriteExclusiveAll = 1 << 5;
  static constexpr uint8_t kExclusiveAccessAll = 1 << 6;
  static constexpr uint8_t kIgnoreKey13 = 1 << 7;  // IEKEY is as NVMe 1.3 and later have it
};
// DLFEAT
struct Dlfeat {
  static constexpr uint8_t kReadsZeroes = 1;  // bits 2:0: what deallocated blocks read as
  static constexpr uint8_t kReadsOnes = 2;
  static constexpr uint8_t kWriteZeroesDeallocates = 1 << 3;
};
// NSATTR
struct Nsattr {
  static constexpr uint8_t kWriteProtected = 1 << 0;
};

struct LbaFormat {
  Le16 metadata_size;       // MS: bytes
  uint8_t block_shift = 0;  // LBADS: 2 ^ this bytes; 0 is "not available"
  uint8_t performance = 0;  // RP: bits 1:0, 0 is best
};
static_assert(sizeof(LbaFormat) == 4);
static_assert(offsetof(LbaFormat, block_shift) == 2);

// CNS 00h.
struct IdentifyNamespace {
  Le64 size;                            // NSZE: blocks
  Le64 capacity;                        // NCAP: blocks
  Le64 used;                            // NUSE: blocks
  uint8_t features = 0;                 // NSFEAT
  uint8_t formats = 0;                  // NLBAF: zero-based
  uint8_t format = 0;                   // FLBAS: index in bits 6:5 and 3:0
  uint8_t metadata = 0;                 // MC
  uint8_t protection_capabilities = 0;  // DPC
  uint8_t protection = 0;               // DPS
  uint8_t multipath = 0;                // NMIC
  uint8_t reservations = 0;             // RESCAP
  uint8_t format_progress = 0;          // FPI
  uint8_t deallocate = 0;               // DLFEAT
  Le16 atomic_write;                    // NAWUN: zero-based blocks
  Le16 atomic_write_power_fail;         // NAWUPF: zero-based blocks
  Le16 atomic_compare_write;            // NACWU: zero-based blocks
  Le16 atomic_boundary;                 // NABSN: zero-based blocks; 0 is no boundary
  Le16 atomic_boundary_offset;          // NABO
  Le16 atomic_boundary_power_fail;      // NABSPF: zero-based blocks; 0 is no boundary
  Le16 optimal_io_boundary;             // NOIOB: blocks
  Le128 nvm_capacity;                   // NVMCAP: bytes
  Le16 write_granularity;               // NPWG: zero-based blocks
  Le16 write_alignment;                 // NPWA: zero-based blocks
  Le16 deallocate_granularity;          // NPDG: zero-based blocks
  Le16 deallocate_alignment;            // NPDA: zero-based blocks
  Le16 optimal_write;                   // NOWS: zero-based blocks
  Le16 copy_range_blocks_max;           // MSSRL: blocks
  Le32 copy_blocks_max;                 // MCL: blocks
  uint8_t copy_ranges_max = 0;          // MSRC: zero-based
  Reserved<11> unused81{};
  Le32 ana_group;  // ANAGRPID
  Reserved<3> unused96{};
  uint8_t attributes = 0;                   // NSATTR
  Le16 nvm_set;                             // NVMSETID
  Le16 endurance_group;                     // ENDGID
  std::array<uint8_t, 16> nguid{};          // NGUID: big-endian
  std::array<uint8_t, 8> eui64{};           // EUI64: big-endian
  std::array<LbaFormat, 64> lba_formats{};  // LBAF0 to LBAF63
  // Of a Cairn target: which contents it has, and since when (docs/fabric.md).
  std::array<char, 8> incarnation_magic{};  // kIncarnationMagic; anything else: it does not tell
  Le64 incarnation_medium;
  Le64 incarnation_opening;
  std::array<uint8_t, 3688> vendor{};
};
// What follows it belongs to this version; another layout would have another one.
inline constexpr std::array<char, 8> kIncarnationMagic = {'C', 'A', 'I', 'R', 'N', 'I', 'N', '1'};
static_assert(sizeof(IdentifyNamespace) == 4096);
static_assert(std::is_trivially_copyable_v<IdentifyNamespace>);
static_assert(offsetof(IdentifyNamespace, capacity) == 8);
static_assert(offsetof(IdentifyNamespace, used) == 16);
static_assert(offsetof(IdentifyNamespace, features) == 24);
static_assert(offsetof(IdentifyNamespace, formats) == 25);
static_assert(offsetof(IdentifyNamespace, format) == 26);
static_assert(offsetof(IdentifyNamespace, metadata) == 27);
static_assert(offsetof(IdentifyNamespace, protection_capabilities) == 28);
static_assert(offsetof(IdentifyNamespace, protection) == 29);
static_assert(offsetof(IdentifyNamespace, multipath) == 30);
static_assert(offsetof(IdentifyNamespace, reservations) == 31);
static_assert(offsetof(IdentifyNamespace, format_progress) == 32);
static_assert(offsetof(IdentifyNamespace, deallocate) == 33);
static_assert(offsetof(IdentifyNamespace, atomic_write) == 34);
static_assert(offsetof(IdentifyNamespace, atomic_write_power_fail) == 36);
static_assert(offsetof(IdentifyNamespace, atomic_compare_write) == 38);
static_assert(offsetof(IdentifyNamespace, atomic_boundary) == 40);
static_assert(offsetof(IdentifyNamespace, atomic_boundary_offset) == 42);
static_assert(offsetof(IdentifyNamespace, atomic_boundary_power_fail) == 44);
static_assert(offsetof(IdentifyNamespace, optimal_io_boundary) == 46);
static_assert(offsetof(IdentifyNamespace, nvm_capacity) == 48);
static_assert(offsetof(IdentifyNamespace, write_granularity) == 64);
static_assert(offsetof(IdentifyNamespace, write_alignment) == 66);
static_assert(offsetof(IdentifyNamespace, deallocate_granularity) == 68);
static_assert(offsetof(IdentifyNamespace, deallocate_alignment) == 70);
static_assert(offsetof(IdentifyNamespace, optimal_write) == 72);
static_assert(offsetof(IdentifyNamespace, copy_range_blocks_max) == 74);
static_assert(offsetof(IdentifyNamespace, copy_blocks_max) == 76);
static_assert(offsetof(IdentifyNamespace, copy_ranges_max) == 80);
static_assert(offsetof(IdentifyNamespace, ana_group) == 92);
static_assert(offsetof(IdentifyNamespace, attributes) == 99);
static_assert(offsetof(IdentifyNamespace, nvm_set) == 100);
static_assert(offsetof(IdentifyNamespace, endurance_group) == 102);
static_assert(offsetof(IdentifyNamespace, nguid) == 104);
static_assert(offsetof(IdentifyNamespace, eui64) == 120);
static_assert(offsetof(IdentifyNamespace, lba_formats) == 128);
static_assert(offsetof(IdentifyNamespace, incarnation_magic) == 384);
static_assert(offsetof(IdentifyNamespace, incarnation_medium) == 392);
static_assert(offsetof(IdentifyNamespace, incarnation_opening) == 400);
static_assert(offsetof(IdentifyNamespace, vendor) == 408);

// The index into lba_formats that FLBAS holds.
constexpr uint8_t format_index(const IdentifyNamespace& ns) {
  return static_cast<uint8_t>(bits<6, 5>(ns.format) << 4 | bits<3, 0>(ns.format));
}

// CNS 05h with CSI kNvm.
struct IdentifyNamespaceNvm {
  Le64 storage_tag_mask;   // LBSTM
  uint8_t protection = 0;  // PIC
  Reserved<3> unused9{};
  std::array<Le32, 64> extended{};  // ELBAF0 to ELBAF63: STS in bits 6:0, PIF in 8:7
  Reserved<3828> unused268{};
};
static_assert(sizeof(IdentifyNamespaceNvm) == 4096);
static_assert(offsetof(IdentifyNamespaceNvm, protection) == 8);
static_assert(offsetof(IdentifyNamespaceNvm, extended) == 12);

// CNS 08h.
struct IdentifyNamespaceIndependent {
  uint8_t features = 0;         // NSFEAT: see IndependentNsfeat
  uint8_t multipath = 0;        // NMIC
  uint8_t reservations = 0;     // RESCAP
  uint8_t format_progress = 0;  // FPI
  Le32 ana_group;               // ANAGRPID
  uint8_t attributes = 0;       // NSATTR
  Reserved<1> unused9{};
  Le16 nvm_set;          // NVMSETID
  Le16 endurance_group;  // ENDGID
  uint8_t status = 0;    // NSTAT: bit 0 is NRDY, ready
  Reserved<4081> unused15{};

  static constexpr uint8_t kReady = 1 << 0;
};
static_assert(sizeof(IdentifyNamespaceIndependent) == 4096);
static_assert(offsetof(IdentifyNamespaceIndependent, multipath) == 1);
static_assert(offsetof(IdentifyNamespaceIndependent, reservations) == 2);
static_assert(offsetof(IdentifyNamespaceIndependent, format_progress) == 3);
static_assert(offsetof(IdentifyNamespaceIndependent, ana_group) == 4);
static_assert(offsetof(IdentifyNamespaceIndependent, attributes) == 8);
static_assert(offsetof(IdentifyNamespaceIndependent, nvm_set) == 10);
static_assert(offsetof(IdentifyNamespaceIndependent, endurance_group) == 12);
static_assert(offsetof(IdentifyNamespaceIndependent, status) == 14);

}  // namespace cairn::nvme
