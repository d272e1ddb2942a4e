// SPDX-License-Identifier: Apache-2.0
#include "server/events/event_hook.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "task/deadline.h"
#include "testing/sim_test.h"

namespace cairn::server {
namespace {

// Commands that take as long as they are told.
class Runner final : public CommandRunner {
 public:
  explicit Runner(env::Env& its_env) : env(its_env) {}
  Attempt<void> start(std::string_view input) override {
    EXPECT_FALSE(runs) << "one at a time";
    if (cannot_start) return refuse("there is no shell");
    inputs.emplace_back(input);
    starts.push_back(env.now());
    runs = true;
    done = env.now() + takes;
    return {};
  }
  std::optional<int> ended() override {
    if (env.now() < done) return std::nullopt;
    runs = false;
    return status;
  }
  void kill() override {
    ++kills;
    done = env.now();
  }

  env::Env& env;
  Duration takes{};
  int status = 0;
  bool cannot_start = false;
  bool runs = false;
  Time done;
  int kills = 0;
  std::vector<std::string> inputs;
  std::vector<Time> starts;
};

struct Said {
  std::vector<std::string> lines;
  std::function<void(config::LogLevel, std::string_view)> log() {
    return [this](config::LogLevel, std::string_view line) { lines.emplace_back(line); };
  }
};

task::Task<void> pass(env::Env& env, Duration time) {
  const Result<void> slept = co_await task::sleep_for(env, time);
  EXPECT_TRUE(slept);
}

SIM_TEST(EventHook, RunsAtOnceAndThenNotMoreThanOnceASecond) {
  Runner runner(env);
  EventHook hook(env, runner, {});
  hook.add("1");
  CO_ASSERT_TRUE(runner.inputs.size() == 1);
  for (int i = 2; i <= 100; ++i) hook.add(fmt::to_string(i));
  co_await pass(env, 10_s);
  CO_ASSERT_TRUE(runner.inputs.size() == 2);
  EXPECT_EQ(runner.inputs[0], "1\n");
  EXPECT_TRUE(runner.inputs[1].starts_with("2\n3\n")) << runner.inputs[1];
  EXPECT_TRUE(runner.inputs[1].ends_with("\n99\n100\n"));
  EXPECT_GE((runner.starts[1] - runner.starts[0]).ns, Duration(1_s).ns);
  co_await hook.close();
}

SIM_TEST(EventHook, KillsACommandThatHangsAndGoesOn) {
  Runner runner(env);
  Said said;
  runner.takes = 3600_s;
  EventHook hook(env, runner, said.log());
  hook.add("1");
  hook.add("2");
  co_await pass(env, 29_s);
  EXPECT_EQ(runner.kills, 0);
  runner.takes = {};
  co_await pass(env, 5_s);
  EXPECT_EQ(runner.kills, 1);
  EXPECT_EQ(runner.inputs, (std::vector<std::string>{"1\n", "2\n"}));
  CO_ASSERT_TRUE(said.lines.size() == 1);
  EXPECT_NE(said.lines[0].find("did not end within 30 s"), std::string::npos) << said.lines[0];
  co_await hook.close();
}

SIM_TEST(EventHook, KeepsTheNewestOfThoseThatWait) {
  Runner runner(env);
  runner.takes = 10_s;
  EventHook hook(env, runner, {}, {.lines_max = 3});
  hook.add("0");
  for (int i = 1; i <= 5; ++i) hook.add(fmt::to_string(i));
  EXPECT_EQ(hook.dropped(), 2u);
  co_await pass(env, 12_s);
  CO_ASSERT_TRUE(runner.inputs.size() == 2);
  EXPECT_EQ(runner.inputs[1], "3\n4\n5\n");
  co_await hook.close();
}

SIM_TEST(EventHook, SaysOnceThatItFails) {
  Runner runner(env);
  Said said;
  runner.status = 127;
  EventHook hook(env, runner, said.log());
  for (int i = 0; i < 3; ++i) {
    hook.add("1");
    co_await pass(env, 5_s);
  }
  EXPECT_EQ(runner.inputs.size(), 3u);
  CO_ASSERT_TRUE(said.lines.size() == 1);
  EXPECT_NE(said.lines[0].find("status 127"), std::string::npos) << said.lines[0];
  runner.status = 0;
  hook.add("1");
  co_await pass(env, 5_s);
  runner.cannot_start = true;
  hook.add("1");
  EXPECT_EQ(said.lines.size(), 2u);
  co_await hook.close();
}

SIM_TEST(EventHook, HoldsNoEndUp) {
  Runner runner(env);
  runner.takes = 3600_s;
  EventHook hook(env, runner, {});
  hook.add("1");
  hook.add("2");
  const Time began = env.now();
  co_await hook.close();
  EXPECT_EQ(runner.kills, 1);
  EXPECT_LT((env.now() - began).ns, Duration(4_s).ns);
}

SIM_TEST(EventHook, TellsTheLastOnesAtTheEnd) {
  Runner runner(env);
  runner.takes = 100_ms;
  EventHook hook(env, runner, {});
  hook.add("1");
  hook.add("2");
  co_await hook.close();
  EXPECT_EQ(runner.inputs, (std::vector<std::string>{"1\n", "2\n"}));
  EXPECT_EQ(runner.kills, 0);
}

}  // namespace
}  // namespace cairn::server
