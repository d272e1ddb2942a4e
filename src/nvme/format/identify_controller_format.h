// SPDX-License-Identifier: Apache-2.0
// Identify Controller: what a controller is and can do (NVMe Base 2.0, 5.17.2.1), and the limits
// that the NVM command set adds (NVM Command Set 1.0, 4.1.5).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "nvme/format/field.h"
#include "nvme/format/nqn.h"

namespace cairn::nvme {

// CMIC
struct Cmic {
  static constexpr uint8_t kPorts = 1 << 0;        // the subsystem may have several ports
  static constexpr uint8_t kControllers = 1 << 1;  // and several controllers: paths
  static constexpr uint8_t kVirtualFunction = 1 << 2;
  static constexpr uint8_t kAna = 1 << 3;
};
// OAES, and the same bits in the feature Asynchronous Event Configuration
struct EventMask {
  static constexpr uint32_t kNamespaceAttributes = 1u << 8;
  static constexpr uint32_t kFirmwareActivation = 1u << 9;
  static constexpr uint32_t kTelemetry = 1u << 10;
  static constexpr uint32_t kAna = 1u << 11;
  static constexpr uint32_t kPredictableLatency = 1u << 12;
  static constexpr uint32_t kLbaStatus = 1u << 13;
  static constexpr uint32_t kEnduranceGroup = 1u << 14;
  static constexpr uint32_t kSubsystemShutdown = 1u << 15;
  static constexpr uint32_t kDiscoveryLog = 1u << 31;
};
// CTRATT
struct Ctratt {
  static constexpr uint32_t kHostId128 = 1u << 0;
  static constexpr uint32_t kNvmSets = 1u << 2;
  static constexpr uint32_t kReadRecoveryLevels = 1u << 3;
  static constexpr uint32_t kEnduranceGroups = 1u << 4;
  static constexpr uint32_t kTrafficKeepAlive = 1u << 6;  // TBKAS
  static constexpr uint32_t kNamespaceGranularity = 1u << 7;
  static constexpr uint32_t kUuidList = 1u << 9;
  static constexpr uint32_t kMultiDomain = 1u << 10;
  static constexpr uint32_t kExtendedLbaFormats = 1u << 15;
};
// CNTRLTYPE
enum class ControllerType : uint8_t { kNotReported = 0, kIo = 1, kDiscovery = 2, kAdmin = 3 };
// OACS
struct Oacs {
  static constexpr uint16_t kSecurity = 1 << 0;
  static constexpr uint16_t kFormat = 1 << 1;
  static constexpr uint16_t kFirmware = 1 << 2;
  static constexpr uint16_t kNamespaceManagement = 1 << 3;
  static constexpr uint16_t kSelfTest = 1 << 4;
  static constexpr uint16_t kDirectives = 1 << 5;
  static constexpr uint16_t kDoorbellBuffers = 1 << 8;
};
// FRMW
struct Frmw {
  static constexpr uint8_t kSlot1ReadOnly = 1 << 0;
  static constexpr uint8_t slots(uint8_t count) { return static_cast<uint8_t>(count << 1); }
  static constexpr uint8_t kActivateWithoutReset = 1 << 4;
};
// LPA
struct Lpa {
  static constexpr uint8_t kSmartPerNamespace = 1 << 0;
  static constexpr uint8_t kCommandEffects = 1 << 1;
  static constexpr uint8_t kExtendedData = 1 << 2;  // NUMD of 32 bits, and LPO
  static constexpr uint8_t kTelemetry = 1 << 3;
  static constexpr uint8_t kPersistentEvent = 1 << 4;
  static constexpr uint8_t kSupportedPages = 1 << 5;  // log pages 00h, 12h and 13h
};
// ANACAP
struct Anacap {
  static constexpr uint8_t kOptimized = 1 << 0;
  static constexpr uint8_t kNonOptimized = 1 << 1;
  static constexpr uint8_t kInaccessible = 1 << 2;
  static constexpr uint8_t kPersistentLoss = 1 << 3;
  static constexpr uint8_t kChange = 1 << 4;
  static constexpr uint8_t kGroupIdStable = 1 << 6;  // ANAGRPID of an attached namespace stays
  static constexpr uint8_t kGroupIdManaged = 1 << 7;
};
// ONCS
struct Oncs {
  static constexpr uint16_t kCompare = 1 << 0;
  static constexpr uint16_t kWriteUncorrectable = 1 << 1;
  static constexpr uint16_t kDatasetManagement = 1 << 2;
  static constexpr uint16_t kWriteZeroes = 1 << 3;
  static constexpr uint16_t kSaveAndSelect = 1 << 4;
  static constexpr uint16_t kReservations = 1 << 5;
  static constexpr uint16_t kTimestamp = 1 << 6;
  static constexpr uint16_t kVerify = 1 << 7;
  static constexpr uint16_t kCopy = 1 << 8;
};
// FUSES
struct Fuses {
  static constexpr uint16_t kCompareAndWrite = 1 << 0;
};
// VWC
struct Vwc {
  static constexpr uint8_t kPresent = 1 << 0;
  static constexpr uint8_t kFlushAllRefused = 2 << 1;  // Flush to kBroadcastNsid fails
  static constexpr uint8_t kFlushAll = 3 << 1;         // and here it flushes all namespaces
};
// SGLS
struct Sgls {
  static constexpr uint32_t kByteAligned = 1u << 0;  // SGLs supported, no alignment needed
  static constexpr uint32_t kDwordAligned = 2u << 0;
  static constexpr uint32_t kKeyed = 1u << 2;
  static constexpr uint32_t kBitBucket = 1u << 16;
  static constexpr uint32_t kOversize = 1u << 18;
  static constexpr uint32_t kOffset = 1u << 20;     // a data block's address may be an offset
  static constexpr uint32_t kTransport = 1u << 21;  // transport data block descriptors
};
// FCATT
struct Fcatt {
  static constexpr uint8_t kStatic = 1 << 0;  // else controllers are made on Connect
};
// OFCS
struct Ofcs {
  static constexpr uint16_t kDisconnect = 1 << 0;
};
// OCFS
struct Ocfs {
  static constexpr uint16_t kFormat0 = 1 << 0;
};

struct PowerState {
  Le16 power_max;  // MP: in 10 mW, or in 0.1 mW with flag bit 0
  Reserved<1> unused2{};
  uint8_t flags = 0;             // MXPS bit 0, NOPS bit 1
  Le32 entry_us;                 // ENLAT
  Le32 exit_us;                  // EXLAT
  uint8_t read_throughput = 0;   // RRT: relative, 0 is best
  uint8_t read_latency = 0;      // RRL
  uint8_t write_throughput = 0;  // RWT
  uint8_t write_latency = 0;     // RWL
  Le16 idle_power;               // IDLP
  uint8_t idle_scale = 0;        // IPS
  Reserved<1> unused19{};
  Le16 active_power;            // ACTP
  uint8_t active_workload = 0;  // APW and APS
  Reserved<9> unused23{};
};
static_assert(sizeof(PowerState) == 32);
static_assert(offsetof(PowerState, flags) == 3);
static_assert(offsetof(PowerState, entry_us) == 4);
static_assert(offsetof(PowerState, idle_power) == 16);
static_assert(offsetof(PowerState, active_power) == 20);

// CNS 01h.
struct IdentifyController {
  Le16 pci_vendor;                    // VID
  Le16 pci_subsystem_vendor;          // SSVID
  Ascii<20> serial_number;            // SN
  Ascii<40> model_number;             // MN
  Ascii<8> firmware_revision;         // FR
  uint8_t arbitration_burst = 0;      // RAB: 2 ^ this commands
  std::array<uint8_t, 3> ieee_oui{};  // IEEE
  uint8_t multipath = 0;              // CMIC
  uint8_t transfer_max = 0;           // MDTS: 2 ^ this pages of CAP.MPSMIN; 0 is no limit
  Le16 controller_id;                 // CNTLID
  Le32 version;                       // VER
  Le32 resume_latency_us;             // RTD3R
  Le32 entry_latency_us;              // RTD3E
  Le32 events;                        // OAES
  Le32 attributes;                    // CTRATT
  Le16 read_recovery_levels;          // RRLS
  Reserved<9> unused102{};
  ControllerType controller_type{};         // CNTRLTYPE
  std::array<uint8_t, 16> fru_guid{};       // FGUID
  std::array<Le16, 3> retry_delay_100ms{};  // CRDT1 to CRDT3
  Reserved<119> unused134{};
  uint8_t subsystem_report = 0;  // NVMSR
  uint8_t vpd_write_cycles = 0;  // VWCI
  uint8_t management = 0;        // MEC

  Le16 admin_commands;               // OACS
  uint8_t aborts_max = 0;            // ACL: zero-based
  uint8_t events_max = 0;            // AERL: zero-based
  uint8_t firmware_updates = 0;      // FRMW
  uint8_t log_attributes = 0;        // LPA
  uint8_t error_log_entries = 0;     // ELPE: zero-based
  uint8_t power_states = 0;          // NPSS: zero-based
  uint8_t admin_vendor = 0;          // AVSCC
  uint8_t autonomous_power = 0;      // APSTA
  Le16 warning_kelvin;               // WCTEMP
  Le16 critical_kelvin;              // CCTEMP
  Le16 firmware_time_100ms;          // MTFA
  Le32 host_memory_preferred;        // HMPRE: 4 KiB units
  Le32 host_memory_min;              // HMMIN
  Le128 capacity;                    // TNVMCAP: bytes
  Le128 unallocated_capacity;        // UNVMCAP
  Le32 replay_protected;             // RPMBS
  Le16 self_test_minutes;            // EDSTT
  uint8_t self_test_options = 0;     // DSTO
  uint8_t firmware_granularity = 0;  // FWUG
  Le16 keep_alive_100ms;             // KAS: granularity of KATO; 0 is no keep alive
  Le16 thermal_management;           // HCTMA
  Le16 thermal_min_kelvin;           // MNTMT
  Le16 thermal_max_kelvin;           // MXTMT
  Le32 sanitize;                     // SANICAP
  Le32 host_memory_descriptor_min;   // HMMINDS
  Le16 host_memory_descriptors_max;  // HMMAXD
  Le16 nvm_set_max;                  // NSETIDMAX
  Le16 endurance_group_max;          // ENDGIDMAX
  uint8_t ana_transition_s = 0;      // ANATT
  uint8_t ana_capabilities = 0;      // ANACAP
  Le32 ana_group_max;                // ANAGRPMAX
  Le32 ana_groups;                   // NANAGRPID
  Le32 persistent_event_log;         // PELS: 64 KiB units
  Le16 domain_id;                    // DOMAIN IDENTIFIER
  Reserved<10> unused358{};
  Le128 endurance_group_capacity_max;  // MEGCAP
  Reserved<128> unused384{};

  uint8_t submission_entry = 0;     // SQES: smallest in bits 3:0, largest in 7:4, as powers of 2
  uint8_t completion_entry = 0;     // CQES: likewise
  Le16 commands_max;                // MAXCMD: outstanding at once on an I/O queue
  Le32 namespaces;                  // NN: the largest valid NSID
  Le16 nvm_commands;                // ONCS
  Le16 fused;                       // FUSES
  uint8_t format = 0;               // FNA
  uint8_t write_cache = 0;          // VWC
  Le16 atomic_write;                // AWUN: zero-based blocks
  Le16 atomic_write_power_fail;     // AWUPF: zero-based blocks
  uint8_t io_vendor = 0;            // ICSVSCC
  uint8_t write_protection = 0;     // NWPC
  Le16 atomic_compare_write;        // ACWU: zero-based blocks
  Le16 copy_formats;                // OCFS
  Le32 sgl;                         // SGLS
  Le32 namespaces_allowed_max;      // MNAN
  Le128 domain_attachments_max;     // MAXDNA
  Le32 controller_attachments_max;  // MAXCNA
  Reserved<204> unused564{};
  NqnField subsystem_nqn;  // SUBNQN
  Reserved<768> unused1024{};

  Le32 command_capsule;             // IOCCSZ: 16-byte units, the entry's 64 bytes included
  Le32 response_capsule;            // IORCSZ: 16-byte units
  Le16 in_capsule_offset;           // ICDOFF: 16-byte units
  uint8_t fabrics_attributes = 0;   // FCATT
  uint8_t sgl_descriptors_max = 0;  // MSDBD
  Le16 fabrics_commands;            // OFCS
  uint8_t discovery_type = 0;       // DCTYPE
  Reserved<241> unused1807{};

  std::array<PowerState, 32> power{};       // PSD0 to PSD31
  std::array<char, 8> incarnation_magic{};  // kIncarnationMagic: there is Feature::kIncarnations
  std::array<char, 8> replication_magic{};  // kReplicationMagic: there is Replicated Write
  std::array<uint8_t, 1008> vendor{};
};
static_assert(sizeof(IdentifyController) == 4096);
static_assert(std::is_trivially_copyable_v<IdentifyController>);
static_assert(offsetof(IdentifyController, serial_number) == 4);
static_assert(offsetof(IdentifyController, model_number) == 24);
static_assert(offsetof(IdentifyController, firmware_revision) == 64);
static_assert(offsetof(IdentifyController, arbitration_burst) == 72);
static_assert(offsetof(IdentifyController, ieee_oui) == 73);
static_assert(offsetof(IdentifyController, multipath) == 76);
static_assert(offsetof(IdentifyController, transfer_max) == 77);
static_assert(offsetof(IdentifyController, controller_id) == 78);
static_assert(offsetof(IdentifyController, version) == 80);
static_assert(offsetof(IdentifyController, events) == 92);
static_assert(offsetof(IdentifyController, attributes) == 96);
static_assert(offsetof(IdentifyController, controller_type) == 111);
static_assert(offsetof(IdentifyController, fru_guid) == 112);
static_assert(offsetof(IdentifyController, retry_delay_100ms) == 128);
static_assert(offsetof(IdentifyController, subsystem_report) == 253);
static_assert(offsetof(IdentifyController, admin_commands) == 256);
static_assert(offsetof(IdentifyController, aborts_max) == 258);
static_assert(offsetof(IdentifyController, events_max) == 259);
static_assert(offsetof(IdentifyController, firmware_updates) == 260);
static_assert(offsetof(IdentifyController, log_attributes) == 261);
static_assert(offsetof(IdentifyController, error_log_entries) == 262);
static_assert(offsetof(IdentifyController, power_states) == 263);
static_assert(offsetof(IdentifyController, warning_kelvin) == 266);
static_assert(offsetof(IdentifyController, host_memory_preferred) == 272);
static_assert(offsetof(IdentifyController, capacity) == 280);
static_assert(offsetof(IdentifyController, unallocated_capacity) == 296);
static_assert(offsetof(IdentifyController, self_test_minutes) == 316);
static_assert(offsetof(IdentifyController, keep_alive_100ms) == 320);
static_assert(offsetof(IdentifyController, sanitize) == 328);
static_assert(offsetof(IdentifyController, nvm_set_max) == 338);
static_assert(offsetof(IdentifyController, ana_transition_s) == 342);
static_assert(offsetof(IdentifyController, ana_capabilities) == 343);
static_assert(offsetof(IdentifyController, ana_group_max) == 344);
static_assert(offsetof(IdentifyController, ana_groups) == 348);
static_assert(offsetof(IdentifyController, domain_id) == 356);
static_assert(offsetof(IdentifyController, endurance_group_capacity_max) == 368);
static_assert(offsetof(IdentifyController, submission_entry) == 512);
static_assert(offsetof(IdentifyController, completion_entry) == 513);
static_assert(offsetof(IdentifyController, commands_max) == 514);
static_assert(offsetof(IdentifyController, namespaces) == 516);
static_assert(offsetof(IdentifyController, nvm_commands) == 520);
static_assert(offsetof(IdentifyController, fused) == 522);
static_assert(offsetof(IdentifyController, format) == 524);
static_assert(offsetof(IdentifyController, write_cache) == 525);
static_assert(offsetof(IdentifyController, atomic_write) == 526);
static_assert(offsetof(IdentifyController, atomic_write_power_fail) == 528);
static_assert(offsetof(IdentifyController, write_protection) == 531);
static_assert(offsetof(IdentifyController, atomic_compare_write) == 532);
static_assert(offsetof(IdentifyController, copy_formats) == 534);
static_assert(offsetof(IdentifyController, sgl) == 536);
static_assert(offsetof(IdentifyController, namespaces_allowed_max) == 540);
static_assert(offsetof(IdentifyController, controller_attachments_max) == 560);
static_assert(offsetof(IdentifyController, subsystem_nqn) == 768);
static_assert(offsetof(IdentifyController, command_capsule) == 1792);
static_assert(offsetof(IdentifyController, response_capsule) == 1796);
static_assert(offsetof(IdentifyController, in_capsule_offset) == 1800);
static_assert(offsetof(IdentifyController, fabrics_attributes) == 1802);
static_assert(offsetof(IdentifyController, sgl_descriptors_max) == 1803);
static_assert(offsetof(IdentifyController, fabrics_commands) == 1804);
static_assert(offsetof(IdentifyController, discovery_type) == 1806);
static_assert(offsetof(IdentifyController, power) == 2048);
static_assert(offsetof(IdentifyController, incarnation_magic) == 3072);
static_assert(offsetof(IdentifyController, replication_magic) == 3080);

// CNS 06h with CSI kNvm: limits of commands without data. Sizes are powers of 2 in pages; 0 is
// none.
struct IdentifyControllerNvm {
  uint8_t verify_max = 0;               // VSL
  uint8_t write_zeroes_max = 0;         // WZSL
  uint8_t write_uncorrectable_max = 0;  // WUSL
  uint8_t deallocate_ranges_max = 0;    // DMRL
  Le32 deallocate_range_blocks_max;     // DMRSL
  Le64 deallocate_blocks_max;           // DMSL
  Reserved<4080> unused16{};
};
static_assert(sizeof(IdentifyControllerNvm) == 4096);
static_assert(offsetof(IdentifyControllerNvm, write_zeroes_max) == 1);
static_assert(offsetof(IdentifyControllerNvm, deallocate_ranges_max) == 3);
static_assert(offsetof(IdentifyControllerNvm, deallocate_range_blocks_max) == 4);
static_assert(offsetof(IdentifyControllerNvm, deallocate_blocks_max) == 8);

}  // namespace cairn::nvme
