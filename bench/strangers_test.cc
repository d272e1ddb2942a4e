// SPDX-License-Identifier: Apache-2.0
// Whether each kind of stranger gets as far with a real box as it means to.
#include "bench/strangers.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "bench/box_process.h"
#include "nvme/format/tcp_format.h"
#include "world/epoll/world.h"
#include "world/posix/socket.h"

namespace cairn::bench {
namespace {

Result<std::unique_ptr<env::World>> epoll_world(const env::WorldOptions& options) {
  return std::make_unique<epoll::EpollWorld>(options);
}

std::unique_ptr<BoxProcess> start_box() {
  Result<std::unique_ptr<BoxProcess>> box =
      BoxProcess::start({.world = epoll_world,
                         .cpu = -1,
                         .memory = 1_MiB,
                         .only_host = "nqn.2026-11.io.cairn:friend"});
  EXPECT_TRUE(box) << box.error().text();
  return std::move(*box);
}

std::string name_of(const std::optional<std::vector<std::byte>>& pdu) {
  return pdu ? std::string(nvme::name(load<nvme::CommonHeader>(*pdu).type)) : "end";
}

// One stranger of a kind that, other than they do, reads its answers.
class Reader {
 public:
  Reader(const BoxProcess& box, StrangerKind kind) {
    const env::Address at = box.uri().paths[0];
    socket_ = posix::Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const posix::SocketAddress to = posix::to_socket_address(at);
    const std::vector<std::byte> opening = stranger_script(kind).opening;
    EXPECT_EQ(::connect(socket_.get(), to.get(), to.length), 0);
    EXPECT_EQ(::send(socket_.get(), opening.data(), opening.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(opening.size()));
  }

  // The next PDU; nothing at the end of the connection.
  std::optional<std::vector<std::byte>> next() {
    std::vector<std::byte> pdu(sizeof(nvme::CommonHeader));
    if (!fill(pdu)) return std::nullopt;
    const auto common = load<nvme::CommonHeader>(pdu);
    std::vector<std::byte> rest(common.length - pdu.size());
    if (!fill(rest)) return std::nullopt;
    pdu.insert(pdu.end(), rest.begin(), rest.end());
    return pdu;
  }
  std::string next_name() { return name_of(next()); }

 private:
  bool fill(std::vector<std::byte>& bytes) {
    const ssize_t got = ::recv(socket_.get(), bytes.data(), bytes.size(), MSG_WAITALL);
    return got == static_cast<ssize_t>(bytes.size());
  }
  posix::Fd socket_;
};

TEST(Strangers, WhoGreetsIsGreeted) {
  const std::unique_ptr<BoxProcess> box = start_box();
  Reader reader(*box, StrangerKind::kGreeting);
  EXPECT_EQ(reader.next_name(), "ICResp");
}

TEST(Strangers, AtDiscoveryAreConnectedAndGetWhatTheyDoNotRead) {
  const std::unique_ptr<BoxProcess> box = start_box();
  Reader reader(*box, StrangerKind::kDiscovery);
  EXPECT_EQ(reader.next_name(), "ICResp");
  std::map<std::string, int> answers;
  std::set<uint16_t> succeeded;
  // The R2T is the last: without the data it asks for, no other command with data is served.
  while (!answers.contains("R2T") && !answers.contains("end")) {
    const std::optional<std::vector<std::byte>> pdu = reader.next();
    ++answers[name_of(pdu)];
    if (!pdu || pdu->size() != sizeof(nvme::CapsuleResp)) continue;
    const nvme::Cqe cqe = load<nvme::CapsuleResp>(*pdu).cqe;
    if (cqe.get_status().ok()) succeeded.insert(cqe.cid);
  }
  EXPECT_TRUE(succeeded.contains(1)) << "Connect";
  EXPECT_TRUE(succeeded.contains(2)) << "Property Set, which enables the controller";
  EXPECT_GT(answers["C2HData"], 0);
  EXPECT_EQ(answers["R2T"], 1);
}

TEST(Strangers, WhoSendsGarbageIsEnded) {
  const std::unique_ptr<BoxProcess> box = start_box();
  Reader at_once(*box, StrangerKind::kGarbage);
  EXPECT_EQ(at_once.next_name(), "C2HTermReq");
  Reader greeting(*box, StrangerKind::kGreetingGarbage);
  EXPECT_EQ(greeting.next_name(), "ICResp");
  EXPECT_EQ(greeting.next_name(), "C2HTermReq");
}

TEST(Strangers, AllOfThemAreUpUnlessTheBoxEndsThem) {
  const std::unique_ptr<BoxProcess> box = start_box();
  Result<std::unique_ptr<Strangers>> strangers =
      Strangers::start({.to = box->uri().paths[0], .count = 50});
  ASSERT_TRUE(strangers) << strangers.error().text();
  const uint32_t up = (*strangers)->stop();
  EXPECT_LE(up, 50u);
  EXPECT_GE(up, 30u) << "those that send garbage may be gone";
}

}  // namespace
}  // namespace cairn::bench
