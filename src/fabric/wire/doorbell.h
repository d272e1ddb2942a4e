// SPDX-License-Identifier: Apache-2.0
// Doorbell: when what a lane has gathered leaves, and how much of it in one send.
//
// A lane is a queue and its connection. Its messages (commands of a host, responses of a target)
// wait for each other so that one system call, one segment and one wake-up of the peer serve many
// of them: a caravan. The doorbell says when the caravan leaves.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/units.h"
#include "env/env.h"
#include "task/timer.h"

namespace cairn::fabric {

struct DoorbellOptions {
  enum class Mode : uint8_t {
    kOff,       // every message leaves at once in a send of its own: plain NVMe/TCP
    kFixed,     // i10's: at the count, at the size, or when the oldest has waited for `delay`
    kAdaptive,  // the same, but waits only while the peer has enough other work of ours, and what
                // came meanwhile goes along
  };
  Mode mode = Mode::kAdaptive;
  uint16_t count = 16;         // messages of one caravan; adaptive: that are worth a send
  uint32_t bytes = 64 * 1024;  // that are worth a send; what waits beyond them goes along
  Duration delay = 50_us;      // the longest a message waits for others

  bool operator==(const DoorbellOptions&) const = default;
};

std::string_view name(DoorbellOptions::Mode mode);
std::optional<DoorbellOptions::Mode> parse_batching(std::string_view text);

enum class RingCause : uint8_t {
  kCount,    // the caravan is full
  kBytes,    // likewise
  kTimer,    // the oldest message has waited long enough
  kNoDelay,  // somebody waits for just this message
  kIdle,     // the peer has too little other work to wait for more (adaptive)
  kAlone,    // batching is off
};
inline constexpr size_t kRingCauses = static_cast<size_t>(RingCause::kAlone) + 1;
std::string_view name(RingCause cause);

// What a lane has done so far. A caravan's size is the number of messages in one send.
struct LaneCounters {
  static constexpr size_t kSizes = 8;  // 1, 2, 3-4, 5-8, 9-16, 17-32, 33-64, more
  uint64_t sends = 0;
  uint64_t messages = 0;
  uint64_t bytes = 0;
  uint64_t timers = 0;  // times that a message had to wait for others and for the clock
  std::array<uint64_t, kRingCauses> rings{};
  std::array<uint64_t, kSizes> sizes{};

  void note_send(size_t count, size_t size);
  void add(const LaneCounters& other);
};

// One per direction of a connection, on its core. Its owner tells it of every message before it
// may leave and asks how much may leave in one send.
class Doorbell {
 public:
  // Called when the bell rings by itself (timer); the owner then sends.
  using Ring = void (*)(void* owner);
  Doorbell(env::Env& env, const DoorbellOptions& options, Ring ring, void* owner);
  ~Doorbell();
  Doorbell(const Doorbell&) = delete;
  Doorbell& operator=(const Doorbell&) = delete;

  // A message of `bytes` joins the caravan while `others` of ours are with the peer. True: the
  // bell rings, and all that waits is to leave.
  bool add(size_t bytes, bool no_delay, size_t others);
  // The peer has answered: only `others` are left there. True as above.
  bool reconsider(size_t others);
  // Whether what waits may leave. Stays so until all of it has left.
  bool is_rung() const { return rung_; }

  // What one send may take. Large messages share one: the kernel is entered once for them too, but
  // the first of them must not wait for the copying of many.
  bool takes_more(size_t messages, size_t bytes) const {
    return messages == 0 || (messages < send_max() && bytes < kSendMax);
  }
  // So much left in one send, and with it all that waited, or not.
  void left(size_t messages, size_t bytes, bool all);
  // Nothing will leave any more.
  void silence();

  const LaneCounters& counters() const { return counters_; }

 private:
  static constexpr size_t kSendMax = 512_KiB;
  struct DelayTimer : task::Timer {
    using Timer::Timer;
    Doorbell* bell = nullptr;
  };
  static void on_delay(task::Timer& timer);
  bool ring(RingCause cause);
  size_t waiting_max(size_t others) const;
  size_t send_max() const;

  env::Env& env_;
  const DoorbellOptions options_;
  const size_t count_max_;
  Ring ring_;
  void* owner_;
  size_t waiting_ = 0;
  size_t waiting_bytes_ = 0;
  size_t in_flight_ = 0;  // that wait, and others that are with the peer, when last told
  bool rung_ = false;
  DelayTimer timer_;
  LaneCounters counters_;
};

}  // namespace cairn::fabric
