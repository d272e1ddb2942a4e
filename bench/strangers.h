// SPDX-License-Identifier: Apache-2.0
// Strangers: hostile connections to a box, from a thread of this process.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "bench/stranger_script.h"
#include "env/address.h"
#include "world/posix/fd.h"

namespace cairn::bench {

inline constexpr uint32_t kStrangersMax = 1000;

// Raises the limit of open files of this process, and of those it starts from now on, as far as
// kStrangersMax connections on either end need it. Gives the limit that now holds. kLimit:
// the hard limit is lower.
Result<uint64_t> make_room_for_strangers();

struct StrangersOptions {
  env::Address to;     // of IPv4
  uint32_t count = 0;  // kStrangersMax at most (CHECK)
  int cpu = -1;        // of their thread
};

// Each is one of the kinds of stranger_script.h. Every kTurn it sends more if its kind does, and
// comes again if the box has ended it. They share kAddresses loopback addresses, none of them
// 127.0.0.1, so that the box takes all of them in (ConnectionLimits). They end with this object.
class Strangers {
 public:
  static constexpr Duration kTurn = 250_ms;
  static constexpr uint8_t kAddresses = 8;

  // All have connected and sent as much of their opening as the kernel took. Errors: those of the
  // sockets.
  static Result<std::unique_ptr<Strangers>> start(const StrangersOptions& options);
  ~Strangers();

  // Ends their turns. Gives how many of their connections the box has not ended.
  uint32_t stop();

 private:
  struct Stranger {
    posix::Fd socket;
    size_t sent = 0;  // of its opening
  };
  explicit Strangers(const StrangersOptions& options);
  Result<void> dial(uint32_t index);
  void speak(uint32_t index, const std::vector<std::byte>& bytes, size_t& sent);
  void take_turn(uint32_t index);
  void take_turns();

  const StrangersOptions options_;
  std::array<StrangerScript, kStrangerKinds> scripts_;
  std::vector<Stranger> all_;
  std::atomic<bool> stopping_ = false;
  std::jthread thread_;
};

}  // namespace cairn::bench
