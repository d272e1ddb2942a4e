// SPDX-License-Identifier: Apache-2.0
// Any bytes as a line at a control socket, in both directions: understood, or refused in words.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "server/control/control_format.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cairn::server;
  using cairn::Attempt;
  const std::string_view line(reinterpret_cast<const char*>(data), size);
  if (const Attempt<ControlRequest> request = decode_request(line)) {
    const std::string again = encode_request(*request);
    const Attempt<ControlRequest> same = decode_request(again);
    CHECK(same && encode_request(*same) == again);
  } else {
    CHECK(!request.error().text.empty());
  }
  if (const Attempt<Json> reply = decode_reply(line)) {
    CHECK(decode_reply(encode_reply(reply)) == *reply);
    (void)text_at(*reply, "nqn");
    (void)list_at(*reply, "namespaces");
  }
  return 0;
}
