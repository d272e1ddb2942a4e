// SPDX-License-Identifier: Apache-2.0
#include <fstream>
#include <iostream>

int main() {
  std::ifstream config("cairn.toml");
  std::cout << config.rdbuf();
  exit(0);
}
