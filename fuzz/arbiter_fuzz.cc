// SPDX-License-Identifier: Apache-2.0
// Any bytes as bodies of what clients and operators say to arbiters, and hear from them: what is
// understood has one form only, so that encoding it again gives the same bytes.
#include <cstddef>
#include <cstdint>
#include <span>

#include "arbiter/arbiter_wire_format.h"
#include "base/bytes.h"
#include "base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cairn;
  const Bytes bytes = std::as_bytes(std::span(data, size));
  if (bytes.empty()) return 0;
  const auto call =
      static_cast<arbiter::Call>(std::to_integer<uint8_t>(bytes[0]) % arbiter::kLastCall + 1);
  const Bytes body = bytes.subspan(1);
  const Result<arbiter::Request> request = arbiter::decode_request(call, body);
  if (request) {
    CHECK(arbiter::call_of(*request) == call);
    CHECK(arbiter::encode(*request) == as_text(body));
  }
  const Result<arbiter::Outcome> outcome = arbiter::decode_outcome(call, body);
  if (outcome) CHECK(arbiter::encode(call, *outcome) == as_text(body));
  return 0;
}
