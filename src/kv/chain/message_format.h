// SPDX-License-Identifier: Apache-2.0
// What clients and nodes of chains say to each other, as bodies of rpc's calls, and how a record
// lies in a node's store: the only home of these layouts, version 3.
//
// Numbers are little-endian; texts and lists begin with a count of four bytes; a choice or a flag
// is a byte. A stored record begins with its version byte. There is one form for each value; what
// is not in it is kCorrupt.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "kv/chain/command.h"
#include "kv/ring/view.h"

namespace cairn::kv::chain {

enum class Call : uint16_t {
  kGet = 1,  // from clients; or shipped from a replica to the tail
  kWrite,    // from clients, to the head
  kForward,  // from a replica to the next
  kCopy,     // from a replica to the next, which is joining
  kView,     // nothing -> an encoded view
  kFetch,    // from a replica whose record is damaged, to another of its chain
  kNames,    // from a replica with damage that it cannot name, to another
};
inline constexpr const char* kServiceName = "kv-chain";
inline constexpr uint16_t kServiceMajor = 3;
inline constexpr size_t kCopyKeysMax = 32;
inline constexpr size_t kNamesMax = 4096;           // of a reply
inline constexpr size_t kTenantMax = 64;            // bytes of a tenant's name
inline constexpr size_t kCopyBytesMax = 2UL << 20;  // then the batch ends, with one key at least

enum class Status : uint8_t {
  kDone = 0,
  kOtherView,  // the caller's view of the chain is not this node's, or it may not serve: nothing
               // was done, by a write perhaps; look at a newer view
  kNotReady,   // shortly
  kOutdated,   // a later request of the same client was carried out
  kDoubtful,   // it may have been carried out, long ago
  kNoSpace,    // nothing was done
  kFailed,     // of the store; it may have been carried out
};

// Who asks, to be told what it may send without waiting. Nobody is let in or kept out by it.
struct Sender {
  uint64_t client = 0;
  std::string tenant;  // counts where callers have no keys, whose names are their tenants' else
  friend bool operator==(const Sender&, const Sender&) = default;
};
struct GetRequest {
  std::string key;
  ring::Epoch epoch;        // of the chain, as the caller knows it
  bool is_shipped = false;  // by a replica
  Sender sender;
  friend bool operator==(const GetRequest&, const GetRequest&) = default;
};
struct GetReply {
  Status status = Status::kDone;
  uint64_t version = 0;              // 0: there was never such a key
  std::optional<std::string> value;  // none: no such key
  int64_t expires_ms = kNoEnd;       // of the value, which may be over
  uint32_t tokens = 0;               // that the sender may use at the node it asked
  friend bool operator==(const GetReply&, const GetReply&) = default;
};
struct WriteRequest {
  std::string key;
  ring::Epoch epoch;
  RequestId id;
  uint64_t since = 0;  // see decide()
  Command command;
  std::string tenant;  // as of a Sender, whose client is that of `id`
  friend bool operator==(const WriteRequest&, const WriteRequest&) = default;
};
struct WriteReply {
  Status status = Status::kDone;
  Outcome outcome;
  uint64_t now = 0;     // of a doubtful one: a `since` for a request that is sent from now on
  uint32_t tokens = 0;  // as of a GetReply
  friend bool operator==(const WriteReply&, const WriteReply&) = default;
};
struct ForwardRequest {
  std::string key;
  ring::Epoch epoch;
  uint32_t hop = 0;  // the receiver's position in the chain
  Record record;
  friend bool operator==(const ForwardRequest&, const ForwardRequest&) = default;
};
struct CopyItem {
  std::string key;
  Record record;
  friend bool operator==(const CopyItem&, const CopyItem&) = default;
};
struct CopyRequest {
  uint64_t range_end = 0;
  ring::Epoch epoch;
  std::vector<CopyItem> items;
  friend bool operator==(const CopyRequest&, const CopyRequest&) = default;
};
struct FetchRequest {
  std::string key;
  ring::Epoch epoch;
  bool only_published = false;  // kNotReady else
  friend bool operator==(const FetchRequest&, const FetchRequest&) = default;
};
struct FetchReply {
  Status status = Status::kDone;
  std::optional<Record> record;  // none: there is none
  friend bool operator==(const FetchReply&, const FetchReply&) = default;
};
struct NamesRequest {
  uint64_t cursor = 0;  // of the node that is asked; 0: its first keys
  friend bool operator==(const NamesRequest&, const NamesRequest&) = default;
};
struct NamesReply {
  Status status = Status::kDone;
  uint64_t next = 0;              // where to go on; 0: these are the last
  bool is_all = true;             // false: here are keys, too, that cannot be told
  std::vector<std::string> keys;  // that the node's store has, whosever they are
  friend bool operator==(const NamesReply&, const NamesReply&) = default;
};
// Of kForward: it has arrived everywhere behind. Of kCopy: it is there.
struct PassReply {
  Status status = Status::kDone;
  friend bool operator==(const PassReply&, const PassReply&) = default;
};

std::string encode(const GetRequest& message);
std::string encode(const GetReply& message);
std::string encode(const WriteRequest& message);
std::string encode(const WriteReply& message);
std::string encode(const ForwardRequest& message);
std::string encode(const CopyRequest& message);
std::string encode(const FetchRequest& message);
std::string encode(const FetchReply& message);
std::string encode(const NamesRequest& message);
std::string encode(const NamesReply& message);
std::string encode(const PassReply& message);
std::string encode_record(const Record& record);

// kCorrupt, also of one beyond the limits of command.h.
Result<GetRequest> decode_get_request(Bytes body);
Result<GetReply> decode_get_reply(Bytes body);
Result<WriteRequest> decode_write_request(Bytes body);
Result<WriteReply> decode_write_reply(Bytes body);
Result<ForwardRequest> decode_forward_request(Bytes body);
Result<CopyRequest> decode_copy_request(Bytes body);
Result<FetchRequest> decode_fetch_request(Bytes body);
Result<FetchReply> decode_fetch_reply(Bytes body);
Result<NamesRequest> decode_names_request(Bytes body);
Result<NamesReply> decode_names_reply(Bytes body);
Result<PassReply> decode_pass_reply(Bytes body);
Result<Record> decode_record(Bytes bytes);

// By which number a store is known in its cluster, as the store keeps it; never 0.
std::string encode_member_id(uint64_t id);
Result<uint64_t> decode_member_id(Bytes bytes);

}  // namespace cairn::kv::chain
