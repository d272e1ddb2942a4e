// SPDX-License-Identifier: Apache-2.0
// CHECK: a promise this program makes to itself, tested in release builds too.
//
// CHECK(condition) or CHECK(condition, "why it always holds"). When it fails the program prints
// file, line and condition and aborts: going on with a broken invariant loses data. Never CHECK
// what came from a network, a disk or a user; that is a Result.
#pragma once

namespace cairn {

// Called with the text of a failed CHECK before the program aborts, so that a simulation can add
// its seed and trace. One hook per thread; returns the one that was set before.
using CheckHook = void (*)(void* context);
struct CheckHookSlot {
  CheckHook hook = nullptr;
  void* context = nullptr;
};
CheckHookSlot set_check_hook(CheckHookSlot slot);

[[noreturn]] void check_failed(const char* file, int line, const char* condition, const char* why);

}  // namespace cairn

#define CAIRN_CHECK_1(condition) CAIRN_CHECK_2(condition, "")
#define CAIRN_CHECK_2(condition, why)                             \
  do {                                                            \
    if (!(condition)) [[unlikely]]                                \
      ::cairn::check_failed(__FILE__, __LINE__, #condition, why); \
  } while (false)
#define CAIRN_CHECK_PICK(a, b, name, ...) name
#define CHECK(...) CAIRN_CHECK_PICK(__VA_ARGS__, CAIRN_CHECK_2, CAIRN_CHECK_1, unused)(__VA_ARGS__)
