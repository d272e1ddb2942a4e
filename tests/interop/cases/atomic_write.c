// SPDX-License-Identifier: Apache-2.0
// atomic_write DEVICE BYTES: one write at the start, wholly or not at all, as the kernel promises
// it (RWF_ATOMIC). Prints why not.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#ifndef RWF_ATOMIC
#define RWF_ATOMIC 0x40
#endif

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const size_t size = strtoul(argv[2], NULL, 10);
  void* memory = NULL;
  if (posix_memalign(&memory, 4096, size) != 0) return 2;
  memset(memory, 0x5a, size);
  const int file = open(argv[1], O_RDWR | O_DIRECT);
  const struct iovec piece = {memory, size};
  const ssize_t written = file < 0 ? -1 : pwritev2(file, &piece, 1, 0, RWF_ATOMIC);
  if (written == (ssize_t)size) return 0;
  printf("%s\n", written < 0 ? strerror(errno) : "written in part");
  return 1;
}
