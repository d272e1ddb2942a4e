// SPDX-License-Identifier: Apache-2.0
// Any bytes as bodies of the metadata protocol: what is understood has one form only, so that
// encoding it again gives the same bytes, and any request within the limits is answered.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>

#include "base/bytes.h"
#include "base/check.h"
#include "meta/state.h"
#include "meta/wire_format.h"

namespace cairn::meta {
namespace {

void check_request(Call call, Bytes body) {
  const Result<CallArgs> request = decode_args(call, body);
  if (!request) return;
  CHECK(call_of(*request) == call);
  CHECK(encode(*request) == as_text(body));
  const auto* batch = std::get_if<Batch>(&*request);
  if (batch == nullptr || !check_batch(*batch)) return;
  State state;
  Mutation mutation;
  if (state.commit(*batch, mutation)) CHECK(state.revision().value() <= 2);
}

void check_answer(Call call, Bytes body) {
  const Result<Answer> answer = decode_answer(call, body);
  if (answer) CHECK(encode(*answer) == as_text(body));
}

}  // namespace
}  // namespace cairn::meta

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cairn;
  const Bytes bytes = std::as_bytes(std::span(data, size));
  if (bytes.empty()) return 0;
  const auto call =
      static_cast<meta::Call>(std::to_integer<uint8_t>(bytes[0]) % meta::kLastCall + 1);
  meta::check_request(call, bytes.subspan(1));
  meta::check_answer(call, bytes.subspan(1));
  return 0;
}
