// SPDX-License-Identifier: Apache-2.0
#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstddef>
#include <vector>

#include "bench/raw_pair.h"
#include "bench/raw_sockets.h"

namespace cairn::bench {

namespace {

using Memory = std::vector<std::byte>;

// One side's loop around one socket. Edge triggered and registered once for both directions: no
// epoll_ctl afterwards, and a wait only after the kernel has said "not now".
class Loop {
 public:
  explicit Loop(Descriptor socket) : socket_(std::move(socket)) {}

  Result<void> open() {
    epoll_ = Descriptor(::epoll_create1(EPOLL_CLOEXEC));
    if (!epoll_.is_valid()) return fail(Error::from_errno(errno, "make an epoll descriptor"));
    epoll_event event = {};
    event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, socket_.get(), &event) != 0) {
      return fail(Error::from_errno(errno, "watch a socket"));
    }
    return {};
  }

  // One recv's worth; 0 at the end of the stream.
  Result<size_t> receive_some(std::byte* into, size_t size) {
    while (true) {
      // After a short read the socket was empty: asking again would only be told so.
      if (!readable_) {
        if (const Result<void> waited = wait(); !waited) return fail(waited.error());
        continue;
      }
      const ssize_t got = ::recv(socket_.get(), into, size, 0);
      if (got >= 0) {
        readable_ = static_cast<size_t>(got) == size || ended_;
        return static_cast<size_t>(got);
      }
      if (errno == EAGAIN) {
        readable_ = false;
      } else if (errno != EINTR) {
        return fail(Error::from_errno(errno, "recv"));
      }
    }
  }

  Result<void> send_all(const Memory& message) {
    size_t sent = 0;
    while (sent < message.size()) {
      if (!writable_) {
        if (const Result<void> waited = wait(); !waited) return waited;
        continue;
      }
      const ssize_t now_sent =
          ::send(socket_.get(), message.data() + sent, message.size() - sent, MSG_NOSIGNAL);
      if (now_sent >= 0) {
        sent += static_cast<size_t>(now_sent);
        writable_ = sent == message.size();
      } else if (errno == EAGAIN) {
        writable_ = false;
      } else if (errno != EINTR) {
        return fail(Error::from_errno(errno, "send"));
      }
    }
    return {};
  }

  // False: the peer finished before the message began.
  Result<bool> receive_all(Memory& message) {
    size_t have = 0;
    while (have < message.size()) {
      const Result<size_t> got = receive_some(message.data() + have, message.size() - have);
      if (!got) return fail(got.error());
      if (*got == 0) {
        if (have == 0) return false;
        return fail(Errc::kClosed, "the peer ended within a message");
      }
      have += *got;
    }
    // The whole message is here, and the next one comes only after our answer.
    readable_ = ended_;
    return true;
  }

 private:
  Result<void> wait() {
    epoll_event event = {};
    const int count = ::epoll_wait(epoll_.get(), &event, 1, -1);
    if (count < 0 && errno != EINTR) return fail(Error::from_errno(errno, "epoll_wait"));
    if (count <= 0) return {};
    const bool broken = (event.events & (EPOLLERR | EPOLLHUP)) != 0;
    ended_ = ended_ || broken || (event.events & EPOLLRDHUP) != 0;
    readable_ = readable_ || ended_ || (event.events & EPOLLIN) != 0;
    writable_ = writable_ || broken || (event.events & EPOLLOUT) != 0;
    return {};
  }

  Descriptor socket_;
  Descriptor epoll_;
  bool readable_ = false;
  bool writable_ = true;
  bool ended_ = false;  // no further edge will come
};

Result<void> serve_pingpong(Loop& loop, const Load& load) {
  Memory message(load.message_size);
  while (true) {
    const Result<bool> got = loop.receive_all(message);
    if (!got) return fail(got.error());
    if (!*got) return {};
    if (const Result<void> sent = loop.send_all(message); !sent) return sent;
  }
}

Result<void> drive_pingpong(Loop& loop, const Load& load, Meter& meter, Histogram& latency_ns) {
  Memory message(load.message_size, std::byte{0x5A});
  Turns turns(load);
  Time before = now();
  while (turns.goes_on(before)) {
    if (const Result<void> sent = loop.send_all(message); !sent) return sent;
    const Result<bool> got = loop.receive_all(message);
    if (!got) return fail(got.error());
    if (!*got) return fail(Errc::kClosed, "the server ended first");
    const Time after = now();
    if (meter.add(1, after)) latency_ns.record(static_cast<uint64_t>((after - before).ns));
    before = after;
  }
  return {};
}

// Runs a function on a loop around the side's socket.
template <class F>
Side looped(F function) {
  return [function](Descriptor socket) -> Result<void> {
    Loop loop(std::move(socket));
    if (const Result<void> opened = loop.open(); !opened) return opened;
    return function(loop);
  };
}

}  // namespace

Result<Sample> raw_epoll_stream(const Load& load) {
  Result<SocketPair> pair = connect_pair({.blocking = false});
  if (!pair) return fail(pair.error());
  Meter meter(load);
  const CpuMeter cpu;
  const Side server = looped([&](Loop& loop) -> Result<void> {
    Memory memory(load.read_size);
    while (true) {
      const Result<size_t> got = loop.receive_some(memory.data(), memory.size());
      if (!got) return fail(got.error());
      if (*got == 0) return {};
      meter.add(*got, now());
    }
  });
  const Side client = looped([&](Loop& loop) -> Result<void> {
    const Memory memory(load.write_size, std::byte{0x5A});
    Turns turns(load);
    while (turns.goes_on(now())) {
      if (const Result<void> sent = loop.send_all(memory); !sent) return sent;
    }
    return {};
  });
  if (const Result<void> ran = run_pair(load, std::move(*pair), server, client); !ran) {
    return fail(ran.error());
  }
  const double writes = static_cast<double>(meter.total()) / load.write_size;
  return Sample{meter.per_second(), cpu.us_per(writes), {}};
}

Result<Sample> raw_epoll_pingpong(const Load& load) {
  Result<SocketPair> pair = connect_pair({.blocking = false});
  if (!pair) return fail(pair.error());
  Meter meter(load);
  Sample sample;
  const CpuMeter cpu;
  const Side server = looped([&](Loop& loop) { return serve_pingpong(loop, load); });
  const Side client =
      looped([&](Loop& loop) { return drive_pingpong(loop, load, meter, sample.latency_ns); });
  if (const Result<void> ran = run_pair(load, std::move(*pair), server, client); !ran) {
    return fail(ran.error());
  }
  sample.per_second = meter.per_second();
  sample.cpu_us_per_operation = cpu.us_per(static_cast<double>(meter.total()));
  return sample;
}

}  // namespace cairn::bench
