// SPDX-License-Identifier: Apache-2.0
#include <liburing.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

int talk() {
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(fd, &address, sizeof(address)) < 0 || listen(fd, 5) < 0) return -1;
  while (ready && poll(&set, 1, 0)) {
  }
  io_uring_queue_init(8, &ring, 0);
  return ::recv(fd, data, size, 0);
}
