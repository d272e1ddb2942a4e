// SPDX-License-Identifier: Apache-2.0
// Event: something about the health of a process and what it serves changed; and its form, a JSON
// object on one line, in files, at control sockets, over HTTP and for commands:
//
//   {"schema_version":1,"id":7,"time":"2026-11-19T20:01:02.345Z","severity":"warning",
//    "role":"serve","kind":"drive","subject":"safe","health":"degraded","code":"leg_lost",
//    "state":"began","place":"0.1","what":"mirror (layer 0), ...","action":"cairn drive show safe"}
//
// Readers pass over fields that they do not know.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/units.h"
#include "drive/drive.h"
#include "server/control/control_format.h"

namespace cairn::server {

inline constexpr int kEventSchema = 1;
inline constexpr size_t kEventNameMax = 512;   // of each name in it
inline constexpr size_t kEventWhatMax = 2048;  // of what, and of what to do
// With every letter written as \uXXXX, and all else that there is.
inline constexpr size_t kEventLineMax = 64 << 10;
inline constexpr uint64_t kEventIdMax = 1ULL << 53;  // programs keep it in a double

struct Event {
  enum class State : uint8_t {
    kBegan,    // something is wrong now
    kChanged,  // it is worse, or better
    kOver,     // it is right again
    kNoted,    // it happened, and has no end
  };
  uint64_t id = 0;  // 1, 2, 3 in each log
  WallTime time;    // whole milliseconds
  drive::Health severity = drive::Health::kOk;
  std::string role;                           // of the process: "up", "serve", "arbiter", "kv"
  std::string kind;                           // of the subject: "drive", "volume", "arbiter", ...
  std::string subject;                        // by name
  drive::Health health = drive::Health::kOk;  // of the subject from now on
  std::string code;                           // for programs: "leg_lost"
  State state = State::kNoted;
  std::string place;   // where in a stack: "0.1"; empty: nowhere
  std::string what;    // for people
  std::string action;  // the command that says more, or helps; empty: none

  friend bool operator==(const Event&, const Event&) = default;
};

// "info", "warning", "error".
std::string_view severity_word(drive::Health severity);
std::string_view state_word(Event::State state);

// RFC 3339 in UTC, with milliseconds: "2026-11-19T20:01:02.345Z".
std::string time_text(WallTime time);
// Any time as RFC 3339 has it, from 1970 to 2199, cut to milliseconds. None: it is not one.
std::optional<WallTime> parse_time(std::string_view text);

// Cuts names and texts that are too long, replaces in them what is not UTF-8, and makes the time
// one of whole milliseconds.
void fit(Event& event);

Json event_json(const Event& event);
// One line without its end; of an event that fits.
std::string encode_event(const Event& event);
// Any bytes. None: they are no event. decode(encode(x)) is x.
std::optional<Event> decode_event(std::string_view line);

// "drive safe is degraded: mirror (layer 0): leg lost: ...".
std::string event_line(const Event& event);

}  // namespace cairn::server
