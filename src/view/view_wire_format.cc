// SPDX-License-Identifier: Apache-2.0
#include "view/view_wire_format.h"

#include <algorithm>
#include <optional>

#include "base/message_coder.h"

namespace cairn::view {

namespace {

template <class Coder>
struct Layout {
  Coder& coder;
  template <class T, size_t size>
  void operator()(std::array<T, size>& v) {
    for (T& each : v) field(coder, each);
  }
  void operator()(Time& v) {
    convert<int64_t>(
        coder, v, [](Time time) { return time.ns; },
        [](int64_t wire, Time& time) { return time.ns = wire, true; });
  }
  void operator()(IoType& v) { choice(coder, v, IoType::kRead, IoType::kWrite); }
  void operator()(Kind& v) { choice(coder, v, Kind::kPort, Kind::kDrive); }
  void operator()(ComponentId& v) { fields(coder, v.box, v.kind, v.index); }
  void operator()(IoVector& v) {
    fields(coder, v.session, v.drive, v.type, v.bytes, v.rtt, v.completed);
  }
  void operator()(SessionInfo& v) { fields(coder, v.id, v.volume, v.box, v.port, v.ticket); }
  void operator()(AttachedSession& v) { fields(coder, v.id, v.box); }
  void operator()(BoxView& v) { fields(coder, v.name, v.ports, v.drives); }
  void operator()(Traffic& v) { fields(coder, v.bytes_per_s, v.ops_per_s, v.sizes); }
  void operator()(ComponentTraffic& v) {
    fields(coder, v.now, v.average_bytes_per_s, v.average_ops_per_s);
  }
  void operator()(DriveView& v) {
    fields(coder, v.read_delay, v.write_delay, v.rate, v.used, v.headroom, v.write_cost_x10, v.busy,
           v.fragmentation, v.is_congested);
  }
  void operator()(ComponentView& v) {
    fields(coder, v.id, v.recency, v.capacity, v.traffic, v.delay, v.drive);
  }
  void operator()(RttCount& v) {
    fields(coder, v.bucket, v.count);
    if (v.bucket >= kRttBuckets) spoil();
  }
  void operator()(FlowView& v) {
    fields(coder, v.client, v.volume, v.session, v.box, v.port, v.drive, v.reads, v.writes, v.delay,
           v.rtts);
  }
  void operator()(Offender::Offence& v) {
    choice(coder, v, Offender::Offence::kTakesMore, Offender::Offence::kTellsNothing);
  }
  void operator()(Offender& v) {
    fields(coder, v.volume, v.client, v.offence, v.drive, v.used, v.granted);
  }
  void operator()(View& v) {
    fields(coder, v.controller, v.at, v.boxes, v.components, v.flows, v.offenders);
    // Who looks something up in it relies on that.
    if (!std::ranges::is_sorted(v.components, {}, &ComponentView::id)) spoil();
  }

  void operator()(AttachRequest& v) { fields(coder, v.client, v.incarnation, v.sessions); }
  void operator()(AttachReply& v) { fields(coder, v.controller, v.number, v.boxes, v.sessions); }
  void operator()(ReportRequest& v) {
    fields(coder, v.client, v.controller, v.incarnation, v.number, v.sent, v.dropped, v.vectors);
  }
  void operator()(Recency& v) { fields(coder, v.id, v.counter, v.own); }
  void operator()(ReportReply& v) { fields(coder, v.number, v.late, v.refused, v.changed); }
  void operator()(SyncRequest& v) { field(coder, v.components); }
  void operator()(SyncReply& v) { fields(coder, v.controller, v.at, v.components); }
  void operator()(QueryRequest& v) { field(coder, v.volume); }
  void operator()(Watch& v) { fields(coder, v.drive, v.below); }
  void operator()(WatchRequest& v) { field(coder, v.watches); }
  void operator()(Event& v) { fields(coder, v.watch, v.is_below, v.crossings, v.now); }

  void spoil() {
    if constexpr (Coder::kReads) coder.spoil();
  }
};

}  // namespace

std::string encode(const AttachRequest& message) { return encode_message<Layout>(message); }
std::string encode(const AttachReply& message) { return encode_message<Layout>(message); }
std::string encode(const ReportRequest& message) { return encode_message<Layout>(message); }
std::string encode(const ReportReply& message) { return encode_message<Layout>(message); }
std::string encode(const SyncRequest& message) { return encode_message<Layout>(message); }
std::string encode(const SyncReply& message) { return encode_message<Layout>(message); }
std::string encode(const QueryRequest& message) { return encode_message<Layout>(message); }
std::string encode(const View& message) { return encode_message<Layout>(message); }
std::string encode(const WatchRequest& message) { return encode_message<Layout>(message); }
std::string encode(const Event& message) { return encode_message<Layout>(message); }

template <class T>
Result<T> decode(Bytes body) {
  std::optional<T> message = decode_message<Layout, T>(body);
  if (!message) return fail(Errc::kCorrupt, "a message about the view makes no sense");
  return *std::move(message);
}

template Result<AttachRequest> decode(Bytes body);
template Result<AttachReply> decode(Bytes body);
template Result<ReportRequest> decode(Bytes body);
template Result<ReportReply> decode(Bytes body);
template Result<SyncRequest> decode(Bytes body);
template Result<SyncReply> decode(Bytes body);
template Result<QueryRequest> decode(Bytes body);
template Result<View> decode(Bytes body);
template Result<WatchRequest> decode(Bytes body);
template Result<Event> decode(Bytes body);

}  // namespace cairn::view
