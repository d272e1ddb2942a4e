// SPDX-License-Identifier: Apache-2.0
// Any bytes as bodies of what clients and a market say to each other: what is understood has one
// form only. Then the same bytes as what a client that lies asks of an auction that others use: the
// others' shares stay what they are.
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "base/check.h"
#include "share/auction.h"
#include "share/slices.h"
#include "share/trade_wire_format.h"

namespace {

using namespace cairn;
using namespace cairn::share;

template <class T>
Result<T> understood(Bytes body) {
  Result<T> message = decode<T>(body);
  if (message) CHECK(encode(*message) == as_text(body));
  return message;
}

constexpr uint64_t kRate = 100'000'000;

// An honest tenant that always wants more, beside one that says these things each epoch.
void trade(const TradeRequest& lies) {
  Auction auction(1, {});
  auction.set_drive(DriveId(0), {.name = "d0", .rate = kRate, .pipe = kRate, .guaranteed = kRate});
  auction.set_port(PortId(0), "port", 10 * kRate);
  const auto places = Auction::behind(PortId(0), {DriveId(0)});
  const TenantId honest = auction.open("honest", {}, places).value();
  const TenantId liar = auction.open("liar", {}, places).value();
  Slices slices{DriveId(0)};
  slices.set_waiting(kRate, 0, kRate);
  uint64_t used = 0;
  Time now{};
  for (int step = 0; step < 400; ++step) {
    now = now + 1_ms;
    if (step % 5 == 0) {
      for (SliceRequest each : lies.requests) {
        each.drive = DriveId(0);
        if (each.auction % 2 == 0) each.auction = 1;
        if (each.epoch % 2 == 0) each.epoch = auction.epoch();
        CHECK(auction.request(liar, each, now).has_value());
      }
    }
    if (const auto request = slices.request(now)) {
      slices.granted(auction.request(honest, *request, now).value(), now);
    }
    while (slices.take(65536, now)) {
      slices.done();
      if (step >= 200) used += 65536;
    }
  }
  // Half of the drive, less what an epoch's border takes.
  CHECK(used >= kRate * 2 / 10 * 45 / 100);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Bytes bytes = std::as_bytes(std::span(data, size));
  if (bytes.empty()) return 0;
  const Bytes body = bytes.subspan(1);
  switch (std::to_integer<uint8_t>(bytes[0]) % 5) {
    case 0:
      (void)understood<JoinRequest>(body);
      break;
    case 1:
      (void)understood<JoinReply>(body);
      break;
    case 2: {
      const Result<TradeRequest> request = understood<TradeRequest>(body);
      if (request && request->requests.size() <= 8) trade(*request);
      break;
    }
    case 3:
      (void)understood<TradeReply>(body);
      break;
    default:
      (void)understood<LeaveRequest>(body);
      break;
  }
  return 0;
}
