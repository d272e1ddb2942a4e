// SPDX-License-Identifier: Apache-2.0
#include "fabric/host/continuity.h"

#include <algorithm>

#include "base/rng.h"

namespace cairn::fabric {

void Continuity::changed(uint64_t opening) {
  ++changes_;
  if (is_known_ && opening != known_.opening) lose();
}

Result<void> Continuity::flushed(const Mark& mark, bool knows_losses) {
  if (mark.told < losses_ && !knows_losses) {
    told_ = losses_;
    return fail(Errc::kIo, "the target was restarted: writes that were not flushed may be lost");
  }
  covered_ = std::max(covered_, mark.changes);
  return {};
}

void Continuity::lose() {
  if (changes_ == covered_) return;
  covered_ = changes_;
  ++losses_;
}

bool Continuity::is_same_medium(const drive::Incarnation& now) const {
  return known_.medium == 0 || now.medium == 0 || now.medium == known_.medium;
}

void Continuity::reached(const drive::Incarnation& now) {
  if (!is_known_) {
    is_known_ = true;
    known_ = now;
    first_opening_ = now.opening;
    is_out_of_touch_ = false;
    return;
  }
  const bool tells = known_.opening != 0 && now.opening != 0;
  if (tells ? now.opening != known_.opening : is_out_of_touch_) lose();
  if (now.medium != 0) known_.medium = now.medium;
  known_.opening = now.opening;
  is_out_of_touch_ = false;
  is_replaced_ = false;
}

drive::Incarnation Continuity::incarnation() const {
  const uint64_t medium = is_replaced_ ? mix64(known_.medium + 1) | 1 : known_.medium;
  // Whoever remembers it asks a target that went on while this process did not.
  const uint64_t local = known_.opening == 0 ? 0 : mix64(known_.opening) | 1;
  return {.medium = medium, .opening = mix64(first_opening_ + losses_) | 1, .local_opening = local};
}

}  // namespace cairn::fabric
