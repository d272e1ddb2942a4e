// SPDX-License-Identifier: Apache-2.0
#include "world/posix/descriptors.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "world/posix/event_signal.h"
#include "world/posix/fd.h"
#include "world/posix/local_stream.h"

namespace cairn::posix {
namespace {

class Descriptors : public testing::Test {
 protected:
  Descriptors() {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    a_ = Fd(ends[0]);
    b_ = Fd(ends[1]);
  }
  // The next descriptor that the kernel would give: it tells whether others were closed.
  static int next_free() { return Fd(::dup(0)).get(); }

  Fd a_;
  Fd b_;
  Fd event_ = Fd(::eventfd(0, EFD_CLOEXEC));
};

TEST_F(Descriptors, AreCloseOnExec) {
  const int fds[] = {event_.get(), a_.get()};
  EXPECT_EQ(send_with_fds(a_.get(), as_bytes("hello"), fds), 5);
  std::array<std::byte, 16> into{};
  const ReceivedFds received = receive_with_fds(b_.get(), into);
  EXPECT_EQ(received.bytes, 5);
  ASSERT_EQ(received.fds.size(), 2u);
  for (const Fd& fd : received.fds) EXPECT_EQ(::fcntl(fd.get(), F_GETFD), FD_CLOEXEC);
}

TEST_F(Descriptors, OfAFullMessageAllCome) {
  const std::vector<int> fds(kDescriptorsPerMessage, event_.get());
  EXPECT_EQ(send_with_fds(a_.get(), as_bytes("x"), fds), 1);
  std::array<std::byte, 16> into{};
  EXPECT_EQ(receive_with_fds(b_.get(), into).fds.size(), fds.size());
}

TEST_F(Descriptors, ThatDoNotFitIntoTheProcessAreClosed) {
  const std::vector<int> fds(10, event_.get());
  EXPECT_EQ(send_with_fds(a_.get(), as_bytes("x"), fds), 1);
  EXPECT_EQ(send_with_fds(a_.get(), as_bytes("y"), std::span(fds).first(1)), 1);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const int free = next_free();
  const rlimit tight{.rlim_cur = static_cast<rlim_t>(free) + 3, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &tight), 0);
  std::array<std::byte, 16> into{};
  const ReceivedFds received = receive_with_fds(b_.get(), into);
  const int error = errno;
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(received.bytes, -1);
  EXPECT_EQ(error, EMFILE);
  EXPECT_TRUE(received.fds.empty());
  EXPECT_EQ(next_free(), free);
  EXPECT_EQ(receive_with_fds(b_.get(), into).fds.size(), 1u) << "the stream goes on";
}

TEST_F(Descriptors, NeitherWaitNorRaiseSignals) {
  std::array<std::byte, 16> into{};
  EXPECT_EQ(receive_with_fds(b_.get(), into).bytes, -1);
  EXPECT_EQ(errno, EAGAIN);
  const std::vector<std::byte> much(8 << 20);
  ssize_t sent = 0;
  while (sent >= 0) sent = send_with_fds(a_.get(), much, {});
  EXPECT_EQ(errno, EAGAIN);
  b_.reset();
  EXPECT_EQ(send_with_fds(a_.get(), as_bytes("x"), {}), -1);
  EXPECT_EQ(errno, EPIPE);
}

TEST_F(Descriptors, OfLocalConnectionsAreTold) {
  EXPECT_TRUE(check_local(a_.get()).has_value());
  const Fd datagrams(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const Fd network(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  for (const int fd : {datagrams.get(), network.get(), event_.get()}) {
    EXPECT_EQ(check_local(fd).error(), Errc::kInvalid);
  }
}

TEST_F(Descriptors, OfEventsAreTold) {
  EXPECT_TRUE(check_event(event_.get()).has_value());
  int pipe[2];
  ASSERT_EQ(::pipe2(pipe, O_CLOEXEC), 0);
  const Fd reading(pipe[0]);
  const Fd writing(pipe[1]);
  const Fd zero(::open("/dev/zero", O_RDWR | O_CLOEXEC));
  const Fd file(::open("/tmp", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600));
  const Fd timer(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC));
  for (const int fd :
       {reading.get(), writing.get(), zero.get(), file.get(), timer.get(), a_.get()}) {
    EXPECT_EQ(check_event(fd).error(), Errc::kInvalid) << fd;
  }
}

TEST_F(Descriptors, OfEventsThatBlockAreRaisedAndTakenWithoutWaiting) {
  EXPECT_FALSE(take_event(event_.get()));
  raise_event(event_.get());
  raise_event(event_.get());
  EXPECT_TRUE(take_event(event_.get()));
  EXPECT_FALSE(take_event(event_.get()));
  constexpr uint64_t kMax = UINT64_MAX - 1;
  ASSERT_EQ(::write(event_.get(), &kMax, sizeof(kMax)), sizeof(kMax));
  raise_event(event_.get());
  EXPECT_TRUE(take_event(event_.get()));
}

}  // namespace
}  // namespace cairn::posix
