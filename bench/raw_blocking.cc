// SPDX-License-Identifier: Apache-2.0
#include <sys/socket.h>

#include <cerrno>
#include <cstddef>
#include <vector>

#include "bench/raw_pair.h"
#include "bench/raw_sockets.h"

namespace cairn::bench {

namespace {

using Memory = std::vector<std::byte>;

Result<void> send_all(int socket, const Memory& message) {
  size_t sent = 0;
  while (sent < message.size()) {
    const ssize_t now_sent =
        ::send(socket, message.data() + sent, message.size() - sent, MSG_NOSIGNAL);
    if (now_sent < 0) {
      if (errno == EINTR) continue;
      return fail(Error::from_errno(errno, "send"));
    }
    sent += static_cast<size_t>(now_sent);
  }
  return {};
}

// One recv: at least a byte; 0 at the end of the stream.
Result<size_t> receive_some(int socket, std::byte* into, size_t size) {
  while (true) {
    const ssize_t got = ::recv(socket, into, size, 0);
    if (got >= 0) return static_cast<size_t>(got);
    if (errno != EINTR) return fail(Error::from_errno(errno, "recv"));
  }
}

// False: the peer finished before the message began.
Result<bool> receive_all(int socket, Memory& message) {
  size_t have = 0;
  while (have < message.size()) {
    const Result<size_t> got = receive_some(socket, message.data() + have, message.size() - have);
    if (!got) return fail(got.error());
    if (*got == 0) {
      if (have == 0) return false;
      return fail(Errc::kClosed, "the peer ended within a message");
    }
    have += *got;
  }
  return true;
}

}  // namespace

Result<Sample> raw_blocking_stream(const Load& load) {
  Result<SocketPair> pair = connect_pair({.blocking = true});
  if (!pair) return fail(pair.error());
  Meter meter(load);
  const CpuMeter cpu;
  const Side server = [&](Descriptor socket) -> Result<void> {
    Memory memory(load.read_size);
    while (true) {
      const Result<size_t> got = receive_some(socket.get(), memory.data(), memory.size());
      if (!got) return fail(got.error());
      if (*got == 0) return {};
      meter.add(*got, now());
    }
  };
  const Side client = [&](Descriptor socket) -> Result<void> {
    const Memory memory(load.write_size, std::byte{0x5A});
    Turns turns(load);
    while (turns.goes_on(now())) {
      if (const Result<void> sent = send_all(socket.get(), memory); !sent) return sent;
    }
    return {};
  };
  if (const Result<void> ran = run_pair(load, std::move(*pair), server, client); !ran) {
    return fail(ran.error());
  }
  const double writes = static_cast<double>(meter.total()) / load.write_size;
  return Sample{meter.per_second(), cpu.us_per(writes), {}};
}

Result<Sample> raw_blocking_pingpong(const Load& load) {
  Result<SocketPair> pair = connect_pair({.blocking = true});
  if (!pair) return fail(pair.error());
  Meter meter(load);
  Sample sample;
  const CpuMeter cpu;
  const Side server = [&](Descriptor socket) -> Result<void> {
    Memory message(load.message_size);
    while (true) {
      const Result<bool> got = receive_all(socket.get(), message);
      if (!got) return fail(got.error());
      if (!*got) return {};
      if (const Result<void> sent = send_all(socket.get(), message); !sent) return sent;
    }
  };
  const Side client = [&](Descriptor socket) -> Result<void> {
    Memory message(load.message_size, std::byte{0x5A});
    Turns turns(load);
    Time before = now();
    while (turns.goes_on(before)) {
      if (const Result<void> sent = send_all(socket.get(), message); !sent) return sent;
      const Result<bool> got = receive_all(socket.get(), message);
      if (!got) return fail(got.error());
      if (!*got) return fail(Errc::kClosed, "the server ended first");
      const Time after = now();
      if (meter.add(1, after)) sample.latency_ns.record(static_cast<uint64_t>((after - before).ns));
      before = after;
    }
    return {};
  };
  if (const Result<void> ran = run_pair(load, std::move(*pair), server, client); !ran) {
    return fail(ran.error());
  }
  sample.per_second = meter.per_second();
  sample.cpu_us_per_operation = cpu.us_per(static_cast<double>(meter.total()));
  return sample;
}

}  // namespace cairn::bench
