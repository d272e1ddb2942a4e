// SPDX-License-Identifier: Apache-2.0
#include <iostream>

void say() {
  printf("a");
  std::fprintf(stderr, "b");
  std::cerr << "c";
  fmt::print("d");
}
