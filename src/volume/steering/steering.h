// SPDX-License-Identifier: Apache-2.0
// Steering: what all drives of one volume share when its requests are counted for the view of boxes
// (view/agent.h), ordered (share/scheduler.h) and held to slices (share/slices.h).
//
// A request for which there is room goes at once. One for which there is none waits here, by rank,
// until there is: a grant came, an earlier request of the drive was answered, or an epoch passed in
// which no market answered. Where no market was ever heard of, slices hold nothing back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "drive/drive.h"
#include "env/env.h"
#include "rpc/client.h"
#include "share/scheduler.h"
#include "task/task.h"
#include "task/timer.h"
#include "view/remote_view.h"
#include "volume/steering/route.h"

namespace cairn::volume {

class SteeredDrive;
class Trader;

struct SteeringOptions {
  rpc::ClientOptions client;  // where the arbiters are, and as whom they are asked
  std::string volume;
  // Each can be left out.
  bool notes = true;   // requests are told to the view
  bool orders = true;  // they are sent by rank
  bool holds = true;   // they are held to slices
  bool is_off() const { return !notes && !orders && !holds; }
};

// On one core.
class Steering {
 public:
  // With `orders`, so many bytes are sent to a drive before others wait: while it is quick, and
  // while the view says that it is congested. One request is sent however large it is.
  static constexpr uint64_t kWindow = 4_MiB;
  static constexpr uint64_t kWindowCongested = 512_KiB;

  Steering(env::Env& env, SteeringOptions options);
  ~Steering();
  // Once, before it is destroyed, when its drives are closed.
  task::Task<void> close();

  // The drive at the URI, which `client` opened. The steering outlives it.
  std::unique_ptr<drive::Drive> steer(const std::string& uri, const std::string& client,
                                      std::unique_ptr<drive::Drive> drive);

  struct Counters {
    uint64_t sent = 0;    // reads and writes
    uint64_t waited = 0;  // of these
  };
  const Counters& counters() const { return counters_; }
  // A market was joined.
  bool is_joined() const;

 private:
  friend class SteeredDrive;
  friend class Trader;

  // A read or a write, as a drive gives it.
  struct Io {
    view::IoType type = view::IoType::kRead;
    uint32_t bytes = 0;
  };
  struct WaitTimer : task::Timer {
    using Timer::Timer;
    Steering* steering = nullptr;
  };
  // While something waits, room is looked for so often, whatever else happens.
  static constexpr Duration kLookAgain = 10_ms;
  // Where a slice has room, only not yet.
  static constexpr Duration kLookSoon = 1_ms;

  // Whether it goes now; if so it has its room, and ends by ended().
  bool may_go(Route& route, Io io, Time now) {
    if (route.waiting > 0 || !has_room(route, io, now)) return false;
    route.in_flight += io.bytes;
    ++counters_.sent;
    return true;
  }
  bool has_room(Route& route, Io io, Time now);
  bool fits(const Route& route, uint64_t bytes) const {
    const uint64_t window = route.is_congested ? kWindowCongested : kWindow;
    return !options_.orders || route.in_flight == 0 || route.in_flight + bytes <= window;
  }
  // It does not: it is sent by its drive later.
  void wait(Route& route, SteeredDrive& drive, drive::DriveOp& op, Io io, Time now);
  // One that waits was cancelled.
  void forget(Route& route, drive::DriveOp& op, Io io);
  // It had room, and was not sent after all.
  void give_up(Route& route, Io io);
  // The drive has answered one that was sent at `began`.
  void ended(Route& route, Io io, Time began, bool is_good);
  share::StreamId stream_of(const Route& route, Io io) const;
  void leave_queue(Route& route, Io io, uint64_t cost);
  // When pump() is needed though nothing happens.
  void arm(Time now);
  // Sends what has room.
  void pump();

  env::Env& env_;
  const SteeringOptions options_;
  std::vector<std::unique_ptr<Route>> routes_;
  share::Scheduler scheduler_;
  std::unique_ptr<view::RemoteView> view_;  // null: no drive was opened, or nobody is told
  std::unique_ptr<Trader> trader_;          // null: no drive was opened
  WaitTimer timer_;
  bool is_pumping_ = false;
  bool must_pump_ = false;
  Counters counters_;
};

}  // namespace cairn::volume
