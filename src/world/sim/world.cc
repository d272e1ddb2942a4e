// SPDX-License-Identifier: Apache-2.0
#include "world/sim/world.h"

#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/rng.h"
#include "base/units.h"

namespace cairn::sim {

Rng World::make_rng(std::string_view purpose, uint64_t number) const {
  uint64_t hash = mix64(options_.seed) ^ mix64(~number);
  for (const char letter : purpose) hash = (hash ^ static_cast<uint8_t>(letter)) * 0x100000001b3;
  return Rng(hash);
}

bool World::step(Time limit) {
  if (queue_.empty() || queue_.next() > limit) return false;
  const EventQueue::Due due = queue_.pop();
  if (due.when > now_) {
    now_ = due.when;
    same_time_ = 0;
  }
  CHECK(++same_time_ < kSameTimeMax, "time stands still: programs spin");
  if (EventQueue* held = due.event->origin().held; held != nullptr) {
    held->insert(due);
    return true;
  }
  ++events_run_;
  trace_.event(due);
  due.event->kind().run(*due.event);
  return true;
}

void World::advance_to(Time when) {
  CHECK(when >= now_ && queue_.next() >= when);
  now_ = when;
}

}  // namespace cairn::sim
