// SPDX-License-Identifier: Apache-2.0
#include "share/trade_wire_format.h"

#include <optional>
#include <utility>

#include "base/message_coder.h"

namespace cairn::share {

namespace {

template <class Coder>
struct Layout {
  Coder& coder;
  void operator()(SliceRequest& v) {
    fields(coder, v.drive, v.auction, v.epoch, v.has, v.given_back, v.before, v.spent_before, v.now,
           v.next, v.in_permille, v.out_permille);
  }
  void operator()(SliceGrant& v) {
    fields(coder, v.drive, v.auction, v.epoch, v.granted, v.equal, v.left, v.is_learning);
  }
  void operator()(DrivePlace& v) { fields(coder, v.uri, v.drive, v.box, v.port, v.index); }
  void operator()(DriveReport& v) { fields(coder, v.drive, v.write_cost_x10, v.congestion); }

  void operator()(JoinRequest& v) { fields(coder, v.volume, v.client, v.trades); }
  void operator()(JoinReply& v) { fields(coder, v.market, v.ticket, v.places); }
  void operator()(TradeRequest& v) { fields(coder, v.market, v.ticket, v.requests); }
  void operator()(TradeReply& v) { fields(coder, v.grants, v.drives); }
  void operator()(LeaveRequest& v) { fields(coder, v.market, v.ticket); }
};

}  // namespace

std::string encode(const JoinRequest& message) { return encode_message<Layout>(message); }
std::string encode(const JoinReply& message) { return encode_message<Layout>(message); }
std::string encode(const TradeRequest& message) { return encode_message<Layout>(message); }
std::string encode(const TradeReply& message) { return encode_message<Layout>(message); }
std::string encode(const LeaveRequest& message) { return encode_message<Layout>(message); }

template <class T>
Result<T> decode(Bytes body) {
  std::optional<T> message = decode_message<Layout, T>(body);
  if (!message) return fail(Errc::kCorrupt, "a message about shares of drives makes no sense");
  return *std::move(message);
}

template Result<JoinRequest> decode(Bytes body);
template Result<JoinReply> decode(Bytes body);
template Result<TradeRequest> decode(Bytes body);
template Result<TradeReply> decode(Bytes body);
template Result<LeaveRequest> decode(Bytes body);

}  // namespace cairn::share
