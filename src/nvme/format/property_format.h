// SPDX-License-Identifier: Apache-2.0
// Controller properties (NVMe Base 2.0, 3.1.3): the registers of a controller, which Fabrics hosts
// reach with Property Get and Property Set. Values are decoded to plain structs and encoded from
// them.
#pragma once

#include <cstdint>

#include "nvme/format/field.h"

namespace cairn::nvme {

// Where a property is, as Property Get and Set name it; as wide as their field.
enum class PropertyOffset : uint32_t {  // NOLINT(performance-enum-size)
  kCapabilities = 0x00,                 // CAP, 8 bytes
  kVersion = 0x08,                      // VS
  kConfiguration = 0x14,                // CC
  kStatus = 0x1c,                       // CSTS
  kSubsystemReset = 0x20,               // NSSR; only with CAP.NSSRS
  kSubsystemShutdown = 0x64,            // NSSD; only with CAP.NSSS
  kReadyTimeouts = 0x68,                // CRTO; only with CAP.CRMS
};

// Which I/O command sets CAP.CSS offers, one bit each.
struct CommandSets {
  static constexpr uint8_t kNvm = 1 << 0;
  static constexpr uint8_t kSeveral = 1 << 6;  // sets are named by a CSI
  static constexpr uint8_t kNoneIo = 1 << 7;   // admin commands only
};

struct Capabilities {
  uint16_t queue_entries_max = 0;           // MQES: zero-based
  bool contiguous_queues = false;           // CQR
  uint8_t arbitration = 0;                  // AMS: bit 0 is weighted round robin
  uint8_t timeout_500ms = 0;                // TO: how long CSTS.RDY may take
  uint8_t doorbell_stride = 0;              // DSTRD: 2 ^ (2 + this) bytes
  bool subsystem_reset = false;             // NSSRS
  uint8_t command_sets = 0;                 // CSS
  bool boot_partition = false;              // BPS
  uint8_t power_scope = 0;                  // CPS
  uint8_t page_size_min = 0;                // MPSMIN: 2 ^ (12 + this)
  uint8_t page_size_max = 0;                // MPSMAX: likewise
  bool persistent_memory = false;           // PMRS
  bool controller_memory = false;           // CMBS
  bool subsystem_shutdown = false;          // NSSS
  bool ready_with_media = false;            // CRMS.CRWMS
  bool ready_independent_of_media = false;  // CRMS.CRIMS

  static constexpr Capabilities decode(uint64_t cap) {
    return {.queue_entries_max = static_cast<uint16_t>(bits<15, 0>(cap)),
            .contiguous_queues = bit<16>(cap),
            .arbitration = static_cast<uint8_t>(bits<18, 17>(cap)),
            .timeout_500ms = static_cast<uint8_t>(bits<31, 24>(cap)),
            .doorbell_stride = static_cast<uint8_t>(bits<35, 32>(cap)),
            .subsystem_reset = bit<36>(cap),
            .command_sets = static_cast<uint8_t>(bits<44, 37>(cap)),
            .boot_partition = bit<45>(cap),
            .power_scope = static_cast<uint8_t>(bits<47, 46>(cap)),
            .page_size_min = static_cast<uint8_t>(bits<51, 48>(cap)),
            .page_size_max = static_cast<uint8_t>(bits<55, 52>(cap)),
            .persistent_memory = bit<56>(cap),
            .controller_memory = bit<57>(cap),
            .subsystem_shutdown = bit<58>(cap),
            .ready_with_media = bit<59>(cap),
            .ready_independent_of_media = bit<60>(cap)};
  }
  constexpr uint64_t encode() const {
    return to_bits<15, 0, uint64_t>(queue_entries_max) |
           to_bits<16, 16, uint64_t>(contiguous_queues) | to_bits<18, 17, uint64_t>(arbitration) |
           to_bits<31, 24, uint64_t>(timeout_500ms) | to_bits<35, 32, uint64_t>(doorbell_stride) |
           to_bits<36, 36, uint64_t>(subsystem_reset) | to_bits<44, 37, uint64_t>(command_sets) |
           to_bits<45, 45, uint64_t>(boot_partition) | to_bits<47, 46, uint64_t>(power_scope) |
           to_bits<51, 48, uint64_t>(page_size_min) | to_bits<55, 52, uint64_t>(page_size_max) |
           to_bits<56, 56, uint64_t>(persistent_memory) |
           to_bits<57, 57, uint64_t>(controller_memory) |
           to_bits<58, 58, uint64_t>(subsystem_shutdown) |
           to_bits<59, 59, uint64_t>(ready_with_media) |
           to_bits<60, 60, uint64_t>(ready_independent_of_media);
  }
  friend constexpr bool operator==(const Capabilities&, const Capabilities&) = default;
};

// VS, and VER of Identify Controller.
struct Version {
  uint16_t major = 0;    // MJR
  uint8_t minor = 0;     // MNR
  uint8_t tertiary = 0;  // TER

  static constexpr Version decode(uint32_t vs) {
    return {.major = static_cast<uint16_t>(bits<31, 16>(vs)),
            .minor = static_cast<uint8_t>(bits<15, 8>(vs)),
            .tertiary = static_cast<uint8_t>(bits<7, 0>(vs))};
  }
  constexpr uint32_t encode() const {
    return to_bits32<31, 16>(major) | to_bits32<15, 8>(minor) | to_bits32<7, 0>(tertiary);
  }
  friend constexpr auto operator<=>(const Version&, const Version&) = default;
};

enum class ShutdownNotice : uint8_t { kNone = 0, kNormal = 1, kAbrupt = 2, kReserved = 3 };

// CC.CSS: which command sets the host selected.
enum class CommandSetSelect : uint8_t { kNvm = 0, kAllSupported = 6, kAdminOnly = 7 };

// CC. A target returns it as it was written: hosts keep what they read back and set EN in that.
struct Configuration {
  bool enable = false;                                     // EN
  CommandSetSelect command_sets = CommandSetSelect::kNvm;  // CSS
  uint8_t page_size = 0;                                   // MPS: 2 ^ (12 + this)
  uint8_t arbitration = 0;                                 // AMS: 0 is round robin
  ShutdownNotice shutdown = ShutdownNotice::kNone;         // SHN
  uint8_t submission_entry_size = 0;                       // IOSQES: 2 ^ this; 6
  uint8_t completion_entry_size = 0;                       // IOCQES: 2 ^ this; 4
  bool ready_independent_of_media = false;                 // CRIME

  static constexpr Configuration decode(uint32_t cc) {
    return {.enable = bit<0>(cc),
            .command_sets = static_cast<CommandSetSelect>(bits<6, 4>(cc)),
            .page_size = static_cast<uint8_t>(bits<10, 7>(cc)),
            .arbitration = static_cast<uint8_t>(bits<13, 11>(cc)),
            .shutdown = static_cast<ShutdownNotice>(bits<15, 14>(cc)),
            .submission_entry_size = static_cast<uint8_t>(bits<19, 16>(cc)),
            .completion_entry_size = static_cast<uint8_t>(bits<23, 20>(cc)),
            .ready_independent_of_media = bit<24>(cc)};
  }
  constexpr uint32_t encode() const {
    return to_bits32<0, 0>(enable) | to_bits32<6, 4>(static_cast<uint8_t>(command_sets)) |
           to_bits32<10, 7>(page_size) | to_bits32<13, 11>(arbitration) |
           to_bits32<15, 14>(static_cast<uint8_t>(shutdown)) |
           to_bits32<19, 16>(submission_entry_size) | to_bits32<23, 20>(completion_entry_size) |
           to_bits32<24, 24>(ready_independent_of_media);
  }
  friend constexpr bool operator==(const Configuration&, const Configuration&) = default;
};

enum class ShutdownStatus : uint8_t { kNone = 0, kOccurring = 1, kComplete = 2, kReserved = 3 };

// CSTS.
struct ControllerStatus {
  bool ready = false;                               // RDY
  bool fatal = false;                               // CFS
  ShutdownStatus shutdown = ShutdownStatus::kNone;  // SHST
  bool subsystem_reset_occurred = false;            // NSSRO
  bool processing_paused = false;                   // PP
  bool subsystem_shutdown = false;                  // ST: SHST is about the subsystem

  static constexpr ControllerStatus decode(uint32_t csts) {
    return {.ready = bit<0>(csts),
            .fatal = bit<1>(csts),
            .shutdown = static_cast<ShutdownStatus>(bits<3, 2>(csts)),
            .subsystem_reset_occurred = bit<4>(csts),
            .processing_paused = bit<5>(csts),
            .subsystem_shutdown = bit<6>(csts)};
  }
  constexpr uint32_t encode() const {
    return to_bits32<0, 0>(ready) | to_bits32<1, 1>(fatal) |
           to_bits32<3, 2>(static_cast<uint8_t>(shutdown)) |
           to_bits32<4, 4>(subsystem_reset_occurred) | to_bits32<5, 5>(processing_paused) |
           to_bits32<6, 6>(subsystem_shutdown);
  }
  friend constexpr bool operator==(const ControllerStatus&, const ControllerStatus&) = default;
};

// CRTO, in units of 500 ms.
struct ReadyTimeouts {
  uint16_t with_media = 0;            // CRWMT
  uint16_t independent_of_media = 0;  // CRIMT

  static constexpr ReadyTimeouts decode(uint32_t crto) {
    return {.with_media = static_cast<uint16_t>(bits<15, 0>(crto)),
            .independent_of_media = static_cast<uint16_t>(bits<31, 16>(crto))};
  }
  constexpr uint32_t encode() const {
    return to_bits32<15, 0>(with_media) | to_bits32<31, 16>(independent_of_media);
  }
};

}  // namespace cairn::nvme
