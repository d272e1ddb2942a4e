// SPDX-License-Identifier: Apache-2.0
#include "base/check.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace cairn {

namespace {
thread_local CheckHookSlot check_hook;
}

CheckHookSlot set_check_hook(CheckHookSlot slot) { return std::exchange(check_hook, slot); }

void check_failed(const char* file, int line, const char* condition, const char* why) {
  std::fprintf(stderr, "CHECK failed at %s:%d: %s%s%s\n", file, line, condition,
               *why != 0 ? ": " : "", why);
  // Taken off first: a hook that itself fails a CHECK must not recurse.
  CheckHookSlot slot = set_check_hook({});
  if (slot.hook != nullptr) slot.hook(slot.context);
  std::fflush(nullptr);
  std::abort();
}

}  // namespace cairn
