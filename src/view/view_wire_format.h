// SPDX-License-Identifier: Apache-2.0
// The messages of messages.h as bodies of rpc's calls: the only home of their layout, version 1.
//
// Bodies are fields in the order of the layout (base/message_coder.h); a vector of a request is 27
// bytes. There is one form for each value and what is not in it is kCorrupt.
#pragma once

#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "base/error.h"
#include "view/messages.h"
#include "view/view.h"

namespace cairn::view {

inline constexpr const char* kServiceName = "view";
inline constexpr uint16_t kServiceMajor = 2;

enum class ViewCall : uint16_t {
  kAttach = 1,
  kReport,
  kSync,
  kQuery,
  kWatch,  // pushes events
};

std::string encode(const AttachRequest& message);
std::string encode(const AttachReply& message);
std::string encode(const ReportRequest& message);
std::string encode(const ReportReply& message);
std::string encode(const SyncRequest& message);
std::string encode(const SyncReply& message);
std::string encode(const QueryRequest& message);
std::string encode(const View& message);
std::string encode(const WatchRequest& message);
std::string encode(const Event& message);

// T is one of the above. kCorrupt.
template <class T>
Result<T> decode(Bytes body);

}  // namespace cairn::view
