// SPDX-License-Identifier: Apache-2.0
#include "server/events/event_log.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "task/deadline.h"
#include "task/gate.h"
#include "testing/sim_test.h"

namespace cairn::server {
namespace {

using drive::Health;

// A file that may fail, in the middle of a line too.
class Keeper final : public EventKeeper {
 public:
  std::string found() override { return text; }
  Attempt<void> append(std::string_view line) override {
    if (fails) {
      text += line.substr(0, line.size() / 2);
      return refuse("the disk is full");
    }
    text += std::string(line) + "\n";
    return {};
  }
  Attempt<void> replace(std::string_view lines) override {
    if (fails) return refuse("the disk is full");
    text = lines;
    ++replaced;
    return {};
  }
  std::string text;
  bool fails = false;
  int replaced = 0;
};

Event lost(std::string subject) {
  return {.severity = Health::kDegraded,
          .kind = "drive",
          .subject = std::move(subject),
          .health = Health::kDegraded,
          .code = "leg_lost",
          .state = Event::State::kBegan,
          .what = "leg lost",
          .action = "cairn drive show"};
}

std::vector<std::string> subjects(const EventLog& log, const EventsWanted& wanted = {}) {
  std::vector<std::string> all;
  for (const Event& each : log.find(wanted).events) all.push_back(each.subject);
  return all;
}

SIM_TEST(EventLog, TellsPeopleAndProgramsTheSame) {
  std::vector<std::string> lines;
  EventLog log(env, {.role = "serve", .log = [&](config::LogLevel level, std::string_view line) {
                       lines.push_back(fmt::format("{}: {}", name(level), line));
                     }});
  log.tell(lost("safe"));
  log.tell({.kind = "process", .subject = "serve", .what = "it began"}, /*is_logged=*/false);
  CO_ASSERT_TRUE(lines.size() == 1);
  EXPECT_NE(lines[0].find("warn: "), std::string::npos) << lines[0];
  EXPECT_NE(lines[0].find("Z drive safe is degraded: leg lost"), std::string::npos) << lines[0];
  const EventsFound found = log.find({});
  CO_ASSERT_TRUE(found.events.size() == 2);
  EXPECT_EQ(found.events[0].id, 1u);
  EXPECT_EQ(found.events[0].role, "serve");
  EXPECT_EQ(found.last, 2u);
  EXPECT_FALSE(found.more);
  co_return;
}

SIM_TEST(EventLog, GivesPagesAndWhatIsNewer) {
  EventLog log(env, {.role = "serve"});
  for (const char* each : {"a", "b", "c"}) {
    log.tell(lost(each));
    const Result<void> slept = co_await task::sleep_for(env, 1_s);
    EXPECT_TRUE(slept);
  }
  EXPECT_EQ(subjects(log, {.count_max = 2}), (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(log.find({.count_max = 2}).more);
  EXPECT_EQ(subjects(log, {.after = 2}), std::vector<std::string>{"c"});
  EXPECT_EQ(subjects(log, log.newest(2)), (std::vector<std::string>{"b", "c"}));
  EXPECT_EQ(subjects(log, log.newest(9)), (std::vector<std::string>{"a", "b", "c"}));
  const WallTime second = log.find({}).events[1].time;
  EXPECT_EQ(subjects(log, {.since = second}), (std::vector<std::string>{"b", "c"}));
}

SIM_TEST(EventLog, ForgetsTheOldestFirst) {
  EventLog log(env, {.role = "serve", .count_max = 3});
  for (int i = 0; i < 10; ++i) log.tell(lost(fmt::to_string(i)));
  EXPECT_EQ(subjects(log), (std::vector<std::string>{"7", "8", "9"}));
  EventLog small(env, {.role = "serve", .bytes_max = 1000});
  for (int i = 0; i < 10; ++i) small.tell(lost(fmt::to_string(i)));
  EXPECT_LT(small.find({}).events.size(), 6u);
  EXPECT_EQ(small.find({}).events.back().subject, "9");
  co_return;
}

SIM_TEST(EventLog, HasEverythingAgainAfterARestart) {
  Keeper keeper;
  {
    EventLog log(env, {.role = "serve", .keeper = &keeper});
    log.tell(lost("a"));
    log.tell(lost("b"));
  }
  EventLog log(env, {.role = "serve", .keeper = &keeper});
  log.tell(lost("c"));
  EXPECT_EQ(subjects(log), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(log.find({}).last, 3u);
  EXPECT_EQ(keeper.replaced, 0) << "nothing was damaged";
  co_return;
}

// A crash leaves any part of what was written last.
SIM_TEST(EventLog, LosesNoMoreThanATornTail) {
  Keeper keeper;
  size_t first = 0;
  {
    EventLog log(env, {.role = "serve", .keeper = &keeper});
    log.tell(lost("a"));
    first = keeper.text.size();
    log.tell(lost("b"));
  }
  const std::string whole = keeper.text;
  for (size_t size = first; size < whole.size(); ++size) {
    Keeper torn;
    torn.text = whole.substr(0, size);
    EventLog log(env, {.role = "serve", .keeper = &torn});
    log.tell(lost("c"));
    EXPECT_EQ(subjects(log), (std::vector<std::string>{"a", "c"})) << size;
    EXPECT_EQ(log.find({}).last, 2u);
    const EventLog again(env, {.role = "serve", .keeper = &torn});
    EXPECT_EQ(subjects(again), (std::vector<std::string>{"a", "c"})) << size;
  }
  co_return;
}

SIM_TEST(EventLog, LeavesOutWhatIsDamagedAndSaysSo) {
  Keeper keeper;
  {
    EventLog log(env, {.role = "serve", .keeper = &keeper});
    for (const char* each : {"a", "b", "c"}) log.tell(lost(each));
  }
  keeper.text.replace(keeper.text.find("\"b\""), 3, "\"b\0");
  keeper.text += keeper.text.substr(0, keeper.text.find('\n') + 1);  // an id again
  keeper.text += std::string(100'000, 'x') + "\n";
  EventLog log(env, {.role = "serve", .keeper = &keeper});
  const EventsFound found = log.find({});
  CO_ASSERT_TRUE(found.events.size() == 3);
  EXPECT_EQ(found.events[0].subject, "a");
  EXPECT_EQ(found.events[1].subject, "c");
  EXPECT_EQ(found.events[2].code, "events_damaged");
  EXPECT_EQ(keeper.text.find('x' + std::string("xx")), std::string::npos) << "it is sound again";
  co_return;
}

SIM_TEST(EventLog, TakesNoIdThatLeavesNoRoom) {
  Keeper keeper;
  Event event = lost("a");
  event.id = kEventIdMax;
  keeper.text = encode_event(event) + "\n";
  EventLog log(env, {.role = "serve", .keeper = &keeper});
  log.tell(lost("b"));
  const EventLog again(env, {.role = "serve", .keeper = &keeper});
  EXPECT_EQ(again.find({}).events.back().subject, "b");
  co_return;
}

SIM_TEST(EventLog, KeepsWhatCouldNotBeKeptBeforeWhenItCanAgain) {
  Keeper keeper;
  int warned = 0;
  EventLog log(env, {.role = "serve",
                     .log =
                         [&](config::LogLevel, std::string_view line) {
                           warned +=
                               line.find("the disk is full") != std::string_view::npos ? 1 : 0;
                         },
                     .keeper = &keeper});
  log.tell(lost("a"));
  keeper.fails = true;
  log.tell(lost("b"));
  log.tell(lost("c"));
  EXPECT_EQ(warned, 1);
  keeper.fails = false;
  log.tell(lost("d"));
  const EventLog again(env, {.role = "serve", .keeper = &keeper});
  EXPECT_EQ(subjects(again), (std::vector<std::string>{"a", "b", "c", "d"}));
  co_return;
}

SIM_TEST(EventLog, BoundsWhatIsKept) {
  Keeper keeper;
  EventLog log(env, {.role = "serve", .keeper = &keeper, .bytes_max = 2000, .burst = 1000});
  size_t most = 0;
  for (int i = 0; i < 200; ++i) {
    log.tell(lost(fmt::to_string(i)));
    most = std::max(most, keeper.text.size());
  }
  EXPECT_LE(most, 4000u);
  EXPECT_GT(keeper.replaced, 1);
  const EventLog again(env, {.role = "serve", .keeper = &keeper, .bytes_max = 2000});
  EXPECT_EQ(again.find({}).events.back().subject, "199");
  EXPECT_EQ(again.find({}).last, 200u);
  co_return;
}

SIM_TEST(EventLog, DropsAFloodAndSaysHowMuch) {
  EventLog log(env, {.role = "serve", .burst = 10, .per_second = 1});
  for (int i = 0; i < 100; ++i) log.tell(lost(fmt::to_string(i)));
  EXPECT_EQ(log.find({}).events.size(), 10u);
  EXPECT_EQ(log.dropped(), 90u);
  const Result<void> slept = co_await task::sleep_for(env, 2_s);
  EXPECT_TRUE(slept);
  log.tell(lost("later"));
  const EventsFound found = log.find({.after = 10});
  CO_ASSERT_TRUE(found.events.size() == 2);
  EXPECT_EQ(found.events[0].code, "events_dropped");
  EXPECT_NE(found.events[0].what.find("90 changes"), std::string::npos);
  EXPECT_EQ(found.events[1].subject, "later");
}

task::Task<void> note_when(EventLog& log, uint64_t after, Time until, int& done) {
  co_await log.wait(after, until);
  ++done;
}

SIM_TEST(EventLog, WaitsForTheNextOne) {
  EventLog log(env, {.role = "serve"});
  log.tell(lost("a"));
  task::Gate gate;
  int done = 0;
  gate.spawn(note_when(log, 0, env.now() + 10_s, done));
  EXPECT_EQ(done, 1) << "there is one";
  gate.spawn(note_when(log, 1, env.now() + 10_s, done));
  gate.spawn(note_when(log, 1, env.now() + 1_s, done));
  Result<void> slept = co_await task::sleep_for(env, 2_s);
  EXPECT_EQ(done, 2) << "one waits no more";
  log.tell(lost("b"));
  slept = co_await task::sleep_for(env, 1_s);
  EXPECT_EQ(done, 3);
  gate.spawn(note_when(log, 2, env.now() + 10_s, done));
  log.close();
  slept = co_await task::sleep_for(env, 1_s);
  EXPECT_TRUE(slept);
  EXPECT_EQ(done, 4);
  co_await gate.close();
}

}  // namespace
}  // namespace cairn::server
