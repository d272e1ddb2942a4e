// SPDX-License-Identifier: Apache-2.0
// Agents and onlookers in other processes: reports, pulls and events over a simulated network.
#include "view/remote_view.h"

#include <gtest/gtest.h>

#include "rpc/server.h"
#include "task/deadline.h"
#include "testing/sim_test.h"
#include "view/analysis.h"
#include "view/view_service.h"
#include "view/view_testing.h"
#include "view/view_wire_format.h"

namespace cairn::view {
namespace {

using task::Task;

struct Served {
  Served(env::Env& env, uint64_t incarnation)
      : controller(incarnation, {test_box()}), service(env, controller), server(env, service) {}
  Controller controller;
  ViewService service;
  rpc::Server server;
};

RemoteViewOptions options_of(const env::Address& at, std::string name) {
  return {.client = {.servers = {at}, .connect_timeout = 200_ms}, .name = std::move(name)};
}

// Does requests at a drive for some time.
Task<void> use(env::Env& env, RemoteView& view, SessionId session, Stream stream, Duration time) {
  for (const Time end = env.now() + time; env.now() < end;) {
    [[maybe_unused]] const Result<void> slept = co_await task::sleep_for(env, stream.every);
    view.note({.session = session,
               .drive = stream.drive,
               .type = stream.type,
               .bytes = stream.bytes,
               .rtt = stream.rtt,
               .completed = env.now()});
  }
}

SIM_TEST(RemoteView, WhatAgentsReportAnybodyCanAsk) {
  Served served(env, 1);
  const Result<env::Address> at = served.server.listen(env::Address::loopback(0));
  CO_ASSERT_TRUE(at.has_value());
  RemoteView view(env, options_of(*at, "host1"));
  const Result<SessionId> session =
      view.open_session({.id = {}, .volume = "vol1", .box = "b1", .port = 0});
  CO_ASSERT_TRUE(session.has_value());
  co_await use(env, view, *session, {.drive = 2, .every = 1_ms, .rtt = 7_ms}, 1_s);
  const Result<View> whole = co_await view.query("");
  CO_ASSERT_TRUE(whole.has_value());
  EXPECT_NEAR(static_cast<double>(whole->find(drive_id(2))->traffic[1].now.ops_per_s), 1000, 50);
  EXPECT_TRUE(whole->find(drive_id(2))->drive->is_congested);
  EXPECT_NE(text(*whole, explain(*whole, "vol1")).find("drive b1/d2 (congested)"),
            std::string::npos);
  const Result<View> other = co_await view.query("vol2");
  CO_ASSERT_TRUE(other.has_value());
  EXPECT_TRUE(other->flows.empty());
  EXPECT_FALSE(view.agent().is_stale(drive_id(2)));
  EXPECT_EQ(view.agent().counters().dropped, 0u);
  co_await view.close();
  co_await served.server.close();
}

SIM_TEST(RemoteView, TheUseOfOthersIsPulled) {
  Served served(env, 1);
  const Result<env::Address> at = served.server.listen(env::Address::loopback(0));
  CO_ASSERT_TRUE(at.has_value());
  RemoteView one(env, options_of(*at, "host1"));
  RemoteView two(env, options_of(*at, "host2"));
  const Result<SessionId> first =
      one.open_session({.id = {}, .volume = "vol1", .box = "b1", .port = 0});
  const Result<SessionId> second =
      two.open_session({.id = {}, .volume = "vol2", .box = "b1", .port = 1});
  CO_ASSERT_TRUE(first.has_value());
  CO_ASSERT_TRUE(second.has_value());
  Task<void> busy = use(env, two, *second, {.drive = 0, .every = 500_us, .rtt = 9_ms}, 1_s);
  co_await use(env, one, *first, {.drive = 0, .every = 50_ms, .rtt = 8_ms}, 1_s);
  co_await busy;
  const ComponentView* seen = one.agent().find(drive_id(0));
  CO_ASSERT_TRUE(seen != nullptr);
  EXPECT_GT(seen->traffic[1].now.ops_per_s, 1800u);
  EXPECT_TRUE(seen->drive->is_congested);
  // What it does not use is not pulled.
  EXPECT_EQ(one.agent().find({BoxId(0), Kind::kPort, 1}), nullptr);
  co_await one.close();
  co_await two.close();
  co_await served.server.close();
}

SIM_TEST(RemoteView, AWatcherIsToldOnceThatADriveIsBusy) {
  Served served(env, 1);
  const Result<env::Address> at = served.server.listen(env::Address::loopback(0));
  CO_ASSERT_TRUE(at.has_value());
  RemoteView view(env, options_of(*at, "host1"));
  const Result<SessionId> session =
      view.open_session({.id = {}, .volume = "vol1", .box = "b1", .port = 0});
  CO_ASSERT_TRUE(session.has_value());
  auto events = co_await view.watch({.watches = {{.drive = drive_id(1), .below = 100}}});
  CO_ASSERT_TRUE(events.has_value());
  co_await use(env, view, *session, {.drive = 1, .every = 1_ms, .rtt = 9_ms}, 1_s);
  const Result<rpc::Reply> push = co_await (*events)->next({});
  CO_ASSERT_TRUE(push.has_value());
  const Result<Event> event = decode<Event>(as_bytes(push->body));
  CO_ASSERT_TRUE(event.has_value());
  EXPECT_TRUE(event->is_below);
  EXPECT_EQ(event->crossings, 1u);
  task::Deadline soon(env, env.now() + 100_ms);
  const Result<rpc::Reply> none = co_await (*events)->next(soon.token());
  EXPECT_FALSE(none.has_value());
  auto refused = co_await view.watch({.watches = {{.drive = drive_id(9)}}});
  if (refused) {
    const Result<rpc::Reply> reply = co_await (*refused)->next({});
    EXPECT_TRUE(!reply || reply->refusal == Errc::kNotFound);
    refused->reset();
  }
  events->reset();
  co_await view.close();
  co_await served.server.close();
}

// The controller's process ends and another starts: within a second the view is as it was.
SIM_TEST(RemoteView, AnotherControllerKnowsTheViewWithinASecond) {
  auto served = std::make_unique<Served>(env, 1);
  const Result<env::Address> at = served->server.listen(env::Address::loopback(0));
  CO_ASSERT_TRUE(at.has_value());
  RemoteView view(env, options_of(*at, "host1"));
  const Result<SessionId> session =
      view.open_session({.id = {}, .volume = "vol1", .box = "b1", .port = 0});
  CO_ASSERT_TRUE(session.has_value());
  Task<void> busy = use(env, view, *session, {.drive = 3, .every = 1_ms}, 5_s);
  [[maybe_unused]] const Result<void> first = co_await task::sleep_for(env, 1_s);
  co_await served->server.close();
  served = std::make_unique<Served>(env, 2);
  CO_ASSERT_TRUE(served->server.listen(*at).has_value());
  [[maybe_unused]] const Result<void> second = co_await task::sleep_for(env, 1_s);
  const Result<View> whole = co_await view.query("");
  CO_ASSERT_TRUE(whole.has_value());
  EXPECT_EQ(whole->controller, 2u);
  EXPECT_NEAR(static_cast<double>(whole->find(drive_id(3))->traffic[1].now.ops_per_s), 1000, 50);
  co_await busy;
  co_await view.close();
  co_await served->server.close();
}

}  // namespace
}  // namespace cairn::view
