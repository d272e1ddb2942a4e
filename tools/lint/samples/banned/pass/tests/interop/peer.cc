// SPDX-License-Identifier: Apache-2.0
#include <sys/socket.h>  // lint: allow(the peer is a plain program)

int peer() {
  return ::socket(AF_INET, SOCK_STREAM, 0);  // lint: allow(the peer is a plain program)
}
