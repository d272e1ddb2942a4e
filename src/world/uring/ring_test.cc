// SPDX-License-Identifier: Apache-2.0
#include "world/uring/ring.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <thread>

#include "world/posix/fd.h"

namespace cairn::uring {
namespace {

class Counted final : public Completion {
 public:
  int count = 0;

 private:
  void on_complete(int32_t, uint32_t) override { ++count; }
};

class RingTest : public testing::Test {
 protected:
  void SetUp() override {
    Result<std::unique_ptr<Ring>> made = Ring::make();
    if (!made) GTEST_SKIP() << "no io_uring here";
    ring_ = std::move(*made);
  }
  void read_from(const posix::Fd& event, Completion& completion) {
    ring_->request(&completion, [&](io_uring_sqe* sqe) {
      ::io_uring_prep_read(sqe, event.get(), &value_, sizeof(value_), 0);
    });
  }

  std::unique_ptr<Ring> ring_;
  uint64_t value_ = 0;
};

TEST_F(RingTest, AWaitForSeveralEventsEndsInTimeWithFewer) {
  const posix::Fd event(::eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE));
  Counted done;
  read_from(event, done);
  read_from(event, done);
  const uint64_t one = 1;
  ASSERT_EQ(::write(event.get(), &one, sizeof(one)), static_cast<ssize_t>(sizeof(one)));
  EXPECT_TRUE(ring_->turn(1_ms, 2));
  EXPECT_EQ(done.count, 1);
  ASSERT_EQ(::write(event.get(), &one, sizeof(one)), static_cast<ssize_t>(sizeof(one)));
  while (ring_->in_flight() > 0) ring_->turn(Duration::max());
  EXPECT_EQ(done.count, 2);
}

TEST_F(RingTest, AWaitForSeveralEventsIsNotEndedByTheFirst) {
  const posix::Fd event(::eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE));
  Counted done;
  read_from(event, done);
  read_from(event, done);
  const uint64_t one = 1;
  ASSERT_EQ(::write(event.get(), &one, sizeof(one)), static_cast<ssize_t>(sizeof(one)));
  std::thread later([&] { (void)!::write(event.get(), &one, sizeof(one)); });
  ring_->turn(10_s, 2);
  later.join();
  EXPECT_EQ(done.count, 2);
}

}  // namespace
}  // namespace cairn::uring
