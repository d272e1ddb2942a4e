// SPDX-License-Identifier: Apache-2.0
// Agents and a controller that crash, in a network that fails: no request is counted that was not
// made, and when all is well again so is the view.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <string>

#include "rpc/server.h"
#include "task/deadline.h"
#include "task/sync.h"
#include "view/remote_view.h"
#include "view/view_service.h"
#include "view/view_testing.h"
#include "world/sim/scenario/fault_plan.h"
#include "world/sim/scenario/scenario.h"

namespace cairn::view {
namespace {

using env::Env;
using task::Task;

constexpr uint16_t kPort = 4450;
constexpr std::array kHosts = {"host1", "host2"};

// What the outside world knows; a crash does not touch it.
struct Known {
  uint64_t noted = 0;                     // by all agents
  std::map<std::string, uint64_t> right;  // of each host: views that told the truth of it
  std::string mistake;
};

Task<void> serve(Env& env, env::Address at) {
  Controller controller(env.rng().next(), {test_box()});
  ViewService service(env, controller);
  rpc::Server server(env, service);
  if (server.listen(at)) {
    task::Event never;
    [[maybe_unused]] const Result<void> stopped = co_await never.wait(env.stop_token());
  }
  co_await server.close();
}

void look(const View& view, const std::string& host, Known& known) {
  uint64_t counted = 0;
  for (const ComponentView& component : view.components) {
    if (component.id.kind == Kind::kDrive) counted += component.recency;
  }
  if (counted > known.noted) known.mistake = "a request was counted that was not made";
  for (const FlowView& flow : view.flows) {
    const uint64_t ops = flow.reads.ops_per_s;
    if (flow.client == host && ops >= 475 && ops <= 525) ++known.right[host];
  }
}

// 500 requests a second, and a look now and then.
Task<void> use(Env& env, env::Address server, std::string host, Known& known) {
  RemoteView view(env, {.client = {.servers = {server}, .connect_timeout = 200_ms}, .name = host});
  const Result<SessionId> session =
      view.open_session({.id = {}, .volume = host, .box = "b1", .port = 0});
  EXPECT_TRUE(session);
  Time looked = env.now();
  while (session && !env.stop_token().requested()) {
    [[maybe_unused]] const Result<void> slept =
        co_await task::sleep_for(env, 2_ms, env.stop_token());
    ++known.noted;
    view.note(
        {.session = *session, .drive = 1, .bytes = 4096, .rtt = 90_us, .completed = env.now()});
    if (env.now() - looked < 500_ms) continue;
    looked = env.now();
    task::Deadline soon(env, env.now() + 1_ms, env.stop_token());
    const Result<View> whole = co_await view.query("", soon.token());
    if (whole) look(*whole, host, known);
  }
  co_await view.close();
}

class ViewWorkload final : public sim::Workload {
 public:
  void start(sim::Cluster& cluster) override {
    sim::Node& server = cluster.node("controller");
    const env::Address at = server.address(kPort);
    server.start([at](Env& env) { return serve(env, at); });
    for (const char* host : kHosts) {
      cluster.node(host).start([this, at, host](Env& env) { return use(env, at, host, known_); });
    }
  }
  uint64_t progress() const override {
    uint64_t least = UINT64_MAX;
    for (const char* host : kHosts) {
      const auto right = known_.right.find(host);
      least = std::min(least, right == known_.right.end() ? 0 : right->second);
    }
    return least;
  }
  std::string check(sim::Cluster&) override { return known_.mistake; }

 private:
  Known known_;
};

TEST(ViewScenario, NothingIsMadeUpAndTheViewIsRightWhenAllIsWell) {
  using Kind = sim::Fault::Kind;
  sim::Scenario scenario{.name = "view"};
  scenario.make = [] { return std::make_unique<ViewWorkload>(); };
  scenario.faults.nodes = {"controller", kHosts[0], kHosts[1]};
  scenario.faults.kinds = {Kind::kCrash, Kind::kKill,      Kind::kPause,   Kind::kClockStep,
                           Kind::kClog,  Kind::kPartition, Kind::kIsolate, Kind::kPartitionOneWay,
                           Kind::kReset};
  scenario.draw = [](sim::ClusterOptions& options, Rng& rng) { sim::draw_options(options, rng); };
  scenario.seeds = 20;
  EXPECT_EQ(run_scenario(scenario), "");
}

}  // namespace
}  // namespace cairn::view
