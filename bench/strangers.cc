// SPDX-License-Identifier: Apache-2.0
#include "bench/strangers.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "base/check.h"
#include "bench/process.h"
#include "bench/workload.h"
#include "world/posix/socket.h"

namespace cairn::bench {

namespace {

// Those of the box that linger, and whatever else is open.
constexpr uint64_t kDescriptorsMin = 2 * kStrangersMax + 256;
constexpr Duration kNapMax = 10_ms;  // so that stop() does not wait for a turn

bool is_up(int socket) {
  pollfd state{.fd = socket, .events = POLLRDHUP, .revents = 0};
  return ::poll(&state, 1, 0) == 0;
}

}  // namespace

Result<uint64_t> make_room_for_strangers() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return fail(Error::from_errno(errno, "ask for the limit of open files"));
  }
  if (limit.rlim_cur >= kDescriptorsMin) return limit.rlim_cur;
  if (limit.rlim_max < kDescriptorsMin) {
    return fail(Errc::kLimit, "the hard limit of open files is too low",
                static_cast<int64_t>(limit.rlim_max));
  }
  limit.rlim_cur = kDescriptorsMin;
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return fail(Error::from_errno(errno, "raise the limit of open files"));
  }
  return limit.rlim_cur;
}

Strangers::Strangers(const StrangersOptions& options) : options_(options), all_(options.count) {
  CHECK(options.count <= kStrangersMax);
  for (uint32_t i = 0; i < kStrangerKinds; ++i) scripts_[i] = stranger_script(stranger_kind(i));
}

Result<std::unique_ptr<Strangers>> Strangers::start(const StrangersOptions& options) {
  auto strangers = std::unique_ptr<Strangers>(new Strangers(options));
  for (uint32_t i = 0; i < options.count; ++i) {
    if (const Result<void> dialled = strangers->dial(i); !dialled) return fail(dialled.error());
  }
  if (options.count > 0) {
    strangers->thread_ = std::jthread([all = strangers.get()] { all->take_turns(); });
  }
  return strangers;
}

Strangers::~Strangers() { (void)stop(); }

uint32_t Strangers::stop() {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
  return static_cast<uint32_t>(std::ranges::count_if(all_, [](const Stranger& each) {
    return each.socket.is_open() && is_up(each.socket.get());
  }));
}

Result<void> Strangers::dial(uint32_t index) {
  Stranger& stranger = all_[index];
  stranger.socket = posix::Fd(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  stranger.sent = 0;
  if (!stranger.socket.is_open()) return fail(Error::from_errno(errno, "make a socket"));
  const auto number = static_cast<uint8_t>(2 + index % kAddresses);
  const posix::SocketAddress from =
      posix::to_socket_address(env::Address::ip4(127, 0, 0, number, 0));
  if (::bind(stranger.socket.get(), from.get(), from.length) != 0) {
    return fail(Error::from_errno(errno, "bind a socket to a loopback address"));
  }
  const posix::SocketAddress to = posix::to_socket_address(options_.to);
  if (::connect(stranger.socket.get(), to.get(), to.length) != 0 && errno != EINPROGRESS) {
    return fail(Error::from_errno(errno, "connect to the box of the benchmark"));
  }
  speak(index, scripts_[index % kStrangerKinds].opening, stranger.sent);
  return {};
}

// As much as the kernel takes. Whether the connection has ended is seen at the next turn.
void Strangers::speak(uint32_t index, const std::vector<std::byte>& bytes, size_t& sent) {
  if (sent == bytes.size()) return;
  const ssize_t took = ::send(all_[index].socket.get(), bytes.data() + sent, bytes.size() - sent,
                              MSG_NOSIGNAL | MSG_DONTWAIT);
  if (took > 0) sent += static_cast<size_t>(took);
}

void Strangers::take_turn(uint32_t index) {
  Stranger& stranger = all_[index];
  const StrangerScript& script = scripts_[index % kStrangerKinds];
  if (!stranger.socket.is_open() || !is_up(stranger.socket.get())) {
    (void)dial(index);  // one that cannot come tries again at its next turn
  } else if (stranger.sent < script.opening.size()) {
    speak(index, script.opening, stranger.sent);
  } else {
    size_t sent = 0;
    speak(index, script.again, sent);
  }
}

void Strangers::take_turns() {
  (void)pin_to(options_.cpu);
  Time due = now();
  for (uint32_t next = 0; !stopping_; next = (next + 1) % options_.count) {
    due = due + kTurn / options_.count;
    // Who was kept waiting for long does not make up for it: that would take the friend's CPU.
    if (now() - due > kNapMax) due = now();
    for (Time at = now(); at < due && !stopping_; at = now()) {
      pass_time(std::min(due - at, kNapMax));
    }
    if (!stopping_) take_turn(next);
  }
}

}  // namespace cairn::bench
