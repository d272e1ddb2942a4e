// SPDX-License-Identifier: Apache-2.0
// The messages of trade_messages.h as bodies of rpc's calls: the only home of their layout,
// version 1.
//
// Bodies are fields in the order of the layout (base/message_coder.h). There is one form for each
// value and what is not in it is kCorrupt.
#pragma once

#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "base/error.h"
#include "share/trade_messages.h"

namespace cairn::share {

inline constexpr const char* kServiceName = "market";
inline constexpr uint16_t kServiceMajor = 1;
// Another arbiter leads and has the market; no call is refused with it otherwise.
inline constexpr Errc kElsewhere = Errc::kUnsupported;

enum class TradeCall : uint16_t {
  kJoin = 1,  // kDenied: that client has not got the volume open; kNotFound: there is none
  kTrade,     // kNotFound: join again; kInvalid: it makes no sense
  kLeave,     // answered with nothing
};

std::string encode(const JoinRequest& message);
std::string encode(const JoinReply& message);
std::string encode(const TradeRequest& message);
std::string encode(const TradeReply& message);
std::string encode(const LeaveRequest& message);

// T is one of the above. kCorrupt.
template <class T>
Result<T> decode(Bytes body);

}  // namespace cairn::share
