// SPDX-License-Identifier: Apache-2.0
// Fabrics commands (NVMe Base 2.0, 6): how a host connects a queue, reads and writes controller
// properties, authenticates and disconnects. Each layout is a submission entry of 64 bytes.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "nvme/format/command_format.h"
#include "nvme/format/field.h"
#include "nvme/format/nqn.h"
#include "nvme/format/opcode_format.h"

namespace cairn::nvme {

// A Fabrics entry seen as one of the layouts below, and back.
template <class Command>
constexpr Command fabrics_cast(const Sqe& sqe) {
  return std::bit_cast<Command>(sqe);
}
template <class Command>
constexpr Sqe to_sqe(const Command& command) {
  return std::bit_cast<Sqe>(command);
}

// CATTR: attributes of the queue that Connect asks for.
struct ConnectAttributes {
  static constexpr uint8_t kPriorityMask = 0x03;
  static constexpr uint8_t kNoFlowControl = 1 << 2;   // SQ flow control off: SQHD is not used
  static constexpr uint8_t kDeleteIoQueues = 1 << 3;  // the host may Disconnect single I/O queues
};

// CNTLID of a Connect that leaves the choice of the controller to the subsystem.
inline constexpr uint16_t kAnyController = 0xffff;
// CNTLIDs from here on are reserved.
inline constexpr uint16_t kControllerIdMax = 0xffef;

struct ConnectCommand {
  uint8_t opcode = kFabricsOpcode;
  uint8_t flags = 1 << 6;  // PSDT kSgl
  Le16 cid;
  FabricsType type = FabricsType::kConnect;  // FCTYPE
  Reserved<19> unused5{};
  SglDescriptor sgl1 = SglDescriptor::in_capsule(1024);
  Le16 record_format;      // RECFMT: 0
  Le16 queue_id;           // QID: 0 is the admin queue
  Le16 queue_size;         // SQSIZE: entries, zero-based, at least 1
  uint8_t attributes = 0;  // CATTR
  Reserved<1> unused47{};
  Le32 keep_alive_ms;  // KATO: 0 is none
  Reserved<12> unused52{};
};
static_assert(sizeof(ConnectCommand) == 64 && std::is_trivially_copyable_v<ConnectCommand>);
static_assert(offsetof(ConnectCommand, cid) == 2);
static_assert(offsetof(ConnectCommand, type) == 4);
static_assert(offsetof(ConnectCommand, sgl1) == 24);
static_assert(offsetof(ConnectCommand, record_format) == 40);
static_assert(offsetof(ConnectCommand, queue_id) == 42);
static_assert(offsetof(ConnectCommand, queue_size) == 44);
static_assert(offsetof(ConnectCommand, attributes) == 46);
static_assert(offsetof(ConnectCommand, keep_alive_ms) == 48);

struct ConnectData {
  std::array<uint8_t, 16> host_id{};    // HOSTID
  Le16 controller_id = kAnyController;  // CNTLID
  Reserved<238> unused18{};
  NqnField subsystem_nqn;  // SUBNQN
  NqnField host_nqn;       // HOSTNQN
  Reserved<256> unused768{};
};
static_assert(sizeof(ConnectData) == 1024 && std::is_trivially_copyable_v<ConnectData>);
static_assert(offsetof(ConnectData, controller_id) == 16);
static_assert(offsetof(ConnectData, subsystem_nqn) == 256);
static_assert(offsetof(ConnectData, host_nqn) == 512);

// Dword 0 of a Connect that succeeded.
struct ConnectResult {
  uint16_t controller_id = 0;         // CNTLID
  bool authenticate = false;          // AUTHREQ.ATR: an authentication transaction is required
  bool authenticate_and_tls = false;  // AUTHREQ.ASCR: and a secure channel after it

  static constexpr ConnectResult decode(uint32_t dw0) {
    return {.controller_id = static_cast<uint16_t>(bits<15, 0>(dw0)),
            .authenticate = bit<17>(dw0),
            .authenticate_and_tls = bit<18>(dw0)};
  }
  constexpr uint32_t encode() const {
    return to_bits32<15, 0>(controller_id) | to_bits32<17, 17>(authenticate) |
           to_bits32<18, 18>(authenticate_and_tls);
  }
};

// Dword 0 of a Connect that failed with kConnectInvalidParameters: which field was wrong.
struct ConnectInvalid {
  uint16_t offset = 0;   // IPO: bytes from the start of the entry or of the data
  bool in_data = false;  // IATTR bit 0: the field is in the data, else in the entry

  static constexpr ConnectInvalid decode(uint32_t dw0) {
    return {.offset = static_cast<uint16_t>(bits<15, 0>(dw0)), .in_data = bit<16>(dw0)};
  }
  constexpr uint32_t encode() const {
    return to_bits32<15, 0>(offset) | to_bits32<16, 16>(in_data);
  }
};

struct DisconnectCommand {
  uint8_t opcode = kFabricsOpcode;
  uint8_t flags = 1 << 6;
  Le16 cid;
  FabricsType type = FabricsType::kDisconnect;
  Reserved<35> unused5{};
  Le16 record_format;  // RECFMT: 0
  Reserved<22> unused42{};
};
static_assert(sizeof(DisconnectCommand) == 64);
static_assert(offsetof(DisconnectCommand, type) == 4);
static_assert(offsetof(DisconnectCommand, record_format) == 40);

// Property Get and Property Set. A value is returned in, or taken from, 4 or 8 bytes.
struct PropertyCommand {
  uint8_t opcode = kFabricsOpcode;
  uint8_t flags = 1 << 6;
  Le16 cid;
  FabricsType type = FabricsType::kPropertyGet;
  Reserved<35> unused5{};
  uint8_t attributes = 0;  // ATTRIB: bits 2:0 are the size, k4Bytes or k8Bytes
  Reserved<3> unused41{};
  Le32 offset;  // OFST: one of PropertyOffset
  Le64 value;   // VALUE: Property Set only
  Reserved<8> unused56{};

  static constexpr uint8_t k4Bytes = 0;
  static constexpr uint8_t k8Bytes = 1;
  constexpr uint8_t size_code() const { return bits<2, 0>(attributes); }
};
static_assert(sizeof(PropertyCommand) == 64);
static_assert(offsetof(PropertyCommand, type) == 4);
static_assert(offsetof(PropertyCommand, attributes) == 40);
static_assert(offsetof(PropertyCommand, offset) == 44);
static_assert(offsetof(PropertyCommand, value) == 48);

// Authentication Send and Authentication Receive.
struct AuthenticationCommand {
  uint8_t opcode = kFabricsOpcode;
  uint8_t flags = 1 << 6;
  Le16 cid;
  FabricsType type = FabricsType::kAuthenticationSend;
  Reserved<19> unused5{};
  SglDescriptor sgl1;
  Reserved<1> unused40{};
  uint8_t protocol_specific0 = 1;    // SPSP0
  uint8_t protocol_specific1 = 1;    // SPSP1
  uint8_t security_protocol = 0xe9;  // SECP: NVMe in-band authentication
  Le32 length;                       // TL of a Send, AL of a Receive: bytes
  Reserved<16> unused48{};
};
static_assert(sizeof(AuthenticationCommand) == 64);
static_assert(offsetof(AuthenticationCommand, type) == 4);
static_assert(offsetof(AuthenticationCommand, sgl1) == 24);
static_assert(offsetof(AuthenticationCommand, protocol_specific0) == 41);
static_assert(offsetof(AuthenticationCommand, protocol_specific1) == 42);
static_assert(offsetof(AuthenticationCommand, security_protocol) == 43);
static_assert(offsetof(AuthenticationCommand, length) == 44);

}  // namespace cairn::nvme
