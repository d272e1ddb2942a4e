// SPDX-License-Identifier: Apache-2.0
// Pacer: when a core looks at the doorbells of a device.
//
//   polling    again and again while the device is enabled; the core never sleeps
//   adaptive   again and again while there is work and for as long after as Linger says, with
//              commands in flight for kLingerBusy; then every kGlance, after kDoze without any work
//              every kRareGlance. One timer of the core serves all devices.
//   interrupt  never: the client says when
#pragma once

#include <memory>

#include "base/list.h"
#include "base/units.h"
#include "door/common/waiting.h"
#include "door/vfio_user/device.h"
#include "env/env.h"
#include "env/sharing.h"
#include "task/timer.h"

namespace cairn::door::vfio_user {

using Pace = door::Waiting;

inline constexpr Duration kLingerMin = 50_us;
// Who sleeps finds work half a glance late on average: looking for longer costs more than that.
inline constexpr Duration kLingerMax = 500_us;
inline constexpr Duration kLingerBusy = 1_ms;
inline constexpr Duration kGlance = 1_ms;
inline constexpr Duration kDoze = 1_s;
inline constexpr Duration kRareGlance = 5_ms;

// How long it pays to look for more work after some was found. A guest that has one command at a
// time needs a while between an answer and its next command, an emulated one more than kLingerMin;
// whoever sleeps then is late for each of them. So each time that work came soon after the core
// went to sleep it looks twice as long the next time, and for kLingerMin again when that finds
// nothing.
class Linger {
 public:
  Duration length() const { return length_; }
  // While the core looked, so long after the last work.
  void found_awake(Duration gap) {
    if (gap > kLingerMin) misses_ = 0;
  }
  // By a glance.
  void found_asleep(Time now, Duration gap);

 private:
  static constexpr int kMissesMax = 4;
  static constexpr Duration kPause = 100_ms;  // until it is tried again

  Duration length_ = kLingerMin;
  int misses_ = 0;  // in a row, with length_ at its maximum
  Time tries_from_;
};

class Pacer;

// The devices of a core that are looked at now and then. Outlives their pacers.
class Glances {
 public:
  explicit Glances(env::Env& env) : env_(env), timer_(&Glances::on_time) { timer_.self = this; }

  void add(Pacer& pacer);
  // How often the timer fired.
  uint64_t count() const { return count_; }

 private:
  struct GlanceTimer : task::Timer {
    using Timer::Timer;
    Glances* self = nullptr;
  };
  static void on_time(task::Timer& timer);
  void look();

  env::Env& env_;
  GlanceTimer timer_;
  List<Pacer, Glances> waiting_;
  uint64_t count_ = 0;
};

// One device's, on its core. The device outlives it.
class Pacer final : private env::Poller, public ListHook<Glances> {
 public:
  Pacer(env::Env& env, env::Sharing& sharing, Glances& glances, Device& device, Pace pace);
  ~Pacer();
  Pacer(const Pacer&) = delete;
  Pacer& operator=(const Pacer&) = delete;

  // The device may have been enabled, or have work soon: from now on it is looked at as its pace
  // has it. At an interrupt's pace that is not at all.
  void wake();
  // The client says that there is work: it is looked at now, and then as by wake().
  void ring();
  // Not until it is woken again.
  void rest();

 private:
  friend class Glances;
  bool poll() override;
  // True: there was work, and it is polled again from now on.
  bool glance();
  bool is_dozing() const { return env_.now() - last_work_ > kDoze; }
  void begin_polling();

  env::Env& env_;
  env::Sharing& sharing_;
  Glances& glances_;
  Device& device_;
  const Pace pace_;
  bool is_polling_ = false;
  Time last_work_;
  Linger linger_;
};

}  // namespace cairn::door::vfio_user
