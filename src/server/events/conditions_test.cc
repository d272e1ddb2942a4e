// SPDX-License-Identifier: Apache-2.0
#include "server/events/conditions.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "task/deadline.h"
#include "testing/sim_test.h"

namespace cairn::server {
namespace {

using drive::Health;

Condition lacking(uint64_t left, Health health = Health::kDegraded) {
  return {.health = health,
          .code = "replicas_missing",
          .kind = "volume",
          .subject = "vol0",
          .what = fmt::format("{} extents lack copies", left),
          .action = "cairn volume show vol0",
          .left = left};
}

std::vector<std::string> told(const EventLog& log) {
  std::vector<std::string> lines;
  for (const Event& each : log.find({}).events) {
    lines.push_back(fmt::format("{} {} {}", severity_word(each.severity), state_word(each.state),
                                event_line(each)));
  }
  return lines;
}

task::Task<void> pass(env::Env& env, Duration time) {
  const Result<void> slept = co_await task::sleep_for(env, time);
  EXPECT_TRUE(slept);
}

SIM_TEST(Conditions, AreToldOnceWhenTheyComeChangeAndGo) {
  EventLog log(env, {.role = "up"});
  Conditions conditions(env, &log, "process", "up");
  conditions.take_in({});
  conditions.take_in({lacking(10)});
  conditions.take_in({lacking(4)});
  conditions.take_in({lacking(4, Health::kFailing)});
  EXPECT_EQ(conditions.worst(), Health::kFailing);
  conditions.take_in({});
  EXPECT_EQ(conditions.worst(), Health::kOk);
  EXPECT_EQ(told(log),
            (std::vector<std::string>{
                "warning began volume vol0 is degraded: 10 extents lack copies",
                "warning began process up is degraded: volume vol0: 10 extents lack copies",
                "error changed volume vol0 is failing: 4 extents lack copies",
                "error changed process up is failing: volume vol0: 4 extents lack copies",
                "info over volume vol0 is ok again: replicas missing is over",
                "info over process up is ok again: all is as it should be"}));
  co_return;
}

SIM_TEST(Conditions, SayHowFarTheMendingIsAndHowLongItTakes) {
  Conditions conditions(env, nullptr);
  conditions.take_in({lacking(100)});
  EXPECT_EQ(conditions.now()[0].now.percent, 0u);
  EXPECT_FALSE(conditions.now()[0].now.time_left);
  co_await pass(env, 10_s);
  conditions.take_in({lacking(80)});
  EXPECT_EQ(conditions.now()[0].now.percent, 20u);
  EXPECT_EQ(conditions.now()[0].now.time_left, 40_s);
  co_await pass(env, 5_s);
  const Json json = condition_json(env, conditions.now()[0]);
  EXPECT_EQ(number_at(json, "since_s"), 15u);
  EXPECT_EQ(number_at(json, "left_s"), 40u);
  // More is lost: it begins again, and is the same one since the beginning.
  conditions.take_in({lacking(200)});
  EXPECT_EQ(conditions.now()[0].now.percent, 0u);
  EXPECT_FALSE(conditions.now()[0].now.time_left);
  EXPECT_EQ((env.now() - conditions.now()[0].since).ns, Duration(15_s).ns);
}

SIM_TEST(Conditions, HaveTheWorstFirst) {
  Conditions conditions(env, nullptr);
  conditions.take_in({{.health = Health::kOk, .code = "note", .kind = "a", .subject = "a"},
                      {.health = Health::kFailing, .code = "bad", .kind = "b", .subject = "b"},
                      {.health = Health::kDegraded, .code = "worse", .kind = "c", .subject = "c"}});
  std::string order;
  for (const KnownCondition& each : conditions.now()) order += each.now.subject;
  EXPECT_EQ(order, "bca");
  co_return;
}

SIM_TEST(Conditions, OfOthersMakeNoSecondEvent) {
  EventLog log(env, {.role = "up"});
  Conditions conditions(env, &log);
  Condition other = lacking(1);
  other.is_told = true;
  conditions.take_in({other});
  conditions.take_in({});
  EXPECT_TRUE(told(log).empty());
  co_return;
}

SIM_TEST(Conditions, SaidTwiceAreOne) {
  EventLog log(env, {.role = "up"});
  Conditions conditions(env, &log);
  for (int i = 0; i < 3; ++i) conditions.take_in({lacking(2), lacking(3, Health::kFailing)});
  EXPECT_EQ(told(log).size(), 1u);
  EXPECT_EQ(conditions.now().size(), 1u);
  Condition elsewhere = lacking(1);
  elsewhere.place = "0.1";
  conditions.take_in({lacking(2), elsewhere});
  EXPECT_EQ(conditions.now().size(), 2u);
  co_return;
}

SIM_TEST(Conditions, SayWhatIsLeftOfASubjectsHealth) {
  EventLog log(env, {.role = "up"});
  Conditions conditions(env, &log);
  Condition failing = lacking(1, Health::kFailing);
  failing.code = "not_open";
  conditions.take_in({failing, lacking(1)});
  conditions.take_in({lacking(1)});
  EXPECT_EQ(told(log).back(), "info over volume vol0 is degraded: not open is over");
  co_return;
}

}  // namespace
}  // namespace cairn::server
