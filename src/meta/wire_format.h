// SPDX-License-Identifier: Apache-2.0
// What a client (remote_store.h) and a Server say to each other, as bodies of rpc's calls
// (rpc/wire_format.h): the only home of their layout, version 1.
//
// Bodies are numbers (u8, u32, u64) and texts (u32 length, bytes) in the order of the fields; lists
// begin with a u32 count; a choice is a u8. There is one form for each value and what is not in it
// is kCorrupt.
#pragma once

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
  kWatch,  // a subscription
};
inline constexpr uint8_t kLastCall = static_cast<uint8_t>(Call::kWatch);

// The service's name and version at rpc.
inline constexpr const char* kServiceName = "meta";
inline constexpr uint16_t kServiceMajor = 1;
// More than any request or answer within the limits of meta/types.h.
inline constexpr size_t kBodyMax = 4_MiB;

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
// The changes from a revision on; from none: those after this. Each push is a WatchPush.
struct WatchRequest {
  Range range;
  Revision from;
  friend bool operator==(const WatchRequest&, const WatchRequest&) = default;
};
// Every change before `position` was given out. The first push of a watch from no revision, and one
// now and then while nothing happens in the range, says the position alone.
struct WatchPush {
  std::vector<Change> changes;
  Revision position;
  friend bool operator==(const WatchPush&, const WatchPush&) = default;
};

// In the order of Call. An answer to kWatch is a push.
using CallArgs = std::variant<GetRequest, ListOptions, Batch, GrantRequest, KeepAliveRequest,
                              RevokeRequest, CompactRequest, WatchRequest>;
using Answer =
    std::variant<std::optional<Entry>, Page, Committed, Lease, Duration, std::monostate, WatchPush>;

inline Call call_of(const CallArgs& request) { return static_cast<Call>(request.index() + 1); }

std::string encode(const CallArgs& request);
std::string encode(const Answer& answer);

// kCorrupt.
Result<CallArgs> decode_args(Call call, Bytes body);
Result<Answer> decode_answer(Call call, Bytes body);

}  // namespace cairn::meta
