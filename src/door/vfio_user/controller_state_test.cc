// SPDX-License-Identifier: Apache-2.0
#include "door/vfio_user/controller_state.h"

#include <gtest/gtest.h>

#include "door/vfio_user/controller.h"
#include "door/vfio_user/controller_testing.h"
#include "nvme/format/feature_format.h"
#include "testing/sim_test.h"

namespace cairn::door::vfio_user {
namespace {

using env::Env;
using nvme::IoOpcode;
using nvme::Registry;
using nvme::StatusCode;
using task::Task;

ControllerState some_state() {
  ControllerState state;
  state.registers.configuration = 0x0046'0001;
  state.registers.status = 1;
  state.shadow = {.doorbells = 0x3000, .event_indexes = 0x4000};
  state.completion.resize(2);
  state.completion[1].tail = 7;
  state.submission.resize(2);
  state.submission[1].head = 9;
  state.untold.resize(1);
  state.event_requests.resize(3);
  state.features.resize(1);
  state.features[0].size = 16;
  return state;
}

TEST(ControllerState, BytesGiveTheSameState) {
  const std::vector<std::byte> bytes = some_state().encode();
  const Result<ControllerState> read = ControllerState::decode(bytes);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->encode(), bytes);
  EXPECT_EQ(read->completion[1].tail, 7u);
  EXPECT_EQ(read->submission[1].head, 9u);
  EXPECT_EQ(read->event_requests.size(), 3u);
}

TEST(ControllerState, EveryDamageIsFound) {
  const std::vector<std::byte> good = some_state().encode();
  for (size_t at = 0; at < good.size(); ++at) {
    std::vector<std::byte> bad = good;
    bad[at] ^= std::byte{0x10};
    const Result<ControllerState> read = ControllerState::decode(bad);
    EXPECT_FALSE(read) << at;
  }
  for (size_t size = 0; size < good.size(); size += 5) {
    EXPECT_FALSE(ControllerState::decode(Bytes(good).first(size)));
  }
  std::vector<std::byte> longer = good;
  longer.push_back({});
  EXPECT_FALSE(ControllerState::decode(longer));
}

TEST(ControllerState, OtherVersionsAreNamed) {
  std::vector<std::byte> bytes = some_state().encode();
  store(MutableBytes(bytes).subspan(offsetof(StateHeader, version)), kStateVersion + 1);
  EXPECT_EQ(ControllerState::decode(bytes).error().code(), Errc::kUnsupported);
}

class MovingController : public ControllerTest {};
INSTANTIATE_TEST_SUITE_P(Cores, MovingController, ::testing::Values(1, 2));

// The guest's controller in one process ends, and goes on in another one.
Task<void> move(Guest& guest, Registry& registry) {
  co_await guest.device->pause();
  const Result<std::vector<std::byte>> state = guest.device->save();
  EXPECT_TRUE(state);
  const std::unique_ptr<Device> before = std::move(guest.device);
  co_await before->close();
  Result<std::unique_ptr<Device>> successor =
      co_await PciController::make(guest.parts(), guest.controller_options(registry));
  EXPECT_TRUE(successor);
  guest.device = std::move(*successor);
  co_await guest.device->pause();
  EXPECT_TRUE(guest.device->load(*state));
  guest.device->resume();
}

Task<void> moves_under_load(Env& env, Registry& registry, GuestOptions options) {
  Guest guest(env, options);
  co_await guest.start(registry);
  nvme::Sqe set;
  set.opcode = static_cast<uint8_t>(nvme::AdminOpcode::kSetFeatures);
  nvme::SetFeaturesFields{.feature = nvme::Feature::kArbitration, .value = 0x0504'0302}.encode(set);
  StatusCode status = co_await guest.run_admin(set);
  EXPECT_EQ(status, StatusCode::kSuccess);
  nvme::Sqe event;
  event.opcode = static_cast<uint8_t>(nvme::AdminOpcode::kAsynchronousEventRequest);
  event.cid = 9999;
  guest.driver->admin_queue().submit(event);
  guest.driver->admin_queue().ring();
  co_await task::sleep_for(env, 50_us);
  DriverQueue& queue = guest.driver->queue(1);
  uint16_t next = 0;
  size_t done = 0;
  const auto count = [&](const nvme::Cqe& cqe) {
    EXPECT_EQ(cqe.get_status().code(), StatusCode::kSuccess) << cqe.cid;
    ++done;
  };
  for (int round = 0; round < 6; ++round) {
    for (int i = 0; i < 37; ++i) {
      nvme::Sqe sqe = guest.io(i % 2 == 0 ? IoOpcode::kRead : IoOpcode::kWrite, i, 1, 0);
      sqe.cid = ++next;
      queue.submit(sqe);
    }
    queue.ring();
    if (round % 2 == 0 && !options.is_told) guest.device->poll();
    co_await move(guest, registry);
    const Time until = env.now() + 1_s;
    while (done < next && env.now() < until) {
      queue.poll(count);
      co_await task::sleep_for(env, 10_us);
    }
    EXPECT_EQ(done, next) << "nothing is lost, nothing comes twice";
  }
  EXPECT_EQ(guest.status(), 1u);
  EXPECT_STREQ(guest.controller().figures().failure, "");
  nvme::Sqe get;
  get.opcode = static_cast<uint8_t>(nvme::AdminOpcode::kGetFeatures);
  nvme::GetFeaturesFields{.feature = nvme::Feature::kArbitration}.encode(get);
  const Result<nvme::Cqe> cqe = co_await guest.driver->admin(get);
  EXPECT_EQ(cqe.value_or(nvme::Cqe()).dw0, 0x0504'0302u) << "features move too";
  // The request for an event of the first controller is answered by the last.
  nvme::NamespaceOptions space;
  space.drive = *drive::Spec::parse("mem:size=64K");
  co_await env::call_on(env, CoreId(0),
                        [&](Env&) { return registry.add_namespace(kGuestNqn, space); });
  co_await task::sleep_for(env, 50_us);
  EXPECT_EQ(
      guest.driver->admin_queue().poll([](const nvme::Cqe& told) { EXPECT_EQ(told.cid, 9999u); }),
      1u);
  co_await guest.close();
}
TEST_P(MovingController, GoesOnWhereItStood) {
  run([](Env& env, Registry& registry) { return moves_under_load(env, registry, {}); });
}
TEST_P(MovingController, GoesOnWithShadowDoorbells) {
  run([](Env& env, Registry& registry) {
    return moves_under_load(env, registry, {.driver = {.shadow = true}});
  });
}
TEST_P(MovingController, GoesOnWhenItIsTold) {
  run([](Env& env, Registry& registry) {
    return moves_under_load(env, registry, {.is_told = true, .driver = {.shadow = true}});
  });
}
TEST_P(MovingController, GoesOnOverAFile) {
  drive = "file:/guest,size=4M,block=4096";
  run([](Env& env, Registry& registry) {
    return moves_under_load(env, registry, {.block = 4096});
  });
}

SIM_TEST_P(MovingController, CompletionsWithoutRoomMoveToo) {
  Guest guest(env, {.driver = {.entries = 8}});
  co_await guest.start(registry);
  DriverQueue& queue = guest.driver->queue(1);
  // Twelve reads for a ring of seven completions, as in a guest that is slow to look.
  for (uint16_t i = 0; i < 12; ++i) {
    nvme::Sqe sqe = guest.io(IoOpcode::kRead, 0, 1, 0);
    sqe.cid = i;
    store(queue.rings().submission.bytes.subspan(i % 8 * sizeof sqe), sqe);
    store(guest.page().subspan(Doorbell::tail_of(1).offset()), (i + 1u) % 8);
    co_await task::sleep_for(env, 5_us);
  }
  co_await move(guest, registry);
  co_await task::sleep_for(env, 50_us);
  std::vector<uint16_t> ids;
  const auto keep = [&](const nvme::Cqe& cqe) { ids.push_back(cqe.cid); };
  EXPECT_EQ(queue.poll(keep), 7u);
  co_await task::sleep_for(env, 50_us);
  EXPECT_EQ(queue.poll(keep), 5u);
  EXPECT_EQ(ids, (std::vector<uint16_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
  co_await guest.close();
}

SIM_TEST_P(MovingController, PauseHoldsEverything) {
  Guest guest(env, {});
  co_await guest.start(registry);
  co_await guest.device->pause();
  DriverQueue& queue = guest.driver->queue(1);
  nvme::Sqe sqe = guest.io(IoOpcode::kRead, 0, 1, 0);
  queue.submit(sqe);
  queue.ring();
  co_await task::sleep_for(env, 100_us);
  EXPECT_FALSE(queue.has_completion()) << "nothing begins while it is paused";
  guest.device->resume();
  co_await task::sleep_for(env, 100_us);
  EXPECT_TRUE(queue.has_completion());
  // Reset while paused, and closed while paused.
  co_await guest.device->pause();
  co_await guest.device->reset();
  EXPECT_EQ(guest.status(), 0u);
  const Result<void> started = co_await guest.driver->start();
  EXPECT_TRUE(started);
  co_await guest.device->pause();
  co_await guest.close();
}

SIM_TEST_P(MovingController, StatesThatCannotBeFailTheController) {
  Guest guest(env, {});
  co_await guest.start(registry);
  co_await guest.device->pause();
  const Result<std::vector<std::byte>> good = guest.device->save();
  EXPECT_TRUE(good);
  EXPECT_FALSE(guest.device->load({})) << "no state at all";
  guest.device->resume();
  co_await task::sleep_for(env, 50_us);
  EXPECT_EQ(guest.status(), 0u) << "as after a reset";
  // States with a right checksum that are wrong otherwise.
  const auto load = [&](const std::function<void(ControllerState&)>& spoil) {
    ControllerState state = *ControllerState::decode(*good);
    spoil(state);
    EXPECT_TRUE(guest.device->load(state.encode()));
    guest.device->resume();
  };
  for (const auto& spoil : std::vector<std::function<void(ControllerState&)>>{
           [](ControllerState& state) { state.completion[1].tail = 64; },
           [](ControllerState& state) { state.submission[1].head = 64; },
           [](ControllerState& state) { state.completion[1].address = 0; },
           [](ControllerState& state) { state.submission[1].completion = 5; },
           [](ControllerState& state) { state.submission.push_back(state.submission[1]); },
           [](ControllerState& state) { state.registers.admin_sizes = 0; },
           [](ControllerState& state) { state.registers.admin_submission = 0; },
           [](ControllerState& state) { state.shadow.doorbells = 0x123; },
           [](ControllerState& state) { state.features.resize(2); },
           [](ControllerState& state) {
             state.untold.resize(1);
             state.untold[0].cqe.sqid = 77;
           },
           [](ControllerState& state) { state.event_requests.resize(100); }}) {
    co_await guest.device->pause();
    load(spoil);
    co_await task::sleep_for(env, 100_us);
    EXPECT_EQ(guest.status() & 2, 2u) << "it fails instead of going on";
    const Result<void> started = co_await guest.driver->start();
    EXPECT_TRUE(started) << started.error().text();
  }
  co_await guest.close();
}

}  // namespace
}  // namespace cairn::door::vfio_user
