// SPDX-License-Identifier: Apache-2.0
// Requests and answers of etcd's v3 API as its HTTP gateway writes them: JSON, with keys and values
// in base64 and 64-bit numbers as text. Pure functions; what etcd sends is judged as any input:
// kCorrupt is no such answer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "meta/types.h"

namespace cairn::meta::etcd {

// Bodies of requests.
std::string range_request(const ListOptions& options);
std::string txn_request(const Batch& batch);
std::string grant_request(Duration ttl);
std::string lease_request(LeaseId lease);
std::string compaction_request(Revision upto);
std::string watch_request(const Range& range, Revision from);

// Bodies of answers with status 200.
Result<Page> read_page(std::string_view body);
// Which precondition of `batch` failed is found by the entries that the answer brings along.
Result<Committed> read_committed(std::string_view body, const Batch& batch);
Result<Lease> read_granted(std::string_view body);
// None: the lease has ended.
Result<std::optional<Duration>> read_kept_alive(std::string_view body);

// One message of a watch.
struct WatchMessage {
  std::vector<Change> changes;  // the last one may go on in the next message
  Revision revision;            // of the store; zero: not said
  bool is_created = false;
  bool is_cancelled = false;
  bool is_fragment = false;  // more of the same follows
  bool is_compacted = false;
};
Result<WatchMessage> read_watch(std::string_view line);

// What an answer with another status means. kReset: etcd could not do it now, or cannot tell
// whether it did.
Error read_error(uint16_t status, std::string_view body);

}  // namespace cairn::meta::etcd
