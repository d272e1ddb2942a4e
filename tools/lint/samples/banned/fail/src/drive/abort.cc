// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>

void stop() {
  abort();
  std::exit(1);
  __builtin_trap();
}
