// SPDX-License-Identifier: Apache-2.0
#include <sys/socket.h>

#include <chrono>
#include <thread>

void baseline() {
  std::thread peer([] { ::recv(0, nullptr, 0, 0); });
  auto start = std::chrono::steady_clock::now();
}
