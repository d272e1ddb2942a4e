// SPDX-License-Identifier: Apache-2.0
#include "drive/mirror.h"

#include <cstdio>
#include <random>

Task<Result<void>>
Mirror::read(Lba first, Buffer& out) {
  // Declared in the header beside this file, so this is not the system's.
  if (open()) co_await write(first, out);
  co_await stream_.read(out);
  auto sent = co_await peer->write(out);
  auto peer = co_await env_.connect(address);
  auto now = env_.clock().now() + env_.time(1);
  auto other = this->listen(4420);
  auto file = File::open("name");
  auto bound = std::bind(&Mirror::read, this);
  auto send = [](int value) { return value; };
  send(3);
  char text[] = "std::thread t(open(read(0)));  // sleep(1)";
  char raw[] = R"(
    fopen("x", "r"); std::mutex m;
  )";
  int million = 1'000'000;
  /* usleep(1);
     rand(); */
  std::snprintf(text, sizeof(text), "%d", million);
}

Task<void> Mirror::rest() { co_await task::sleep_for(core_, second); }
