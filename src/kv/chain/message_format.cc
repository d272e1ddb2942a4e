// SPDX-License-Identifier: Apache-2.0
#include "kv/chain/message_format.h"

#include <algorithm>
#include <utility>

#include "base/message_coder.h"

namespace cairn::kv::chain {

namespace {

constexpr char kRecordVersion = 2;

template <class Coder>
struct Layout {
  Coder& coder;
  void operator()(Status& v) { choice(coder, v, Status::kDone, Status::kFailed); }
  void operator()(Command::Kind& v) {
    choice(coder, v, Command::Kind::kPut, Command::Kind::kSwapErase);
  }
  void operator()(Command& v) { fields(coder, v.kind, v.value, v.amount, v.version, v.expires_ms); }
  void operator()(Outcome& v) { fields(coder, v.done, v.is_no_number, v.number, v.version); }
  void operator()(RequestId& v) { fields(coder, v.client, v.number); }
  void operator()(Remembered& v) { fields(coder, v.id, v.outcome); }
  void operator()(Record& v) {
    fields(coder, v.version, v.is_erased, v.expires_ms, v.forgotten, v.requests, v.value);
  }
  void operator()(Sender& v) { fields(coder, v.client, v.tenant); }
  void operator()(GetRequest& v) { fields(coder, v.key, v.epoch, v.is_shipped, v.sender); }
  void operator()(GetReply& v) {
    fields(coder, v.status, v.version, v.value, v.expires_ms, v.tokens);
  }
  void operator()(WriteRequest& v) {
    fields(coder, v.key, v.epoch, v.id, v.since, v.command, v.tenant);
  }
  void operator()(WriteReply& v) { fields(coder, v.status, v.outcome, v.now, v.tokens); }
  void operator()(ForwardRequest& v) { fields(coder, v.key, v.epoch, v.hop, v.record); }
  void operator()(CopyItem& v) { fields(coder, v.key, v.record); }
  void operator()(CopyRequest& v) { fields(coder, v.range_end, v.epoch, v.items); }
  void operator()(FetchRequest& v) { fields(coder, v.key, v.epoch, v.only_published); }
  void operator()(FetchReply& v) { fields(coder, v.status, v.record); }
  void operator()(NamesRequest& v) { fields(coder, v.cursor); }
  void operator()(NamesReply& v) { fields(coder, v.status, v.next, v.is_all, v.keys); }
  void operator()(PassReply& v) { field(coder, v.status); }
};

bool is_key(const std::string& key) { return !key.empty() && key.size() <= kChainKeyMax; }
bool is_sound(const Record& record) {
  return record.value.size() <= kChainValueMax && record.requests.size() <= kRememberedMax &&
         record.version != 0 &&
         (!record.is_erased || (record.value.empty() && record.expires_ms == kNoEnd));
}
bool is_sound(const GetRequest& message) {
  return is_key(message.key) && message.sender.tenant.size() <= kTenantMax;
}
bool is_sound(const GetReply& message) {
  return !message.value || message.value->size() <= kChainValueMax;
}
bool is_sound(const WriteRequest& message) {
  return is_key(message.key) && message.command.value.size() <= kChainValueMax &&
         message.tenant.size() <= kTenantMax;
}
bool is_sound(const WriteReply&) { return true; }
bool is_sound(const PassReply&) { return true; }
bool is_sound(const FetchRequest& message) { return is_key(message.key); }
bool is_sound(const FetchReply& message) { return !message.record || is_sound(*message.record); }
bool is_sound(const NamesRequest&) { return true; }
bool is_sound(const NamesReply& message) {
  return message.keys.size() <= kNamesMax && std::ranges::all_of(message.keys, &is_key);
}
bool is_sound(const ForwardRequest& message) {
  return is_key(message.key) && is_sound(message.record);
}
bool is_sound(const CopyRequest& message) {
  return message.items.size() <= kCopyKeysMax &&
         std::ranges::all_of(message.items, [](const CopyItem& each) {
           return is_key(each.key) && is_sound(each.record);
         });
}

template <class T>
Result<T> decode(Bytes body) {
  std::optional<T> message = decode_message<Layout, T>(body);
  if (!message || !is_sound(*message))
    return fail(Errc::kCorrupt, "a chain message makes no sense");
  return std::move(*message);
}

}  // namespace

std::string encode(const GetRequest& message) { return encode_message<Layout>(message); }
std::string encode(const GetReply& message) { return encode_message<Layout>(message); }
std::string encode(const WriteRequest& message) { return encode_message<Layout>(message); }
std::string encode(const WriteReply& message) { return encode_message<Layout>(message); }
std::string encode(const ForwardRequest& message) { return encode_message<Layout>(message); }
std::string encode(const CopyRequest& message) { return encode_message<Layout>(message); }
std::string encode(const FetchRequest& message) { return encode_message<Layout>(message); }
std::string encode(const FetchReply& message) { return encode_message<Layout>(message); }
std::string encode(const NamesRequest& message) { return encode_message<Layout>(message); }
std::string encode(const NamesReply& message) { return encode_message<Layout>(message); }
std::string encode(const PassReply& message) { return encode_message<Layout>(message); }
std::string encode_record(const Record& record) {
  return kRecordVersion + encode_message<Layout>(record);
}

Result<GetRequest> decode_get_request(Bytes body) { return decode<GetRequest>(body); }
Result<GetReply> decode_get_reply(Bytes body) { return decode<GetReply>(body); }
Result<WriteRequest> decode_write_request(Bytes body) { return decode<WriteRequest>(body); }
Result<WriteReply> decode_write_reply(Bytes body) { return decode<WriteReply>(body); }
Result<ForwardRequest> decode_forward_request(Bytes body) { return decode<ForwardRequest>(body); }
Result<CopyRequest> decode_copy_request(Bytes body) { return decode<CopyRequest>(body); }
Result<FetchRequest> decode_fetch_request(Bytes body) { return decode<FetchRequest>(body); }
Result<FetchReply> decode_fetch_reply(Bytes body) { return decode<FetchReply>(body); }
Result<NamesRequest> decode_names_request(Bytes body) { return decode<NamesRequest>(body); }
Result<NamesReply> decode_names_reply(Bytes body) { return decode<NamesReply>(body); }
Result<PassReply> decode_pass_reply(Bytes body) { return decode<PassReply>(body); }

std::string encode_member_id(uint64_t id) {
  FieldWriter writer;
  writer.number(id);
  return std::move(writer.out);
}

Result<uint64_t> decode_member_id(Bytes bytes) {
  FieldReader reader(bytes);
  uint64_t id = 0;
  reader.number(id);
  if (!reader.is_over() || id == 0) return fail(Errc::kCorrupt, "a store's member id is damaged");
  return id;
}

Result<Record> decode_record(Bytes bytes) {
  if (bytes.empty() || load<char>(bytes) != kRecordVersion) {
    return fail(Errc::kCorrupt, "a record of a chain makes no sense");
  }
  return decode<Record>(bytes.subspan(1));
}

}  // namespace cairn::kv::chain
