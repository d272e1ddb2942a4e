// SPDX-License-Identifier: Apache-2.0
// Messages of NVMe in-band authentication with DH-HMAC-CHAP (NVMe Base 2.0, 8.13), which
// Authentication Send and Receive carry. Each layout is the fixed start of a message.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "nvme/format/field.h"

namespace cairn::nvme {

// AUTH_TYPE and AUTH_ID as one: which message it is.
enum class AuthType : uint8_t { kCommon = 0x00, kDhHmacChap = 0x01 };
enum class AuthId : uint8_t {
  kNegotiate = 0x00,  // common
  kChallenge = 0x01,
  kReply = 0x02,
  kSuccess1 = 0x03,
  kSuccess2 = 0x04,
  kFailure2 = 0xf0,  // common; the host's
  kFailure1 = 0xf1,  // common; the controller's
};

// HashID and DHgID.
enum class AuthHash : uint8_t { kSha256 = 1, kSha384 = 2, kSha512 = 3 };
enum class AuthGroup : uint8_t {
  kNull = 0,  // no Diffie-Hellman exchange
  kFfdhe2048 = 1,
  kFfdhe3072 = 2,
  kFfdhe4096 = 3,
  kFfdhe6144 = 4,
  kFfdhe8192 = 5,
};

// Reason code explanation of a failure; its reason code is always kAuthReasonFailure.
enum class AuthFailure : uint8_t {
  kFailed = 0x01,             // the response is not the right one
  kProtocolNotUsable = 0x02,  // no authentication protocol in common
  kSecureChannel = 0x03,      // secure channel concatenation: asked for and not to be had
  kHashNotUsable = 0x04,      // no hash in common
  kGroupNotUsable = 0x05,     // no DH group in common
  kIncorrectPayload = 0x06,
  kIncorrectMessage = 0x07,  // a message out of turn
};
inline constexpr uint8_t kAuthReasonFailure = 0x01;

// SECP and SPSP of the commands that carry messages.
inline constexpr uint8_t kAuthSecurityProtocol = 0xe9;
inline constexpr uint8_t kAuthProtocolSpecific = 0x01;

// What a message can have at most is a Reply's 1168 bytes; what a command may carry is this.
inline constexpr uint32_t kAuthMessageMax = 4096;

struct AuthHeader {
  AuthType type{};
  AuthId id{};
  Reserved<2> unused2{};
  Le16 transaction{};  // T_ID
};
static_assert(sizeof(AuthHeader) == 6 && offsetof(AuthHeader, transaction) == 4);

// AUTH_Negotiate, followed by NAPD protocol descriptors.
struct AuthNegotiate {
  AuthHeader header{.type = AuthType::kCommon, .id = AuthId::kNegotiate};
  uint8_t secure_channel = 0;  // SC_C: 0 is none
  uint8_t protocols = 1;       // NAPD
};
static_assert(sizeof(AuthNegotiate) == 8);

inline constexpr uint8_t kAuthDhHmacChap = 0x01;  // AUTHID of the only protocol there is
inline constexpr size_t kAuthIdsMax = 30;         // of a descriptor's hashes, and of its groups

struct AuthProtocol {
  uint8_t protocol = kAuthDhHmacChap;  // AUTHID
  Reserved<1> unused1{};
  uint8_t hashes_size = 0;                    // HALEN
  uint8_t groups_size = 0;                    // DHLEN
  std::array<uint8_t, kAuthIdsMax> hashes{};  // HashIDs
  std::array<uint8_t, kAuthIdsMax> groups{};  // DHgIDs
};
static_assert(sizeof(AuthProtocol) == 64 && offsetof(AuthProtocol, groups) == 34);

// DH-HMAC-CHAP_Challenge, followed by the challenge (HL bytes) and the DH value (DHVLEN bytes).
struct AuthChallenge {
  AuthHeader header{.type = AuthType::kDhHmacChap, .id = AuthId::kChallenge};
  uint8_t hash_size = 0;  // HL
  Reserved<1> unused7{};
  uint8_t hash = 0;   // HashID
  uint8_t group = 0;  // DHgID
  Le16 dh_size;       // DHVLEN
  Le32 sequence;      // SEQNUM: never 0
};
static_assert(sizeof(AuthChallenge) == 16 && offsetof(AuthChallenge, sequence) == 12);

// DH-HMAC-CHAP_Reply, followed by the response and the host's challenge (HL bytes each) and the DH
// value (DHVLEN bytes).
struct AuthReply {
  AuthHeader header{.type = AuthType::kDhHmacChap, .id = AuthId::kReply};
  uint8_t hash_size = 0;  // HL
  Reserved<1> unused7{};
  uint8_t has_challenge = 0;  // CVALID: the controller is to prove itself too
  Reserved<1> unused9{};
  Le16 dh_size;   // DHVLEN
  Le32 sequence;  // SEQNUM: 0 without a challenge
};
static_assert(sizeof(AuthReply) == 16 && offsetof(AuthReply, sequence) == 12);

// DH-HMAC-CHAP_Success1, followed by the controller's response (HL bytes) if it has one.
struct AuthSuccess1 {
  AuthHeader header{.type = AuthType::kDhHmacChap, .id = AuthId::kSuccess1};
  uint8_t hash_size = 0;  // HL
  Reserved<1> unused7{};
  uint8_t has_response = 0;  // RVALID
  Reserved<7> unused9{};
};
static_assert(sizeof(AuthSuccess1) == 16 && offsetof(AuthSuccess1, has_response) == 8);

// DH-HMAC-CHAP_Success2: the host has found the controller's response right.
struct AuthSuccess2 {
  AuthHeader header{.type = AuthType::kDhHmacChap, .id = AuthId::kSuccess2};
  Reserved<10> unused6{};
};
static_assert(sizeof(AuthSuccess2) == 16);

// AUTH_Failure1 and AUTH_Failure2.
struct AuthFailed {
  AuthHeader header{.type = AuthType::kCommon, .id = AuthId::kFailure1};
  uint8_t reason = kAuthReasonFailure;
  AuthFailure explanation{};
};
static_assert(sizeof(AuthFailed) == 8 && offsetof(AuthFailed, explanation) == 7);

}  // namespace cairn::nvme
