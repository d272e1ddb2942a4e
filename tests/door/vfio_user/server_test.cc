// SPDX-License-Identifier: Apache-2.0
// Clients that come, go, come too early or do not go; devices that are taken away.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "door/vfio_user/rig.h"
#include "task/gate.h"

namespace cairn::vfio_user_tests {
namespace {

WORLD_TEST_SUITE(VfioUserClients);

WORLD_TEST(VfioUserClients, ASecondClientIsToldThatTheDeviceIsInUse) {
  Rig rig(env);
  rig.open(scene);
  {
    Guest guest = co_await rig.guest();
    for (int i = 0; i < 3; ++i) {
      const Result<std::unique_ptr<Client>> second =
          co_await Client::connect(env, rig.address, env.stop_token());
      EXPECT_EQ(outcome(second), "unreachable");
      if (!second) {
        EXPECT_EQ(second.error().detail(), EBUSY);
      }
    }
    Le32 ids;
    co_await sure(guest.client->read(kConfig, 0, mutable_bytes_of(ids)));
  }
  co_await rig.close();
  // Once a second at most.
  EXPECT_GE(rig.log.size(), 1u);
  EXPECT_EQ(rig.log.at(0),
            "a vfio-user client of a was turned away: the device has another client");
}

WORLD_TEST(VfioUserClients, TheNextClientFindsANewDevice) {
  Rig rig(env);
  rig.open(scene);
  for (int i = 0; i < 3; ++i) {
    Guest guest = co_await rig.guest();
    Client& client = *guest.client;
    Le64 value;
    co_await sure(client.read(kBar0, 0x40, mutable_bytes_of(value)));
    EXPECT_EQ(value, 0u);
    Le16 command;
    co_await sure(client.read(kConfig, 4, mutable_bytes_of(command)));
    EXPECT_EQ(command, 0u);
    value = uint64_t{7};
    command = uint16_t{4};
    co_await sure(client.write(kBar0, 0x40, bytes_of(value)));
    co_await sure(client.write(kConfig, 4, bytes_of(command)));
    // It leaves with a copy in flight that would take a day.
    co_await sure(guest.copy(0, 4096, 8, 0, 86400_s));
    co_await sure(client.read(kBar0, 0x40, mutable_bytes_of(value)));
  }
  co_await rig.close();
}

Task<void> try_to_arrive(Rig& rig, Result<Guest>& guest) {
  guest = co_await arrive(rig.env, rig.address);
}

template <class World>
class VfioUserTurns : public Conformance<World> {};
TYPED_TEST_SUITE(VfioUserTurns, testing::Types<conformance::Sim>, WorldNames);

template <int64_t kSeconds>
Task<Result<std::unique_ptr<Device>>> make_slow(DeviceParts parts) {
  co_return std::make_unique<FakeDevice>(std::move(parts), 1_s * kSeconds);
}

WORLD_TEST(VfioUserTurns, WhoComesWhileTheLastOneLeavesWaitsForIt) {
  Rig rig(env);
  rig.address = scene.local_socket("vfio").value();
  must(rig.server->add("a", rig.address, make_slow<5>));
  for (int i = 0; i < 3; ++i) {
    const Time begin = env.now();
    {
      Guest guest = co_await rig.guest();
      Le32 ids;
      co_await sure(guest.client->read(kConfig, 0, mutable_bytes_of(ids)));
    }
    EXPECT_EQ(env.now() - begin >= 5_s, i > 0);
    EXPECT_LT(env.now() - begin, 6_s);
  }
  co_await rig.close();
  EXPECT_TRUE(rig.log.empty());
}

WORLD_TEST(VfioUserTurns, WaitingForTheLastOneToLeaveHasAnEnd) {
  Rig rig(env);
  rig.address = scene.local_socket("vfio").value();
  must(rig.server->add("a", rig.address, make_slow<60>));
  {
    Guest guest = co_await rig.guest();
  }
  const Time begin = env.now();
  const Result<Guest> early = co_await arrive(env, rig.address);
  EXPECT_EQ(outcome(early), "unreachable");
  EXPECT_GE(env.now() - begin, 9_s);
  EXPECT_LT(env.now() - begin, 12_s);
  co_await rig.close();
  EXPECT_EQ(rig.log.size(), 1u);
}

WORLD_TEST(VfioUserTurns, NobodyWaitsForADeviceThatIsRemoved) {
  Rig rig(env);
  rig.address = scene.local_socket("vfio").value();
  must(rig.server->add("a", rig.address, make_slow<5>));
  {
    Guest guest = co_await rig.guest();
  }
  task::Gate next;
  Result<Guest> waiting = fail(Errc::kInvalid, "it has not come");
  next.spawn(try_to_arrive(rig, waiting));
  const Result<void> slept = co_await task::sleep_for(env, 1_s);
  must(slept);
  co_await sure(rig.server->remove("a", Time::never()));
  co_await next.close();
  EXPECT_EQ(outcome(waiting), "unreachable");
  co_await rig.close();
}

WORLD_TEST(VfioUserClients, DevicesServeTheirClientsSideBySide) {
  Rig rig(env);
  rig.open(scene);
  {
    std::vector<Guest> guests;
    for (const char* name : {"b", "c", "d"}) {
      const env::Address at = scene.local_socket(name).value();
      must(rig.server->add(name, at, make_fake));
      Guest guest = co_await sure(arrive(env, at));
      guests.push_back(std::move(guest));
    }
    EXPECT_EQ(rig.server->clients(), 3u);
    EXPECT_EQ(outcome(rig.server->add("b", scene.local_socket("e").value(), make_fake)), "exists");
    EXPECT_EQ(outcome(rig.server->add("e", scene.any_port(), make_fake)), "invalid");
    for (Guest& guest : guests) {
      const auto signal = co_await sure(guest.client->listen(kMsix, 0));
      std::ranges::fill(guest.at(4096, 64), std::byte{5});
      co_await sure(guest.copy(4096, 8192, 64));
      co_await sure_of(*signal);
      EXPECT_EQ(guest.at(8192, 64)[63], std::byte{5});
    }
  }
  co_await rig.close();
}

Task<void> leave_when_asked(Guest& guest, bool& was_asked) {
  const auto signal = co_await sure(guest.client->listen(kReq, 0));
  const Result<void> asked = co_await signal->wait();
  was_asked = asked.has_value();
  guest.client = nullptr;
}

WORLD_TEST(VfioUserClients, ADeviceThatIsRemovedIsAskedBack) {
  Rig rig(env);
  rig.open(scene);
  Guest guest = co_await rig.guest();
  bool was_asked = false;
  {
    task::Gate leaving;
    Client& client = *guest.client;
    leaving.spawn(leave_when_asked(guest, was_asked));
    Le32 ids;
    co_await sure(client.read(kConfig, 0, mutable_bytes_of(ids)));  // after listen()
    co_await sure(rig.server->remove("a", Time::never()));
    co_await leaving.close();
  }
  EXPECT_TRUE(was_asked);
  const Result<void> twice = co_await rig.server->remove("a", Time::never());
  EXPECT_EQ(outcome(twice), "not_found");
  const Result<std::unique_ptr<Client>> late = co_await Client::connect(env, rig.address);
  EXPECT_EQ(outcome(late), "unreachable");
  must(rig.server->add("a", rig.address, make_fake));
  {
    Guest next = co_await rig.guest();
  }
  co_await rig.close();
}

WORLD_TEST(VfioUserClients, WhoDoesNotGiveItBackLosesIt) {
  Rig rig(env);
  rig.open(scene);
  {
    // Listens and stays.
    Guest guest = co_await rig.guest();
    const auto signal = co_await sure(guest.client->listen(kReq, 0));
    co_await sure(guest.copy(0, 4096, 8, 0, 86400_s));
    co_await sure(rig.server->remove("a", env.now() + 1_ms));
    co_await sure_of(*signal);
    Le32 ids;
    const Result<void> read = co_await guest.client->read(kConfig, 0, mutable_bytes_of(ids));
    EXPECT_FALSE(read.has_value());
  }
  must(rig.server->add("a", rig.address, make_fake));
  {
    // Does not listen.
    Guest guest = co_await rig.guest();
    co_await sure(rig.server->remove("a", Time::never()));
  }
  co_await rig.close();
}

WORLD_TEST(VfioUserClients, StoppingInOrderFinishesWhatDevicesDo) {
  Rig rig(env);
  rig.open(scene);
  {
    Guest guest = co_await rig.guest();
    const auto signal = co_await sure(guest.client->listen(kMsix, 0));
    std::ranges::fill(guest.at(4096, 64), std::byte{6});
    co_await sure(guest.copy(4096, 8192, 64, 0, 5_ms));
    const Le32 value(guest.rings);
    co_await sure(guest.client->write(kBar0, kDoorbellsAt, bytes_of(value)));
    co_await rig.server->drain(Time::never());
    co_await sure_of(*signal);
    EXPECT_EQ(guest.at(8192, 64)[63], std::byte{6});
    EXPECT_EQ(rig.server->clients(), 0u);
  }
  co_await rig.close();
}

WORLD_TEST(VfioUserClients, StoppingTakesNoLongerThanItMay) {
  Rig rig(env);
  rig.open(scene);
  {
    Guest guest = co_await rig.guest();
    co_await sure(guest.copy(4096, 8192, 64, 0, 86400_s));
    const Le32 value(guest.rings);
    co_await sure(guest.client->write(kBar0, kDoorbellsAt, bytes_of(value)));
    co_await rig.server->drain(env.now() + 1_ms);
    EXPECT_EQ(rig.server->clients(), 1u);
    co_await rig.close();
  }
}

Task<Result<std::unique_ptr<Device>>> make_none(DeviceParts) {
  co_return fail(Errc::kNoSpace, "a device that cannot be made");
}

WORLD_TEST(VfioUserClients, ADeviceThatCannotBeMadeIsRefused) {
  Rig rig(env);
  rig.address = scene.local_socket("vfio").value();
  must(rig.server->add("a", rig.address, make_none));
  for (int i = 0; i < 2; ++i) {
    const Result<std::unique_ptr<Client>> client = co_await Client::connect(env, rig.address);
    EXPECT_FALSE(client.has_value());
  }
  co_await rig.close();
}

}  // namespace
}  // namespace cairn::vfio_user_tests
