// SPDX-License-Identifier: Apache-2.0
// ClientState: what the door knows of a connection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/list.h"
#include "base/units.h"
#include "task/cancel.h"

namespace cairn::door::resp {

struct Command;

// A command that waits for EXEC, with its own words.
struct QueuedCommand {
  const Command* command = nullptr;
  std::vector<std::string> args;
};

// A key that a transaction depends on, and its version when WATCH was called; 0: it was not there.
struct WatchedKey {
  std::string key;
  uint64_t version = 0;
};

struct Transaction {
  bool is_open = false;    // between MULTI and EXEC
  bool is_broken = false;  // a command could not be queued
  std::vector<QueuedCommand> queue;
  std::vector<WatchedKey> watched;
  size_t bytes = 0;  // of both
};

// Lives as long as the connection, on the door's core.
struct ClientState : ListHook<> {
  enum class Replies : uint8_t { kOn, kOff, kSkipNext, kSkipThis };

  uint64_t id = 0;
  std::string name;
  std::string address;        // the client's
  std::string local_address;  // ours
  Time since;
  Time last_used;
  std::string_view last_command = "NULL";
  int protocol = 2;
  bool is_authenticated = false;
  bool is_secure = false;
  bool is_exempt = false;  // CLIENT NO-EVICT
  Replies replies = Replies::kOn;
  Transaction transaction;
  std::vector<bool> written_slots;  // of a cluster, by what this client was told; none: no slot

  // The connection ends when all replies so far were sent.
  bool is_leaving = false;
  // Ends it at once, whatever it waits for.
  task::CancelSource end;

  size_t bytes = 0;  // of memory that requests and replies have, about
  size_t request_bytes = 0;
  size_t reply_bytes = 0;
};

}  // namespace cairn::door::resp
