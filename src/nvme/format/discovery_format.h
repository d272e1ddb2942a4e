// SPDX-License-Identifier: Apache-2.0
// The discovery log page (LID 70h): which subsystems a host may connect to, and where.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "nvme/format/field.h"
#include "nvme/format/nqn.h"

namespace cairn::nvme {

// TRTYPE
enum class TransportType : uint8_t { kRdma = 1, kFibreChannel = 2, kTcp = 3, kLoop = 254 };
// ADRFAM
enum class AddressFamily : uint8_t { kPcie = 0, kIp4 = 1, kIp6 = 2, kInfiniband = 3, kFc = 4 };
// SUBTYPE
enum class SubsystemType : uint8_t {
  kReferral = 1,          // another discovery service
  kNvm = 2,               // a subsystem with namespaces
  kCurrentDiscovery = 3,  // this discovery service itself
};
// SECTYPE, the first byte of TSAS for TCP (NVMe/TCP 1.0, 3.6.1.1)
enum class TcpSecurity : uint8_t { kNone = 0, kTls12 = 1, kTls13 = 2 };

// TREQ
struct TransportRequirements {
  static constexpr uint8_t kSecureUnspecified = 0;
  static constexpr uint8_t kSecureRequired = 1;
  static constexpr uint8_t kSecureNotRequired = 2;
  static constexpr uint8_t kNoFlowControl = 1 << 2;  // SQ flow control can be switched off
};
// EFLAGS
struct DiscoveryFlags {
  static constexpr uint16_t kDuplicate = 1 << 0;             // DUPRETINFO
  static constexpr uint16_t kPersistentConnection = 1 << 1;  // EPCSD
};

// The least an admin queue can have, and what discovery entries say (ASQSZ).
inline constexpr uint16_t kAdminQueueSizeMin = 32;

// The page: this, then `records` entries.
struct DiscoveryHeader {
  Le64 generation;     // GENCTR: differs whenever the page does
  Le64 records;        // NUMREC
  Le16 record_format;  // RECFMT: 0
  Reserved<1006> unused18{};
};
static_assert(sizeof(DiscoveryHeader) == 1024 && std::is_trivially_copyable_v<DiscoveryHeader>);
static_assert(offsetof(DiscoveryHeader, records) == 8);
static_assert(offsetof(DiscoveryHeader, record_format) == 16);

struct DiscoveryEntry {
  TransportType transport = TransportType::kTcp;  // TRTYPE
  AddressFamily family = AddressFamily::kIp4;     // ADRFAM
  SubsystemType subsystem = SubsystemType::kNvm;  // SUBTYPE
  uint8_t requirements = 0;                       // TREQ
  Le16 port_id;                                   // PORTID
  Le16 controller_id;                             // CNTLID: FFFFh where Connect makes controllers
  Le16 admin_queue_size_max;                      // ASQSZ
  Le16 flags;                                     // EFLAGS
  Reserved<20> unused12{};
  Ascii<32> service;  // TRSVCID: the TCP port in decimal
  Reserved<192> unused64{};
  NqnField subsystem_nqn;  // SUBNQN
  Ascii<256> address;      // TRADDR
  TcpSecurity security{};  // TSAS: the rest of it is reserved for TCP
  Reserved<255> unused769{};
};
static_assert(sizeof(DiscoveryEntry) == 1024 && std::is_trivially_copyable_v<DiscoveryEntry>);
static_assert(offsetof(DiscoveryEntry, family) == 1);
static_assert(offsetof(DiscoveryEntry, subsystem) == 2);
static_assert(offsetof(DiscoveryEntry, requirements) == 3);
static_assert(offsetof(DiscoveryEntry, port_id) == 4);
static_assert(offsetof(DiscoveryEntry, controller_id) == 6);
static_assert(offsetof(DiscoveryEntry, admin_queue_size_max) == 8);
static_assert(offsetof(DiscoveryEntry, flags) == 10);
static_assert(offsetof(DiscoveryEntry, service) == 32);
static_assert(offsetof(DiscoveryEntry, subsystem_nqn) == 256);
static_assert(offsetof(DiscoveryEntry, address) == 512);
static_assert(offsetof(DiscoveryEntry, security) == 768);

}  // namespace cairn::nvme
