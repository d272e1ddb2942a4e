// SPDX-License-Identifier: Apache-2.0
#include "meta/wire_format.h"

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "base/message_coder.h"

namespace cairn::meta {

namespace {

template <class Coder>
struct Layout {
  Coder& coder;
  void operator()(std::monostate&) {}
  void operator()(Precondition::Kind& v) {
    choice(coder, v, Precondition::Kind{}, Precondition::Kind::kValue);
  }
  void operator()(Entry& v) { fields(coder, v.key, v.value, v.created, v.modified, v.lease); }
  void operator()(Range& v) { fields(coder, v.first, v.end); }
  void operator()(Precondition& v) { fields(coder, v.kind, v.key, v.revision, v.value); }
  void operator()(Write& v) { fields(coder, v.key, v.value, v.lease); }
  void operator()(Batch& v) { fields(coder, v.preconditions, v.writes); }
  void operator()(Committed& v) { fields(coder, v.revision, v.failed); }
  void operator()(ListOptions& v) {
    (*this)(v.range);
    fields(coder, v.limit, v.at);
  }
  void operator()(Page& v) { fields(coder, v.entries, v.revision, v.more); }
  void operator()(Event& v) {
    (*this)(v.entry);
    field(coder, v.removed);
  }
  void operator()(Change& v) { fields(coder, v.revision, v.events); }
  void operator()(Lease& v) { fields(coder, v.id, v.ttl); }
  void operator()(GetRequest& v) { field(coder, v.key); }
  void operator()(GrantRequest& v) { field(coder, v.ttl); }
  void operator()(KeepAliveRequest& v) { field(coder, v.lease); }
  void operator()(RevokeRequest& v) { field(coder, v.lease); }
  void operator()(CompactRequest& v) { field(coder, v.upto); }
  void operator()(WatchRequest& v) {
    (*this)(v.range);
    field(coder, v.from);
  }
  void operator()(WatchPush& v) { fields(coder, v.changes, v.position); }
};

size_t answer_index(Call call) {
  switch (call) {
    case Call::kGet:
      return 0;
    case Call::kList:
      return 1;
    case Call::kCommit:
      return 2;
    case Call::kGrant:
      return 3;
    case Call::kKeepAlive:
      return 4;
    case Call::kRevoke:
    case Call::kCompact:
      return 5;
    case Call::kWatch:
      return 6;
  }
  return std::variant_size_v<Answer>;
}

std::unexpected<Error> senseless() {
  return fail(Errc::kCorrupt, "a metadata message makes no sense");
}

}  // namespace

std::string encode(const CallArgs& request) { return encode_one_of<Layout>(request); }
std::string encode(const Answer& answer) { return encode_one_of<Layout>(answer); }

Result<CallArgs> decode_args(Call call, Bytes body) {
  std::optional<CallArgs> request =
      decode_one_of<Layout, CallArgs>(static_cast<size_t>(call) - 1, body);
  if (!request) return senseless();
  return std::move(*request);
}

Result<Answer> decode_answer(Call call, Bytes body) {
  std::optional<Answer> answer = decode_one_of<Layout, Answer>(answer_index(call), body);
  if (!answer) return senseless();
  return std::move(*answer);
}

}  // namespace cairn::meta
