// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstdlib>

void fail(const char* what) {
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}
