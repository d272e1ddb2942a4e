// SPDX-License-Identifier: Apache-2.0
// The protocol between a RemoteStore and a Server: the only home of its layout, version 1.
//
// One request and its answer after the other, each a frame: a head of 16 bytes, little-endian, and
// a body.
//
//   0  u32  "CMET"
//   4  u8   version
//   5  u8   call
//   6  u8   of an answer: 0, or an Errc and then no body; of a request: 0
//   7  u8   0: request, 1: answer
//   8  u32  length of the body
//   12 u32  CRC32C of the bytes before and the body
//
// Bodies are numbers (u8, u32, u64) and texts (u32 length, bytes) in the order of the fields; lists
// begin with a u32 count; a choice is a u8. There is one form for each value and what is not in it
// is kCorrupt.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "meta/types.h"

namespace cairn::meta {

enum class Call : uint8_t {
  kGet = 1,
  kList,
  kCommit,
  kGrant,
  kKeepAlive,
  kRevoke,
  kCompact,
  kPoll,
};
inline constexpr uint8_t kLastCall = static_cast<uint8_t>(Call::kPoll);

inline constexpr size_t kFrameHeadSize = 16;
// More than any request or answer within the limits of meta/types.h.
inline constexpr size_t kFrameBodyMax = 4_MiB;

struct GetRequest {
  std::string key;
  friend bool operator==(const GetRequest&, const GetRequest&) = default;
};
struct GrantRequest {
  Duration ttl;
  friend bool operator==(const GrantRequest&, const GrantRequest&) = default;
};
struct KeepAliveRequest {
  LeaseId lease;
  friend bool operator==(const KeepAliveRequest&, const KeepAliveRequest&) = default;
};
struct RevokeRequest {
  LeaseId lease;
  friend bool operator==(const RevokeRequest&, const RevokeRequest&) = default;
};
struct CompactRequest {
  Revision upto;
  friend bool operator==(const CompactRequest&, const CompactRequest&) = default;
};
// What a watch asks again and again. From no revision: where one that begins now stands, at once.
// Else it waits a while for changes; none may come.
struct PollRequest {
  Range range;
  Revision from;
  friend bool operator==(const PollRequest&, const PollRequest&) = default;
};
struct PollAnswer {
  std::vector<Change> changes;
  Revision position;
  friend bool operator==(const PollAnswer&, const PollAnswer&) = default;
};

// In the order of Call.
using Request = std::variant<GetRequest, ListOptions, Batch, GrantRequest, KeepAliveRequest,
                             RevokeRequest, CompactRequest, PollRequest>;
using Answer = std::variant<std::optional<Entry>, Page, Committed, Lease, Duration, std::monostate,
                            PollAnswer>;

struct FrameHead {
  Call call = Call::kGet;
  std::optional<Errc> refusal;
  bool is_answer = false;
  uint32_t length = 0;
  uint32_t checksum = 0;
};

inline Call call_of(const Request& request) { return static_cast<Call>(request.index() + 1); }

// Whether bytes begin like a frame, or like a record of TLS: what the ends say to each other when
// one of them speaks TLS and the other does not.
bool looks_plain(Bytes bytes);
bool looks_encrypted(Bytes bytes);

// Whole frames.
std::string encode(const Request& request);
std::string encode(Call call, const Answer& answer);
std::string encode_refusal(Call call, Errc refusal);

// kCorrupt: no such head; kUnsupported: another version.
Result<FrameHead> decode_head(Bytes head);
// Whether the body is the one that was sent. kCorrupt.
Result<void> check_body(Bytes head, Bytes body);
Result<Request> decode_request(Call call, Bytes body);
Result<Answer> decode_answer(Call call, Bytes body);

}  // namespace cairn::meta
