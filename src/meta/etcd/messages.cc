// SPDX-License-Identifier: Apache-2.0
#include "meta/etcd/messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/bytes.h"
#include "crypto/base64.h"

namespace cairn::meta::etcd {

namespace {

using Json = nlohmann::json;

std::string base64(std::string_view bytes) { return crypto::to_base64(as_bytes(bytes)); }

// A key of zero stands for "from the first key on", and as an end for "to the last".
std::string range_fields(const Range& range) {
  const std::string zero(1, '\0');
  return fmt::format(R"("key":"{}","range_end":"{}")",
                     base64(range.first.empty() ? zero : range.first),
                     base64(range.end.empty() ? zero : range.end));
}

std::string compare(const Precondition& condition) {
  const std::string key = base64(condition.key);
  const auto revision_is = [&](const char* target, const char* field, uint64_t revision) {
    return fmt::format(R"({{"key":"{}","target":"{}","result":"EQUAL","{}":"{}"}})", key, target,
                       field, revision);
  };
  switch (condition.kind) {
    case Precondition::Kind::kAbsent:
      return revision_is("CREATE", "create_revision", 0);
    case Precondition::Kind::kModified:
      return revision_is("MOD", "mod_revision", condition.revision.value());
    case Precondition::Kind::kCreated:
      return revision_is("CREATE", "create_revision", condition.revision.value());
    case Precondition::Kind::kValue:
      break;
  }
  return fmt::format(R"({{"key":"{}","target":"VALUE","result":"EQUAL","value":"{}"}})", key,
                     base64(condition.value));
}

std::string operation(const Write& write) {
  if (!write.value) {
    return fmt::format(R"({{"request_delete_range":{{"key":"{}"}}}})", base64(write.key));
  }
  return fmt::format(R"({{"request_put":{{"key":"{}","value":"{}","lease":"{}"}}}})",
                     base64(write.key), base64(*write.value), write.lease.value());
}

template <class T, class F>
std::string list_of(const std::vector<T>& values, F text_of) {
  std::string text = "[";
  for (const T& value : values) text += (text.size() > 1 ? "," : "") + text_of(value);
  return text + "]";
}

std::unexpected<Error> strange() {
  return fail(Errc::kCorrupt, "etcd's answer makes no sense: is that an etcd 3.4 or newer?");
}

// Reads members of objects. One that is not there has etcd's default; one that is something else
// spoils the reader.
class Reader {
 public:
  const Json* object(const Json& in, const char* name) {
    const auto found = in.find(name);
    if (found == in.end()) return nullptr;
    if (!found->is_object()) return spoil(), nullptr;
    return &*found;
  }
  // An empty list if there is none.
  const Json& list(const Json& in, const char* name) {
    const auto found = in.find(name);
    if (found == in.end()) return empty_;
    if (!found->is_array() || !std::ranges::all_of(*found, &Json::is_object)) {
      return spoil(), empty_;
    }
    return *found;
  }
  uint64_t number(const Json& in, const char* name) {
    const auto found = in.find(name);
    if (found == in.end()) return 0;
    if (found->is_number_unsigned()) return found->get<uint64_t>();
    uint64_t value = 0;
    if (!found->is_string()) return spoil(), 0;
    const auto& text = found->get_ref<const std::string&>();
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || stop != text.data() + text.size()) spoil();
    return value;
  }
  bool boolean(const Json& in, const char* name) {
    const auto found = in.find(name);
    if (found == in.end()) return false;
    if (!found->is_boolean()) return spoil(), false;
    return found->get<bool>();
  }
  std::string text(const Json& in, const char* name) {
    const auto found = in.find(name);
    if (found == in.end()) return {};
    if (!found->is_string()) return spoil(), std::string();
    return found->get<std::string>();
  }
  std::string bytes(const Json& in, const char* name) {
    const auto decoded = crypto::from_base64(text(in, name));
    if (!decoded) return spoil(), std::string();
    return std::string(as_text(*decoded));
  }
  Revision revision(const Json& in, const char* name) { return Revision(number(in, name)); }
  // In the answer's header.
  Revision header_revision(const Json& in) {
    const Json* header = object(in, "header");
    return header == nullptr ? Revision() : revision(*header, "revision");
  }
  Entry entry(const Json& in) {
    Entry found{.key = bytes(in, "key"),
                .value = bytes(in, "value"),
                .created = revision(in, "create_revision"),
                .modified = revision(in, "mod_revision"),
                .lease = LeaseId(number(in, "lease"))};
    if (found.key.empty() || found.modified == Revision()) spoil();
    return found;
  }
  void spoil() { is_good_ = false; }
  bool is_good() const { return is_good_; }

 private:
  Json empty_ = Json::array();
  bool is_good_ = true;
};

Result<Json> parse(std::string_view body) {
  Json parsed = Json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (parsed.is_discarded() || !parsed.is_object()) return strange();
  return parsed;
}

bool holds(const Precondition& condition, const Entry* entry) {
  if (condition.kind == Precondition::Kind::kAbsent) return entry == nullptr;
  if (entry == nullptr) return false;
  switch (condition.kind) {
    case Precondition::Kind::kModified:
      return entry->modified == condition.revision;
    case Precondition::Kind::kCreated:
      return entry->created == condition.revision;
    default:
      return entry->value == condition.value;
  }
}

}  // namespace

std::string range_request(const ListOptions& options) {
  return fmt::format(R"({{{},"limit":"{}","revision":"{}"}})", range_fields(options.range),
                     options.limit, options.at.value());
}

std::string txn_request(const Batch& batch) {
  // What was there instead comes along with a refusal.
  const auto look = [](const Precondition& condition) {
    return fmt::format(R"({{"request_range":{{"key":"{}"}}}})", base64(condition.key));
  };
  return fmt::format(R"({{"compare":{},"success":{},"failure":{}}})",
                     list_of(batch.preconditions, compare), list_of(batch.writes, operation),
                     list_of(batch.preconditions, look));
}

std::string grant_request(Duration ttl) {
  return fmt::format(R"({{"TTL":"{}"}})", (ttl.ns + (1_s).ns - 1) / (1_s).ns);
}

std::string lease_request(LeaseId lease) { return fmt::format(R"({{"ID":"{}"}})", lease.value()); }

std::string compaction_request(Revision upto) {
  return fmt::format(R"({{"revision":"{}"}})", upto.value());
}

std::string watch_request(const Range& range, Revision from) {
  return fmt::format(
      R"({{"create_request":{{{},"start_revision":"{}","progress_notify":true,"fragment":true}}}})",
      range_fields(range), from.value());
}

Result<Page> read_page(std::string_view body) {
  const Result<Json> json = parse(body);
  if (!json) return fail(json.error());
  Reader reader;
  Page page{.entries = {},
            .revision = reader.header_revision(*json),
            .more = reader.boolean(*json, "more")};
  for (const Json& each : reader.list(*json, "kvs")) page.entries.push_back(reader.entry(each));
  if (!reader.is_good() || page.revision == Revision()) return strange();
  return page;
}

Result<Committed> read_committed(std::string_view body, const Batch& batch) {
  const Result<Json> json = parse(body);
  if (!json) return fail(json.error());
  Reader reader;
  Committed committed{.revision = reader.header_revision(*json), .failed = std::nullopt};
  const bool succeeded = reader.boolean(*json, "succeeded");
  if (!reader.is_good() || committed.revision == Revision()) return strange();
  if (succeeded) return committed;
  const Json& responses = reader.list(*json, "responses");
  if (responses.size() != batch.preconditions.size()) return strange();
  for (size_t i = 0; i < responses.size() && !committed.failed; ++i) {
    const Json* range = reader.object(responses[i], "response_range");
    if (range == nullptr) return strange();
    std::optional<Entry> entry;
    for (const Json& each : reader.list(*range, "kvs")) entry = reader.entry(each);
    if (!holds(batch.preconditions[i], entry ? &*entry : nullptr)) committed.failed = i;
  }
  if (!reader.is_good() || !committed.failed) return strange();
  return committed;
}

Result<Lease> read_granted(std::string_view body) {
  const Result<Json> json = parse(body);
  if (!json) return fail(json.error());
  Reader reader;
  const LeaseId id(reader.number(*json, "ID"));
  const uint64_t seconds = reader.number(*json, "TTL");
  if (!reader.is_good() || id == LeaseId() || seconds == 0 || seconds > INT32_MAX) return strange();
  return Lease{id, 1_s * static_cast<int64_t>(seconds)};
}

Result<std::optional<Duration>> read_kept_alive(std::string_view body) {
  const Result<Json> json = parse(body);
  if (!json) return fail(json.error());
  Reader reader;
  const Json* result = reader.object(*json, "result");
  if (result == nullptr) return fail(Errc::kReset, "etcd could not keep a lease alive");
  const uint64_t seconds = reader.number(*result, "TTL");
  if (!reader.is_good() || seconds > INT32_MAX) return strange();
  if (seconds == 0) return std::nullopt;
  return 1_s * static_cast<int64_t>(seconds);
}

Result<WatchMessage> read_watch(std::string_view line) {
  const Result<Json> json = parse(line);
  if (!json) return fail(json.error());
  Reader reader;
  const Json* result = reader.object(*json, "result");
  if (result == nullptr) return fail(Errc::kReset, "etcd ended a watch");
  WatchMessage message{.changes = {},
                       .revision = reader.header_revision(*result),
                       .is_created = reader.boolean(*result, "created"),
                       .is_cancelled = reader.boolean(*result, "canceled"),
                       .is_fragment = reader.boolean(*result, "fragment"),
                       .is_compacted = reader.number(*result, "compact_revision") != 0};
  for (const Json& each : reader.list(*result, "events")) {
    const Json* entry = reader.object(each, "kv");
    if (entry == nullptr) return strange();
    const std::string type = reader.text(each, "type");
    if (!type.empty() && type != "PUT" && type != "DELETE") return strange();
    Event event{.entry = reader.entry(*entry), .removed = type == "DELETE"};
    const Revision by = event.entry.modified;
    if (message.changes.empty() || message.changes.back().revision < by) {
      message.changes.push_back({.revision = by, .events = {}});
    } else if (message.changes.back().revision != by) {
      return strange();
    }
    message.changes.back().events.push_back(std::move(event));
  }
  if (!reader.is_good()) return strange();
  return message;
}

Error read_error(uint16_t status, std::string_view body) {
  Reader reader;
  const Result<Json> json = parse(body);
  const uint64_t code = json ? reader.number(*json, "code") : 0;
  const std::string text = json ? reader.text(*json, "error") : "";
  const auto says = [&](std::string_view part) { return text.find(part) != std::string::npos; };
  // The numbers are those of gRPC.
  switch (code) {
    case 3:
      return {Errc::kInvalid,
              "etcd refuses the request: see its --max-request-bytes and "
              "--max-txn-ops"};
    case 5:
      return {Errc::kNotFound, "the lease has ended"};
    case 7:
    case 16:
      return {Errc::kDenied, "etcd wants users to log in, which is not supported: use one without"};
    case 8:
      if (says("space exceeded")) {
        return {Errc::kNoSpace, "etcd is full: compact and defragment it, then disarm its alarm"};
      }
      return {Errc::kLimit, "etcd has too many requests"};
    case 11:
      if (says("compacted")) return {Errc::kNotFound, "that history was compacted: list anew"};
      return {Errc::kInvalid, "a revision that is not there yet"};
    case 1:
    case 4:
    case 14:
      return {Errc::kReset, "etcd cannot do it now: it may have no leader"};
    default:
      break;
  }
  if (status >= 500) return {Errc::kReset, "etcd failed", status};
  return {Errc::kUnsupported, "that is no etcd with its v3 gateway", status};
}

}  // namespace cairn::meta::etcd
