// SPDX-License-Identifier: Apache-2.0
// Connect and Disconnect as a host meets them on the wire.
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "nvme/format/property_format.h"
#include "testing/target/suite.h"

namespace cairn::target_tests {
namespace {

WORLD_TEST_SUITE(Connects);

using nvme::ConnectCommand;
using nvme::ConnectData;
using nvme::ConnectInvalid;

uint32_t in_data(size_t offset) {
  return ConnectInvalid{.offset = static_cast<uint16_t>(offset), .in_data = true}.encode();
}
uint32_t in_entry(size_t offset) {
  return ConnectInvalid{.offset = static_cast<uint16_t>(offset)}.encode();
}

struct Refusal {
  const char* name;
  QueueWish wish;
  StatusCode code;
  uint32_t dw0 = 0;
  bool retry = false;
};

// A refused Connect leaves the connection as it was: the host can try again on it.
WORLD_TEST(Connects, RefusedOnesSayWhy) {
  Box box(env);
  co_await box.open(scene.any_port());
  RawHost admin(env);
  co_await admin.arrive(box.address);
  RawHost queue(env);
  co_await queue.join(box.address, admin, 1);
  const uint16_t id = admin.controller_id;
  constexpr auto kInvalid = StatusCode::kConnectInvalidParameters;
  const std::vector<Refusal> refusals = {
      {"unknown subsystem", {.nqn = "nqn.2026-11.io.cairn:other"}, kInvalid, in_data(256)},
      {"no NQN", {.nqn = "\x01"}, kInvalid, in_data(256)},
      {"host not on the list", {.nqn = kClosedNqn}, StatusCode::kConnectInvalidHost},
      {"queue of one entry", {.size = 0}, kInvalid, in_entry(44)},
      {"queue beyond MQES", {.size = 32}, kInvalid, in_entry(44)},
      {"a controller of one's choice", {.controller = 7}, kInvalid, in_data(16)},
      {"no such controller", {.id = 2, .controller = 777}, kInvalid, in_data(16), true},
      {"another host's controller",
       {.id = 2, .controller = id, .host_nqn = "nqn.2026-11.io.cairn:thief"},
       kInvalid,
       in_data(512)},
      {"another host id", {.id = 2, .controller = id, .host_number = 2}, kInvalid, in_data(0)},
      {"queue id beyond those granted", {.id = 9, .controller = id}, kInvalid, in_entry(42)},
      {"I/O queue of one entry", {.id = 2, .size = 0, .controller = id}, kInvalid, in_entry(44)},
      {"I/O queue beyond MQES", {.id = 2, .size = 32, .controller = id}, kInvalid, in_entry(44)},
      {"a queue id twice", {.id = 1, .controller = id}, StatusCode::kCommandSequenceError},
  };
  RawHost host(env);
  co_await host.dial(box.address);
  co_await host.greet();
  for (const Refusal& each : refusals) {
    const nvme::Cqe cqe = co_await host.connect(each.wish);
    EXPECT_EQ(cqe.get_status().code(), each.code) << each.name << ": " << text_of(cqe);
    EXPECT_EQ(cqe.get_status().do_not_retry(), !each.retry) << each.name;
    EXPECT_EQ(cqe.dw0, each.dw0) << each.name;
  }
  const nvme::Cqe cqe = co_await host.connect({.id = 2, .controller = id});
  EXPECT_TRUE(cqe.get_status().ok()) << text_of(cqe);
  for (RawHost* each : {&admin, &queue, &host}) each->stream.reset();
  co_await box.close();
}

WORLD_TEST(Connects, FriendsOfAClosedSubsystemMayComeIn) {
  Box box(env);
  co_await box.open(scene.any_port());
  RawHost host(env);
  co_await host.arrive(box.address, {}, {.nqn = kClosedNqn, .host_nqn = kFriendNqn});
  host.stream.reset();
  co_await box.close();
}

// SPDK's host shuts down with ids that its requests for events still hold.
WORLD_TEST(Connects, AnIdThatOnlyARequestForEventsHoldsMayBeUsedAgain) {
  Box box(env);
  co_await box.open(scene.any_port());
  RawHost host(env);
  co_await host.arrive(box.address);
  Sqe event = Sqe::make(nvme::AdminOpcode::kAsynchronousEventRequest);
  for (uint16_t cid = 1; cid <= 4; ++cid) {
    event.cid = cid;
    co_await host.deliver(host.capsule(event));
  }
  nvme::PropertyCommand shut_down;
  shut_down.type = nvme::FabricsType::kPropertySet;
  shut_down.offset = static_cast<uint32_t>(nvme::PropertyOffset::kConfiguration);
  shut_down.value = nvme::Configuration{.enable = true,
                                        .shutdown = nvme::ShutdownNotice::kNormal,
                                        .submission_entry_size = 6,
                                        .completion_entry_size = 4}
                        .encode();
  shut_down.cid = 1;
  const nvme::Cqe done = co_await host.ask(nvme::to_sqe(shut_down));
  EXPECT_TRUE(done.get_status().ok()) << text_of(done);
  // A request in the place of another: still four, and an id is as free as any afterwards.
  event.cid = 2;
  co_await host.deliver(host.capsule(event));
  for (const uint16_t cid : {1, 1, 3}) {
    Sqe alive = Sqe::make(nvme::AdminOpcode::kKeepAlive);
    alive.cid = cid;
    const nvme::Cqe cqe = co_await host.ask(alive);
    EXPECT_TRUE(cqe.get_status().ok()) << text_of(cqe);
  }
  host.stream.reset();
  co_await box.close();
}

WORLD_TEST(Connects, NothingElseIsServedBefore) {
  Box box(env);
  co_await box.open(scene.any_port());
  RawHost host(env);
  co_await host.dial(box.address);
  co_await host.greet();
  Sqe sqe = Sqe::make(nvme::AdminOpcode::kKeepAlive);
  sqe.cid = 5;
  const nvme::Cqe early = co_await host.ask(sqe);
  EXPECT_EQ(early.get_status().code(), StatusCode::kCommandSequenceError);
  // Its data cannot come later: nothing else is read before it is answered.
  ConnectCommand command;
  command.queue_size = 31;
  command.sgl1 = nvme::SglDescriptor::transport(sizeof(ConnectData));
  const nvme::Cqe apart = co_await host.ask(nvme::to_sqe(command));
  EXPECT_EQ(apart.get_status().code(), StatusCode::kSglDescriptorTypeInvalid);
  command.sgl1 = nvme::SglDescriptor::in_capsule(512);
  const std::vector<std::byte> half(512);
  const nvme::Cqe part = co_await host.ask(nvme::to_sqe(command), half);
  EXPECT_EQ(part.get_status().code(), StatusCode::kDataSglLengthInvalid);
  const nvme::Cqe cqe = co_await host.connect({});
  EXPECT_TRUE(cqe.get_status().ok());
  const nvme::Cqe twice = co_await host.connect({});
  EXPECT_EQ(twice.get_status().code(), StatusCode::kCommandSequenceError);
  host.stream.reset();
  co_await box.close();
}

WORLD_TEST(Connects, EndOfTheAdminQueueEndsItsOthers) {
  Box box(env);
  co_await box.open(scene.any_port());
  RawHost admin(env);
  co_await admin.arrive(box.address);
  RawHost queue(env);
  co_await queue.join(box.address, admin, 1);
  admin.stream.reset();
  co_await expect_end(queue);
  co_await box.close();
}

WORLD_TEST(Connects, DisconnectEndsJustItsQueue) {
  Box box(env);
  co_await box.open(scene.any_port());
  RawHost admin(env);
  co_await admin.arrive(box.address);
  constexpr auto kAlone =
      nvme::ConnectAttributes::kNoFlowControl | nvme::ConnectAttributes::kDeleteIoQueues;
  RawHost first(env);
  co_await first.dial(box.address);
  co_await first.greet();
  const QueueWish wish{.id = 1, .controller = admin.controller_id, .attributes = kAlone};
  const nvme::Cqe connected = co_await first.connect(wish);
  EXPECT_TRUE(connected.get_status().ok());
  RawHost second(env);
  co_await second.join(box.address, admin, 2);

  const nvme::Cqe refused = co_await second.ask(nvme::to_sqe(nvme::DisconnectCommand{}));
  EXPECT_FALSE(refused.get_status().ok()) << "it did not say that it may";
  const nvme::Cqe never = co_await admin.ask(nvme::to_sqe(nvme::DisconnectCommand{}));
  EXPECT_EQ(never.get_status().code(), StatusCode::kDisconnectInvalidQueueType);
  const nvme::Cqe cqe = co_await first.ask(nvme::to_sqe(nvme::DisconnectCommand{}));
  EXPECT_TRUE(cqe.get_status().ok()) << text_of(cqe);
  co_await expect_end(first);

  const std::vector<std::byte> read = co_await second.read(1, 0, 1);
  EXPECT_EQ(read.size(), kBlock);
  RawHost again(env);
  co_await again.join(box.address, admin, 1);
  for (RawHost* each : {&admin, &second, &again}) each->stream.reset();
  co_await box.close();
}

}  // namespace
}  // namespace cairn::target_tests
