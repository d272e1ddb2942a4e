// SPDX-License-Identifier: Apache-2.0
#include "bench/bare_exchange.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/check.h"
#include "base/rng.h"
#include "bench/process.h"
#include "bench/raw_pair.h"
#include "bench/workload.h"

namespace cairn::bench {

namespace {

constexpr size_t kRequestSize = 72;  // a capsule
constexpr size_t kAnswerSize = 24;   // the header of C2HData, or a response
constexpr size_t kPiecesMax = 250;
constexpr size_t kReceiveSize = 512 * 1024;

// What both headers begin with; the rest of them is padding.
struct Header {
  uint64_t place;
  uint32_t tag;
};

// Pieces to be sent in order; a short send goes on where it stopped.
class Outbox {
 public:
  explicit Outbox(bool batches) : batches_(batches) {}

  void add(const void* data, size_t size) {
    pieces_.push_back({.iov_base = const_cast<void*>(data), .iov_len = size});
  }
  // Marks the end of a message: without batches each goes alone.
  void end_message() {
    if (!batches_) ends_.push_back(pieces_.size());
  }
  bool is_empty() const { return next_ == pieces_.size(); }
  // Sends what the socket takes.
  Result<void> flush(int socket, uint64_t& calls) {
    while (!is_empty()) {
      msghdr message{};
      message.msg_iov = &pieces_[next_];
      message.msg_iovlen = std::min(limit() - next_, kPiecesMax);
      ++calls;
      const ssize_t sent = ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0 && errno == EAGAIN) return {};
      if (sent < 0) return fail(Error::from_errno(errno, "send"));
      advance(static_cast<size_t>(sent));
    }
    pieces_.clear();
    ends_.clear();
    next_ = next_end_ = 0;
    return {};
  }

 private:
  size_t limit() {
    if (batches_) return pieces_.size();
    while (ends_[next_end_] <= next_) ++next_end_;
    return ends_[next_end_];
  }
  void advance(size_t sent) {
    while (sent > 0) {
      iovec& piece = pieces_[next_];
      const size_t part = std::min(sent, piece.iov_len);
      piece.iov_base = static_cast<char*>(piece.iov_base) + part;
      piece.iov_len -= part;
      sent -= part;
      if (piece.iov_len == 0) ++next_;
    }
  }

  bool batches_;
  std::vector<iovec> pieces_;
  std::vector<size_t> ends_;
  size_t next_ = 0;
  size_t next_end_ = 0;
};

// Bytes as they came; whole messages are taken from the front.
class Inbox {
 public:
  // False: the peer is gone.
  Result<bool> fill(int socket, uint64_t& calls) {
    if (begin_ == end_) begin_ = end_ = 0;
    if (end_ > kReceiveSize / 2) {
      std::memmove(memory_.get(), memory_.get() + begin_, end_ - begin_);
      end_ -= begin_;
      begin_ = 0;
    }
    ++calls;
    const ssize_t got = ::recv(socket, memory_.get() + end_, kReceiveSize - end_, MSG_DONTWAIT);
    if (got < 0 && errno == EAGAIN) return true;
    if (got < 0) return fail(Error::from_errno(errno, "receive"));
    end_ += static_cast<size_t>(got);
    return got > 0;
  }
  // The next message when all of it is here.
  const std::byte* take(size_t size) {
    if (end_ - begin_ < size) return nullptr;
    return memory_.get() + std::exchange(begin_, begin_ + size);
  }

 private:
  std::unique_ptr<std::byte[]> memory_ = std::make_unique<std::byte[]>(kReceiveSize);
  size_t begin_ = 0;
  size_t end_ = 0;
};

// What is read and written. Of large pages where the kernel has them, as a memory drive's.
class LargeMemory {
 public:
  explicit LargeMemory(size_t size)
      : data_(static_cast<std::byte*>(std::aligned_alloc(kPage, align_up(size, kPage)))) {
    CHECK(data_ != nullptr, "there is memory for a benchmark");
    (void)!::madvise(data_.get(), size, MADV_HUGEPAGE);
    std::memset(data_.get(), 0x5a, size);
  }
  std::byte* data() const { return data_.get(); }

 private:
  static constexpr size_t kPage = 2 << 20;
  struct Free {
    void operator()(std::byte* data) const { std::free(data); }
  };
  std::unique_ptr<std::byte, Free> data_;
};

// The server has filled its memory, which takes longer than a short run; nothing counts before.
Result<void> tell_ready(int socket) {
  constexpr char kReady = 1;
  if (::send(socket, &kReady, 1, MSG_NOSIGNAL) == 1) return {};
  return fail(Error::from_errno(errno, "send"));
}
Result<void> await_ready(int socket) {
  pollfd readable{.fd = socket, .events = POLLIN, .revents = 0};
  char ready = 0;
  while (::poll(&readable, 1, -1) < 0 && errno == EINTR) {
  }
  if (::recv(socket, &ready, 1, MSG_DONTWAIT) == 1) return {};
  return fail(Errc::kClosed, "the server of the bare exchange did not start");
}

Header header_of(const std::byte* message) {
  Header header;
  std::memcpy(&header, message, sizeof(header));
  return header;
}

// Answers until the client leaves.
Result<void> serve(int socket, const ExchangeLoad& load, std::byte* memory, uint64_t& calls) {
  Inbox in;
  Outbox out(load.batches);
  std::vector<std::array<std::byte, kAnswerSize>> headers(load.depth);
  const size_t request_size = kRequestSize + (load.writes ? load.data_size : 0);
  for (;;) {
    const Result<bool> here = in.fill(socket, calls);
    if (!here) return fail(here.error());
    if (!*here) return {};
    while (const std::byte* request = in.take(request_size)) {
      const Header header = header_of(request);
      std::memcpy(headers[header.tag].data(), &header, sizeof(header));
      out.add(headers[header.tag].data(), kAnswerSize);
      if (load.writes) {
        std::memcpy(memory + header.place, request + kRequestSize, load.data_size);
      } else {
        out.add(memory + header.place, load.data_size);
      }
      out.end_message();
    }
    // Answers that wait belong to requests that are out: their headers are not used again.
    if (const Result<void> sent = out.flush(socket, calls); !sent) return sent;
  }
}

class Client {
 public:
  Client(int socket, const ExchangeLoad& load, ExchangeFigures& figures)
      : socket_(socket),
        load_(load),
        figures_(figures),
        out_(load.batches),
        requests_(load.depth),
        since_(load.depth),
        data_(load.data_size),
        meter_(times(load)) {}

  Result<void> run() {
    Turns turns(times(load_));
    const CpuMeter cpu;
    for (uint32_t tag = 0; tag < load_.depth; ++tag) ask(tag, now());
    uint64_t calls = 0;
    const size_t answer_size = kAnswerSize + (load_.writes ? 0 : load_.data_size);
    while (outstanding_ > 0) {
      if (const Result<void> sent = out_.flush(socket_, calls); !sent) return sent;
      const Result<bool> here = in_.fill(socket_, calls);
      if (!here) return fail(here.error());
      if (!*here) return fail(Errc::kClosed, "the server of the bare exchange ended early");
      const Time at = now();
      while (const std::byte* answer = in_.take(answer_size)) {
        const uint32_t tag = header_of(answer).tag;
        if (meter_.add(1, at)) figures_.latency_ns.record((at - since_[tag]).ns);
        --outstanding_;
        if (turns.goes_on(at)) ask(tag, at);
      }
    }
    figures_.per_second = meter_.per_second();
    const auto total = static_cast<double>(meter_.total());
    figures_.client = {.cpu_us = cpu.us_per(total),
                       .system_calls = static_cast<double>(calls) / total};
    return {};
  }
  uint64_t total() const { return meter_.total(); }

 private:
  static Load times(const ExchangeLoad& load) {
    return {.seconds = load.seconds, .warm_up_seconds = load.warm_up_seconds};
  }
  void ask(uint32_t tag, Time at) {
    const Header header{.place = rng_.below(load_.memory / load_.data_size) * load_.data_size,
                        .tag = tag};
    std::memcpy(requests_[tag].data(), &header, sizeof(header));
    out_.add(requests_[tag].data(), kRequestSize);
    if (load_.writes) out_.add(data_.data(), load_.data_size);
    out_.end_message();
    since_[tag] = at;
    ++outstanding_;
  }

  int socket_;
  const ExchangeLoad& load_;
  ExchangeFigures& figures_;
  Inbox in_;
  Outbox out_;
  std::vector<std::array<std::byte, kRequestSize>> requests_;
  std::vector<Time> since_;
  std::vector<std::byte> data_;
  uint32_t outstanding_ = 0;
  Rng rng_{1};
  Meter meter_;
};

}  // namespace

Result<ExchangeFigures> bare_exchange(const ExchangeLoad& load) {
  Result<SocketPair> pair = connect_pair({.blocking = false});
  if (!pair) return fail(pair.error());
  Result<SharedMemory> shared = SharedMemory::make(sizeof(uint64_t));
  if (!shared) return fail(shared.error());
  auto& server_calls = *reinterpret_cast<uint64_t*>(shared->data());
  Result<Process> server = Process::start([&]() -> Result<void> {
    pair->client = Descriptor();
    if (const Result<void> pinned = pin_to(load.server_cpu); !pinned) return pinned;
    const LargeMemory memory(load.memory);
    if (const Result<void> told = tell_ready(pair->server.get()); !told) return told;
    return serve(pair->server.get(), load, memory.data(), server_calls);
  });
  if (!server) return fail(server.error());
  pair->server = Descriptor();
  if (const Result<void> ready = await_ready(pair->client.get()); !ready) {
    return fail(ready.error());
  }
  auto figures = std::make_unique<ExchangeFigures>();
  Client client(pair->client.get(), load, *figures);
  const Result<void> ran = on_cpu(load.client_cpu, [&] { return client.run(); });
  pair->client = Descriptor();
  Result<Duration> server_cpu = server->wait();
  if (!ran) return fail(ran.error());
  if (!server_cpu) return fail(server_cpu.error());
  const auto total = static_cast<double>(client.total());
  figures->server = {.cpu_us = server_cpu->us() / total,
                     .system_calls = static_cast<double>(server_calls) / total};
  return *figures;
}

}  // namespace cairn::bench
