// SPDX-License-Identifier: Apache-2.0
#include "world/uring/listener.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <memory>
#include <utility>
#include <vector>

#include "base/check.h"
#include "env/env.h"
#include "task/deadline.h"
#include "world/posix/fd.h"
#include "world/posix/socket.h"
#include "world/uring/world.h"

namespace cairn::uring {
namespace {

constexpr int kBurst = 400;  // of a backlog of 512

posix::Fd dial(const env::Address& at) {
  posix::Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const posix::SocketAddress to = posix::to_socket_address(at);
  CHECK(::connect(socket.get(), to.get(), to.length) == 0);
  return socket;
}

task::Task<void> accept_burst(env::Env& env, int& accepted) {
  Result<std::unique_ptr<env::Listener>> listener = env.listen(env::Address::loopback(0));
  CHECK(listener.has_value());
  const env::Address at = (*listener)->local();
  // The first one shows that the kernel hands connections out; the others come at once while
  // nobody takes them.
  std::vector<posix::Fd> clients;
  clients.push_back(dial(at));
  task::Deadline deadline(env, env.now() + 10_s);
  for (; accepted <= kBurst; ++accepted) {
    const Result<env::Connection> connection = co_await (*listener)->accept(deadline.token());
    if (!connection) co_return;
    for (int i = 0; accepted == 0 && i < kBurst; ++i) clients.push_back(dial(at));
  }
}

TEST(UringListener, ABurstOfConnectionsLosesNone) {
  if (!probe().available) GTEST_SKIP() << "no io_uring here";
  UringWorld world({});
  int accepted = 0;
  const Result<void> ran = world.run([&](env::Env& env) { return accept_burst(env, accepted); });
  EXPECT_TRUE(ran);
  EXPECT_EQ(accepted, kBurst + 1);
}

}  // namespace
}  // namespace cairn::uring
