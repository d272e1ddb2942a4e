// SPDX-License-Identifier: Apache-2.0
// Two threads with a loopback TCP connection between them: the stage of both baselines.
#pragma once

#include <functional>
#include <utility>

#include "base/error.h"
#include "bench/workload.h"

namespace cairn::bench {

// A socket or epoll descriptor, closed with its scope.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor();
  int get() const { return fd_; }
  bool is_valid() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

struct SocketPair {
  Descriptor server;
  Descriptor client;
};
struct PairOptions {
  bool blocking = true;
};
// Connected over 127.0.0.1, TCP_NODELAY set on both.
Result<SocketPair> connect_pair(PairOptions options);

// Runs each side in a thread of its own on its CPU until both have returned. A side that returns
// has closed its socket, so that the other cannot wait for ever. The first error wins.
using Side = std::function<Result<void>(Descriptor socket)>;
Result<void> run_pair(const Load& load, SocketPair pair, const Side& server, const Side& client);

}  // namespace cairn::bench
