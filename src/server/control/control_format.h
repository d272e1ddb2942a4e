// SPDX-License-Identifier: Apache-2.0
// What is said at the control socket of a server: one JSON object per line, a request and its reply
// in turn.
//
//   {"version": 1, "command": "drive.add", "drive": "d3", "nsid": 3, "stack": "mem:size=1G"}
//   {"version": 1, "ok": true, "result": {...}}
//   {"version": 1, "ok": false, "error": "a sentence for the person who asked"}
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/problem.h"
#include "nvme/format/ana_format.h"

namespace cairn::server {

inline constexpr int kControlVersion = 1;
// A longer line ends the conversation.
inline constexpr size_t kControlRequestMax = 64 << 10;
inline constexpr size_t kControlReplyMax = 4 << 20;

using Json = nlohmann::ordered_json;

struct ControlRequest {
  enum class Command : uint8_t {
    kStatus,
    kStats,
    kMetrics,
    kEvents,
    kHostAdd,
    kHostRemove,
    kDriveList,
    kDriveShow,
    kDriveAdd,
    kDriveRemove,
    kDriveEdit,
    kDriveTell,
    kDriveResize,
    kDriveMove,
    kDriveRetry,
    kDriveAna,
    kDoorAdd,
    kDoorRemove,
    kUpStatus,  // of 'cairn up' alone
    kUpDown,
    kUpFail,
  };
  Command command = Command::kStatus;
  std::string nqn;     // empty: the only subsystem, or all where something is listed
  uint32_t nsid = 0;   // drive.add; 0: one that none has had
  std::string drive;   // its name; empty: the only one, or all, or one that is made (drive.add)
  uint64_t size = 0;   // drive.resize, in bytes
  std::string uuid;    // drive.add; empty: made from the names
  uint32_t group = 1;  // drive.add, drive.ana: the ANA group
  bool read_only = false;
  bool format = false;  // drive.add, drive.edit: layers may take drives that are not blank
  std::string host;     // host.*: an NQN, or "any"
  nvme::AnaState state = nvme::AnaState::kOptimized;
  std::string stack;                  // drive.add, drive.edit: a drive or a stack as text
  std::string layer;                  // drive.tell: its path, or its service's name
  std::vector<std::string> args;      // drive.tell
  std::string box;                    // drive.move: a box's control socket; empty: back from there
  std::string via;                    // drive.move: the box's subsystem; empty: as it says itself
  std::string door;                   // door.*: vfio-user or vhost-user
  std::string socket;                 // door.*: its whole path; door.add: and perhaps ,mode=MODE
  uint32_t guest_timeout_ms = 10000;  // door.remove: for the guest to give it back
  uint64_t after = 0;                 // events: those with higher ids,
  std::string after_log;              // if this is the log that they are of; empty: it is
  uint64_t since_ms = 0;              // events: not older than this, since 1970
  uint32_t wait_ms = 0;               // events: how long, when there is none
  uint32_t count = 0;                 // events: at most so many; 0: as many as an answer has
};

// The words for ANA states: optimized, non-optimized, inaccessible, persistent-loss, change.
const std::vector<std::string>& ana_state_names();
std::string_view ana_word(nvme::AnaState state);
Attempt<nvme::AnaState> parse_ana(std::string_view word);

// Without the end of the line. decode(encode(x)) is x.
std::string encode_request(const ControlRequest& request);
// Any bytes. The Problem says what is wrong with them, for whoever wrote them.
Attempt<ControlRequest> decode_request(std::string_view line);

// With the end of the line.
std::string encode_reply(const Attempt<Json>& reply);
// Any bytes: the result, or the Problem the server told, or what is wrong with the bytes.
Attempt<Json> decode_reply(std::string_view line);

// What an answer has under `name`; empty, 0 or an empty list when it has no such thing there.
std::string text_at(const Json& json, const char* name);
uint64_t number_at(const Json& json, const char* name);
bool flag_at(const Json& json, const char* name);
std::vector<Json> list_at(const Json& json, const char* name);

}  // namespace cairn::server
