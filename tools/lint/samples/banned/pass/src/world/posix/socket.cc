// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <thread>

int main() {
  std::thread thread([] { ::usleep(1); });
  std::atomic<int> count;
  auto now = std::chrono::steady_clock::now();
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  return open("/dev/null", O_RDONLY) + ::read(fd, nullptr, 0);
}
