// SPDX-License-Identifier: Apache-2.0
// Hosts that nobody knows: what they get is their handshake, and no friend waits for them.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nvme/auth/auth_secret.h"
#include "nvme/format/nqn.h"
#include "task/deadline.h"
#include "testing/target/suite.h"

namespace cairn::target_tests {
namespace {

SIM_WORLD_TEST_SUITE(Strangers);

using nvme::AdminOpcode;
using nvme::SglDescriptor;

constexpr auto kUnserved = static_cast<AdminOpcode>(0x81);  // Security Send

// An admin command that would bring so much.
Sqe bringing(RawHost& host, AdminOpcode opcode, uint32_t bytes) {
  Sqe sqe = Sqe::make(opcode);
  sqe.cid = host.next_cid();
  sqe.sgl1 = SglDescriptor::transport(bytes);
  return sqe;
}

// Asked with an R2T, it would be answered with nothing at all.
Task<void> expect_refused(RawHost& host, const Sqe& sqe, StatusCode code) {
  const nvme::Cqe cqe = co_await host.ask(sqe);
  EXPECT_EQ(cqe.get_status().code(), code) << text_of(cqe);
  EXPECT_TRUE(cqe.get_status().do_not_retry());
}

// A host connects, identifies its controller, and reads, all within a second.
Task<void> expect_friend_served(env::Env& env, env::Address box, uint8_t number) {
  const Time begin = env.now();
  RawHost admin(env);
  co_await admin.arrive(box, {}, {.host_number = number});
  Sqe identify = Sqe::make(AdminOpcode::kIdentify);
  identify.cdw10 = 1;
  identify.cid = admin.next_cid();
  identify.sgl1 = SglDescriptor::transport(4096);
  co_await admin.deliver(admin.capsule(identify));
  const std::optional<Received> page = co_await admin.receive();
  EXPECT_EQ(name_of(page), "C2HData");
  RawHost queue(env);
  co_await queue.dial(box);
  co_await queue.greet();
  const nvme::Cqe cqe =
      co_await queue.connect({.id = 1, .controller = admin.controller_id, .host_number = number});
  EXPECT_TRUE(cqe.get_status().ok()) << text_of(cqe);
  for (const uint32_t blocks : {1, 16}) {
    const std::vector<std::byte> data = co_await queue.read(1, 0, blocks);
    EXPECT_EQ(data.size(), blocks * kBlock);
  }
  EXPECT_LT(env.now() - begin, 1_s);
}

// They ask to send all they can, and then do nothing.
WORLD_TEST(Strangers, AtDiscoveryKeepNoFriendWaiting) {
  Box box(env);
  co_await box.open(scene.any_port());
  std::vector<std::unique_ptr<RawHost>> strangers;
  for (const uint32_t bytes : {4096u, 65536u, 1u << 20}) {
    for (int i = 0; i < 8; ++i) {
      strangers.push_back(std::make_unique<RawHost>(env));
      RawHost& stranger = *strangers.back();
      co_await stranger.arrive(box.address, {}, {.nqn = std::string(nvme::kDiscoveryNqn)});
      for (int command = 0; command < 31; ++command) {
        const AdminOpcode opcode = command % 2 == 0 ? kUnserved : AdminOpcode::kSetFeatures;
        co_await stranger.deliver(stranger.capsule(bringing(stranger, opcode, bytes)));
      }
    }
  }
  co_await expect_friend_served(env, box.address, 2);
  strangers.clear();
  co_await box.close();
}

WORLD_TEST(Strangers, GetNothingButAnswersBeforeTheyMayUseAController) {
  Box box(env);
  co_await box.open(scene.any_port());
  RawHost host(env);
  co_await host.dial(box.address);
  co_await host.greet();
  co_await expect_refused(host, bringing(host, AdminOpcode::kSetFeatures, 4096),
                          StatusCode::kCommandSequenceError);
  const nvme::Cqe connected = co_await host.connect({});
  EXPECT_TRUE(connected.get_status().ok()) << text_of(connected);
  // CC.EN is not set.
  co_await expect_refused(host, bringing(host, AdminOpcode::kSetFeatures, 4096),
                          StatusCode::kCommandSequenceError);
  co_await expect_refused(host, bringing(host, kUnserved, 4096), StatusCode::kInvalidOpcode);
  host.stream.reset();

  RawHost ready(env);
  co_await ready.arrive(box.address);
  co_await expect_refused(ready, bringing(ready, kUnserved, 4096), StatusCode::kInvalidOpcode);
  co_await expect_refused(ready, bringing(ready, AdminOpcode::kSetFeatures, 8192),
                          StatusCode::kDataSglLengthInvalid);
  ready.stream.reset();
  co_await box.close();
}

WORLD_TEST(Strangers, GetNothingButAnswersBeforeTheyHaveAuthenticated) {
  Box box(env);
  co_await box.open(scene.any_port());
  const QueueWish wish;
  nvme::AuthPolicy policy;
  const std::vector<std::byte> key(32, std::byte{7});
  policy.hosts.emplace(wish.host_nqn,
                       nvme::AuthKeys{.host = nvme::AuthSecret::make(std::nullopt, key)});
  must(box.registry().set_authentication(kNqn, std::move(policy)));
  RawHost host(env);
  co_await host.dial(box.address);
  co_await host.greet();
  const nvme::Cqe connected = co_await host.connect(wish);
  EXPECT_TRUE(connected.get_status().ok()) << text_of(connected);
  for (const uint32_t bytes : {4u, 4096u, 1u << 20}) {
    co_await expect_refused(host, bringing(host, AdminOpcode::kSetFeatures, bytes),
                            StatusCode::kAuthenticationRequired);
  }
  nvme::AuthenticationCommand send;
  send.type = nvme::FabricsType::kAuthenticationSend;
  send.cid = host.next_cid();
  send.sgl1 = SglDescriptor::transport(8192);
  co_await expect_refused(host, nvme::to_sqe(send), StatusCode::kDataSglLengthInvalid);
  host.stream.reset();
  co_await box.close();
}

// Hosts that may write, and do not send what they are asked for.
struct Idlers : BoxAndHost {
  explicit Idlers(env::Env& env) : BoxAndHost(env), env_(env) {}
  Task<void> write(uint16_t connections, int commands, uint32_t blocks) {
    for (uint16_t i = 0; i < connections; ++i) {
      idlers.push_back(std::make_unique<RawHost>(env_));
      RawHost& idler = *idlers.back();
      co_await idler.join(box.address, admin, static_cast<uint16_t>(2 + i));
      for (int command = 0; command < commands; ++command) {
        Sqe sqe = idler.io(IoOpcode::kWrite, 0, blocks);
        sqe.sgl1 = SglDescriptor::transport(blocks * kBlock);
        co_await idler.deliver(idler.capsule(sqe));
      }
    }
  }
  Task<void> expect_served(uint32_t blocks) {
    const Time begin = env_.now();
    const std::vector<std::byte> data = co_await queue.read(1, 0, blocks);
    EXPECT_EQ(data.size(), blocks * kBlock);
    EXPECT_LT(env_.now() - begin, 1_s);
  }
  Task<void> close_all() {
    idlers.clear();
    co_await close();
  }
  std::vector<std::unique_ptr<RawHost>> idlers;

 private:
  env::Env& env_;
};

WORLD_TEST(Strangers, SmallRequestsDoNotWaitForLargeOnes) {
  Idlers idlers(env);
  co_await idlers.open(scene);
  co_await idlers.write(7, 4, 256);  // three on its core: more than there are of 1 MiB
  co_await idlers.expect_served(1);
  co_await idlers.expect_served(16);
  co_await idlers.close_all();
}

WORLD_TEST(Strangers, EveryByteCountsAgainstTheShareOfAConnection) {
  Idlers idlers(env);
  co_await idlers.open(scene);
  co_await idlers.write(7, 31, 16);  // of 64 KiB, likewise
  co_await idlers.expect_served(16);
  co_await idlers.close_all();
}

// Connections that say nothing, more than the box takes.
WORLD_TEST(Strangers, SilentConnectionsTakeNoFriendsPlace) {
  BoxOptions options;
  options.target.connections = {.connections_max = 32, .unproven_max = 16, .reserved = 8};
  std::vector<std::string> refused;
  options.target.on_refused = [&](const stream::RefusedConnection& connection) {
    refused.emplace_back(connection.why);
  };
  Box box(env, options);
  co_await box.open(scene.any_port());
  std::vector<std::unique_ptr<RawHost>> strangers;
  for (int i = 0; i < 100; ++i) {
    strangers.push_back(std::make_unique<RawHost>(env));
    co_await strangers.back()->dial(box.address);
  }
  const Result<void> slept = co_await task::sleep_for(env, 2_s);
  must(slept);
  EXPECT_EQ(box.target().connections(), 16u);
  EXPECT_EQ(refused.size(), 84u);
  co_await expect_friend_served(env, box.address, 2);
  EXPECT_EQ(refused.size(), 85u) << "a stranger made room";
  strangers.clear();
  co_await box.close();
}

// Silent connections of a host's own address, all so young that they may still have something to
// say: they make room for it, because somebody was let in from there before.
WORLD_TEST(Strangers, OfAFriendsOwnAddressTakeNoPlaceOfItsNextConnection) {
  BoxOptions options;
  options.target.connections = {.connections_max = 32, .unproven_max = 16, .reserved = 8};
  Box box(env, options);
  co_await box.open(scene.any_port());
  RawHost admin(env);
  co_await admin.arrive(box.address);
  std::vector<std::unique_ptr<RawHost>> strangers;
  for (uint16_t queue = 1; queue <= 4; ++queue) {
    for (int i = 0; i < 16; ++i) {
      strangers.push_back(std::make_unique<RawHost>(env));
      co_await strangers.back()->dial(box.address);
    }
    RawHost next(env);
    co_await next.join(box.address, admin, queue);
    const std::vector<std::byte> data = co_await next.read(1, 0, 1);
    EXPECT_EQ(data.size(), kBlock);
  }
  strangers.clear();
  admin.stream.reset();
  co_await box.close();
}

// So do those who go no further than the discovery service.
WORLD_TEST(Strangers, AtDiscoveryTakeNoFriendsPlace) {
  BoxOptions options;
  options.target.connections = {.connections_max = 32, .unproven_max = 16, .reserved = 8};
  Box box(env, options);
  co_await box.open(scene.any_port());
  std::vector<std::unique_ptr<RawHost>> strangers;
  for (int i = 0; i < 16; ++i) {
    strangers.push_back(std::make_unique<RawHost>(env));
    co_await strangers.back()->arrive(box.address, {}, {.nqn = std::string(nvme::kDiscoveryNqn)});
  }
  const Result<void> slept = co_await task::sleep_for(env, 2_s);
  must(slept);
  co_await expect_friend_served(env, box.address, 2);
  co_await expect_end(*strangers.front());
  strangers.clear();
  co_await box.close();
}

// A host may have many queues, all of them from one address.
WORLD_TEST(Strangers, WhoWasLetInIsCountedNoMore) {
  BoxOptions options;
  options.target.connections = {.connections_max = 16, .unproven_max = 1, .reserved = 0};
  Box box(env, options);
  co_await box.open(scene.any_port());
  RawHost admin(env);
  co_await admin.arrive(box.address);
  std::vector<std::unique_ptr<RawHost>> queues;
  for (uint16_t i = 1; i <= 8; ++i) {
    queues.push_back(std::make_unique<RawHost>(env));
    co_await queues.back()->join(box.address, admin, i);
  }
  for (const auto& queue : queues) {
    const std::vector<std::byte> data = co_await queue->read(1, 0, 1);
    EXPECT_EQ(data.size(), kBlock);
  }
  queues.clear();
  admin.stream.reset();
  co_await box.close();
}

}  // namespace
}  // namespace cairn::target_tests
