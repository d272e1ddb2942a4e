// SPDX-License-Identifier: Apache-2.0
// Any bytes as a kept event, and as a time: understood, and the same when it is written again, or
// left out.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "server/events/event_format.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cairn::server;
  const std::string_view line(reinterpret_cast<const char*>(data), size);
  if (const std::optional<Event> event = decode_event(line)) {
    const std::string again = encode_event(*event);
    CHECK(again.size() <= kEventLineMax && again.find('\n') == std::string::npos);
    CHECK(decode_event(again) == *event);
    CHECK(!event_line(*event).empty());
  }
  if (const auto time = parse_time(line)) CHECK(parse_time(time_text(*time)) == *time);
  // Whatever a process tells becomes an event that can be read again.
  Event told{.id = 1, .what = std::string(line), .action = std::string(line)};
  told.subject = line;
  fit(told);
  CHECK(decode_event(encode_event(told)) == told);
  return 0;
}
