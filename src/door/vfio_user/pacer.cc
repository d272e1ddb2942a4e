// SPDX-License-Identifier: Apache-2.0
#include "door/vfio_user/pacer.h"

#include <algorithm>

namespace cairn::door::vfio_user {

void Linger::found_asleep(Time now, Duration gap) {
  // A glance may be late by another one.
  if (gap > kLingerMax + 2 * kGlance) {  // there was nothing to do
    length_ = kLingerMin;
    misses_ = 0;
  } else if (length_ < kLingerMax && gap <= kLingerMax + kGlance) {
    if (now >= tries_from_) length_ = std::min(2 * length_, kLingerMax);
  } else if (length_ > kLingerMin && ++misses_ == kMissesMax) {
    length_ = kLingerMin;
    misses_ = 0;
    tries_from_ = now + kPause;
  }
}

void Glances::add(Pacer& pacer) {
  waiting_.push_back(pacer);
  // Those that doze are not in a hurry; this one is.
  const Time next = env_.now() + kGlance;
  if (timer_.is_armed() && timer_.when() > next) env_.disarm(timer_);
  if (!timer_.is_armed()) env_.arm(timer_, next);
}

void Glances::on_time(task::Timer& timer) { static_cast<GlanceTimer&>(timer).self->look(); }

void Glances::look() {
  ++count_;
  bool all_doze = true;
  waiting_.for_each([&](Pacer& pacer) {
    if (pacer.glance()) return;
    all_doze = all_doze && pacer.is_dozing();
  });
  if (waiting_.empty() || timer_.is_armed()) return;
  env_.arm(timer_, env_.now() + (all_doze ? kRareGlance : kGlance));
}

Pacer::Pacer(env::Env& env, env::Sharing& sharing, Glances& glances, Device& device, Pace pace)
    : env_(env), sharing_(sharing), glances_(glances), device_(device), pace_(pace) {}

Pacer::~Pacer() { rest(); }

void Pacer::wake() {
  if (pace_ == Pace::kInterrupt || !device_.is_enabled()) return;
  last_work_ = env_.now();
  begin_polling();
}

void Pacer::ring() {
  if (device_.is_enabled()) device_.poll();
  wake();
}

void Pacer::rest() {
  ListHook<Glances>::unlink();
  if (!is_polling_) return;
  is_polling_ = false;
  sharing_.remove_poller(*this);
}

void Pacer::begin_polling() {
  ListHook<Glances>::unlink();
  if (is_polling_) return;
  is_polling_ = true;
  sharing_.add_poller(*this);
}

bool Pacer::poll() {
  if (device_.poll()) {
    const Time now = env_.now();
    linger_.found_awake(now - last_work_);
    last_work_ = now;
    return true;
  }
  if (!device_.is_enabled()) {
    rest();
  } else if (pace_ == Pace::kAdaptive &&
             env_.now() - last_work_ > (device_.is_busy() ? kLingerBusy : linger_.length())) {
    rest();
    glances_.add(*this);
  }
  return false;
}

bool Pacer::glance() {
  if (!device_.poll()) return false;
  const Time now = env_.now();
  linger_.found_asleep(now, now - last_work_);
  last_work_ = now;
  begin_polling();
  return true;
}

}  // namespace cairn::door::vfio_user
