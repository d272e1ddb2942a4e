// SPDX-License-Identifier: Apache-2.0
// Whether the real worlds count what they send.
#include <gtest/gtest.h>

#include <array>
#include <memory>

#include "base/check.h"
#include "env/env.h"
#include "world/epoll/world.h"
#include "world/uring/world.h"

namespace cairn::bench {
namespace {

constexpr uint64_t kMessages = 20;

task::Task<void> send_to_self(env::Env& env, env::KernelCalls& counted) {
  Result<std::unique_ptr<env::Listener>> listener = env.listen(env::Address::loopback(0));
  CHECK(listener.has_value());
  Result<env::Connection> dialled = co_await env.connect((*listener)->local());
  CHECK(dialled.has_value());
  Result<env::Connection> accepted = co_await (*listener)->accept();
  CHECK(accepted.has_value());
  const std::unique_ptr<env::Stream> from = env.open(std::move(*dialled));
  const std::unique_ptr<env::Stream> to = env.open(std::move(*accepted));
  std::array<std::byte, 64> bytes{};
  for (uint64_t i = 0; i < kMessages; ++i) {
    const Result<void> written = co_await from->write(Bytes(bytes));
    CHECK(written.has_value());
    const Result<size_t> got = co_await to->read(MutableBytes(bytes));
    CHECK(got.has_value());
  }
  counted = env.kernel_calls();
}

env::KernelCalls count_in(env::World& world) {
  env::KernelCalls counted;
  const Result<void> ran = world.run([&](env::Env& env) { return send_to_self(env, counted); });
  EXPECT_TRUE(ran);
  return counted;
}

TEST(KernelCalls, EpollCountsEachSendAndTimesItWhenAsked) {
  epoll::EpollWorld plain({});
  const env::KernelCalls untimed = count_in(plain);
  EXPECT_EQ(untimed.sends, kMessages);
  EXPECT_GE(untimed.calls, 2 * kMessages);
  EXPECT_EQ(untimed.sending, 0_s);
  EXPECT_EQ(untimed.receiving, 0_s);
  epoll::EpollWorld timing({.time_calls = true});
  const env::KernelCalls timed = count_in(timing);
  EXPECT_EQ(timed.sends, kMessages);
  EXPECT_GT(timed.sending, 0_s);
  EXPECT_GT(timed.receiving, 0_s);
}

TEST(KernelCalls, UringCountsEachSend) {
  if (!uring::probe().available) GTEST_SKIP() << "no io_uring here";
  uring::UringWorld world({});
  EXPECT_EQ(count_in(world).sends, kMessages);
}

}  // namespace
}  // namespace cairn::bench
