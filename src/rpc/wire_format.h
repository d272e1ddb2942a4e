// SPDX-License-Identifier: Apache-2.0
// The bytes between an rpc::Session and an rpc::Server: the only home of their layout, version 1.
//
// Both ends send frames: a head of 32 bytes, little-endian, and a body.
//
//   0  u32  "CRPC"
//   4  u8   kind
//   5  u8   of a reply: 0, or an Errc and then no body; of a goodbye: why; else 0
//   6  u16  of a call and a subscription: the method; else 0
//   8  u64  of everything about a call: its id; else 0
//   16 u32  of a call: its time in ms, 0 is the server's choice; of credit: so many pushes; of a
//           goodbye: see there; else 0
//   20 u32  length of the body
//   24 u32  CRC32C of the body
//   28 u32  CRC32C of the bytes before
//
// A client begins with kHello, a server answers with kWelcome or kGoodbye; these three stay as they
// are in all major versions. Ids rise with every call of a connection. Each call and subscription
// ends with exactly one kReply, whether it was cancelled or not.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/error.h"
#include "base/units.h"

namespace cairn::rpc {

enum class FrameKind : uint8_t {
  kHello = 1,  // client
  kWelcome,    // server
  kCall,       // client
  kSubscribe,  // client
  kCancel,     // client
  kReply,      // server
  kPush,       // server, of a subscription
  kCredit,     // client: so many more pushes may come
  kPing,       // either; wants a pong
  kPong,       // either
  kGoodbye,    // server: takes no more calls, and ends when those under way have
};
inline constexpr uint8_t kLastFrameKind = static_cast<uint8_t>(FrameKind::kGoodbye);

enum class GoodbyeReason : uint8_t {
  kShutdown = 1,         // in good order
  kOtherProtocol,        // a major version of this protocol that the server lacks; amount: its own
  kOtherService,         // the server serves something else
  kOtherServiceVersion,  // another major version of the service; amount: the server's
  kNoTls,                // the client speaks TLS, and the server has no keys
  kLimit,                // the client did not keep to what it was told in the welcome
  kNonsense,             // frames that make no sense
};
inline constexpr uint8_t kLastGoodbyeReason = static_cast<uint8_t>(GoodbyeReason::kNonsense);

inline constexpr size_t kHeadSize = 32;
inline constexpr size_t kHelloBodyMax = 256;

struct Version {
  uint16_t major = 1;
  uint16_t minor = 0;
  friend bool operator==(const Version&, const Version&) = default;
};
inline constexpr Version kProtocolVersion{.major = 1, .minor = 0};

struct FrameHead {
  FrameKind kind = FrameKind::kPing;
  uint8_t status = 0;
  uint16_t method = 0;
  uint64_t id = 0;
  uint32_t amount = 0;
  uint32_t body_size = 0;
  uint32_t body_checksum = 0;
  friend bool operator==(const FrameHead&, const FrameHead&) = default;
};

struct Hello {
  Version protocol = kProtocolVersion;
  Version service_version;
  uint32_t push_window = 0;  // pushes of a subscription that may come without more credit
  uint32_t message_max = 0;  // bytes of a body that the client takes
  std::string service;       // at most kServiceNameMax bytes
  friend bool operator==(const Hello&, const Hello&) = default;
};
inline constexpr size_t kServiceNameMax = 64;

struct Welcome {
  Version protocol = kProtocolVersion;
  Version service_version;
  uint32_t calls_max = 0;          // calls under way
  uint32_t subscriptions_max = 0;  // subscriptions under way
  uint32_t call_bytes_max = 0;     // bodies of calls and subscriptions under way
  uint32_t message_max = 0;        // bytes of a body that the server takes
  friend bool operator==(const Welcome&, const Welcome&) = default;
};

// Whether bytes begin like a frame, or like a record of TLS: what the ends say to each other when
// one of them speaks TLS and the other does not.
bool looks_plain(Bytes bytes);
bool looks_encrypted(Bytes bytes);

// Sets the body's size and checksum.
std::array<std::byte, kHeadSize> encode_head(FrameHead head, Bytes body);
// kCorrupt: damaged, or no such head.
Result<FrameHead> decode_head(Bytes head);
// Whether the body is the one that was sent. kCorrupt.
Result<void> check_body(const FrameHead& head, Bytes body);

// Bodies. There is one form of each, and what is not in it is kCorrupt.
std::string encode(const Hello& hello);
std::string encode(const Welcome& welcome);
Result<Hello> decode_hello(Bytes body);
Result<Welcome> decode_welcome(Bytes body);

// A call's time on the wire, rounded up to whole ms; never 0.
uint32_t wire_timeout(Duration timeout);

}  // namespace cairn::rpc
