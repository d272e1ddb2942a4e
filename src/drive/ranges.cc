// SPDX-License-Identifier: Apache-2.0
#include "drive/ranges.h"

namespace cairn::drive {

void Ranges::Hold::start() {
  if (mode_ == Mode::kExclusive) ++ranges_.exclusive_;
  if (ranges_.exclusive_ > 0 && ranges_.must_wait(*this)) {
    ranges_.waiting_.push_back(*this);
    return;
  }
  ranges_.active_.push_back(*this);
  complete({});
}

void Ranges::Hold::cancel() {
  ListHook<WaitingTag>::unlink();
  if (mode_ == Mode::kExclusive) --ranges_.exclusive_;
  complete(cancelled());
  ranges_.serve();
}

void Ranges::Hold::leave() {
  if (!ListHook<ActiveTag>::is_linked()) return;
  ListHook<ActiveTag>::unlink();
  if (mode_ == Mode::kExclusive) --ranges_.exclusive_;
  if (!ranges_.waiting_.empty()) ranges_.serve();
}

bool Ranges::must_wait(const Hold& hold) {
  bool conflict = false;
  active_.for_each([&](Hold& other) { conflict = conflict || hold.conflicts(other); });
  waiting_.for_each([&](Hold& other) { conflict = conflict || hold.conflicts(other); });
  return conflict;
}

// Lets in, oldest first, whoever conflicts with no holder and with nobody who waits longer.
void Ranges::serve() {
  List<Hold, WaitingTag> still;
  while (Hold* hold = waiting_.pop_front()) {
    bool conflict = false;
    active_.for_each([&](Hold& other) { conflict = conflict || hold->conflicts(other); });
    still.for_each([&](Hold& other) { conflict = conflict || hold->conflicts(other); });
    if (conflict) {
      still.push_back(*hold);
    } else {
      active_.push_back(*hold);
      hold->complete({});
    }
  }
  while (Hold* hold = still.pop_front()) waiting_.push_back(*hold);
}

}  // namespace cairn::drive
