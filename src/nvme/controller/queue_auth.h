// SPDX-License-Identifier: Apache-2.0
// QueueAuth: where one queue stands with authentication, and until when it has to be done.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/units.h"
#include "env/address.h"
#include "env/env.h"
#include "nvme/auth/auth_responder.h"
#include "task/timer.h"

namespace cairn::nvme {

// On the control core, as long as its queue is connected.
class QueueAuth {
 public:
  // `expired` is called when the deadline has passed.
  QueueAuth(env::Env& env, AuthResponder responder_of_queue, env::Address from,
            std::function<void(QueueAuth&)> expired)
      : responder(std::move(responder_of_queue)),
        peer(std::move(from)),
        env_(env),
        expired_(std::move(expired)),
        timer_(&QueueAuth::on_time) {
    timer_.self = this;
  }
  ~QueueAuth() { env_.disarm(timer_); }
  QueueAuth(const QueueAuth&) = delete;
  QueueAuth& operator=(const QueueAuth&) = delete;

  void finish_within(Duration limit) {
    env_.disarm(timer_);
    env_.arm(timer_, env_.now() + limit);
  }
  void finished() { env_.disarm(timer_); }

  AuthResponder responder;
  env::Address peer;
  bool is_open = false;     // commands other than authentication are executed
  bool is_busy = false;     // a message is being taken
  bool has_failed = false;  // and that was noted: the queue ends soon

 private:
  struct DeadlineTimer : task::Timer {
    using Timer::Timer;
    QueueAuth* self = nullptr;
  };
  static void on_time(task::Timer& timer) {
    QueueAuth& self = *static_cast<DeadlineTimer&>(timer).self;
    self.expired_(self);
  }

  env::Env& env_;
  std::function<void(QueueAuth&)> expired_;
  DeadlineTimer timer_;
};

}  // namespace cairn::nvme
