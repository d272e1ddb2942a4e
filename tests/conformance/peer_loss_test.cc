// SPDX-License-Identifier: Apache-2.0
// Sockets of the real worlds notice a peer that is gone without a word, also when nothing is sent.
#include <netinet/in.h>   // lint: allow(the kernel tells what it was asked for)
#include <netinet/tcp.h>  // lint: allow(the same)
#include <sys/socket.h>   // lint: allow(the same)

#include <optional>

#include "testing/worlds/suite.h"
#include "testing/worlds/verbs.h"
#include "world/posix/socket.h"

namespace cairn::conformance {
namespace {

using RealWorlds = testing::Types<Uring, UringSingle, Epoll>;

template <class World>
class PeerLoss : public Conformance<World> {};
TYPED_TEST_SUITE(PeerLoss, RealWorlds, WorldNames);

std::optional<int> option_of(int fd, int level, int option) {
  int value = 0;
  socklen_t length = sizeof(value);
  const int got = ::getsockopt(fd, level, option, &value, &length);  // lint: allow(the same)
  return got == 0 ? std::optional(value) : std::nullopt;
}

// The socket of this process with these ends; -1: there is none.
int socket_between(const env::Address& local, const env::Address& peer) {
  for (int fd = 0; fd < 4096; ++fd) {
    if (posix::local_address(fd) == local && posix::peer_address(fd) == peer) return fd;
  }
  return -1;
}

void expect_probes(int fd) {
  EXPECT_GE(fd, 0);
  EXPECT_EQ(option_of(fd, SOL_SOCKET, SO_KEEPALIVE), 1);
  const int idle = option_of(fd, IPPROTO_TCP, TCP_KEEPIDLE).value_or(0);
  const int every = option_of(fd, IPPROTO_TCP, TCP_KEEPINTVL).value_or(0);
  const int count = option_of(fd, IPPROTO_TCP, TCP_KEEPCNT).value_or(0);
  EXPECT_EQ(idle + every * count, posix::kPeerLostSeconds);
  EXPECT_EQ(option_of(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), posix::kPeerLostSeconds * 1000);
}

WORLD_TEST(PeerLoss, IsLookedForAtBothEndsOfEveryConnection) {
  const Pair pair = co_await connected(env, scene);
  for (const env::Stream* stream : {pair.a.get(), pair.b.get()}) {
    expect_probes(socket_between(stream->local(), stream->peer()));
  }
}

}  // namespace
}  // namespace cairn::conformance
