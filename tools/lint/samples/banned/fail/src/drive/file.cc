// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <unistd.h>

#include <fstream>

long load() {
  int fd = open("/etc/passwd", O_RDONLY);
  if (fd < 0) return read(fd, data, size);
  else write(fd, data, size);
  std::ifstream in("file");
  std::filesystem::path path;
  auto* file = std::fopen("file", "r");
  ::close(fd);
#ifdef DIRECT
  pwrite(fd, data, size, 0);
#endif
  return pread(fd, data, size, 0);
}
