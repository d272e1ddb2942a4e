// SPDX-License-Identifier: Apache-2.0
// Stacks that are changed while they are used: hundreds of edits at random under a load whose every
// answer is checked, with power losses in the middle of an edit.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <string>
#include <utility>

#include "stack/live_stack.h"
#include "task/deadline.h"
#include "testing/stack/stack_load.h"
#include "world/sim/cluster.h"
#include "world/sim/scenario/scenario.h"

namespace cairn::stack {
namespace {

// Up to three services over a stack that leave its blocks where they are.
std::string dressed(Rng& rng, std::string stack) {
  for (uint64_t left = rng.below(4); left > 0; --left) {
    switch (rng.below(4)) {
      case 0:
        stack = fmt::format("limit({}, iops={})", stack, rng.between(20'000, 90'000));
        break;
      case 1:
        stack = fmt::format("priority({}, floor={})", stack, rng.between(5, 20));
        break;
      case 2:
        stack = fmt::format("limit(priority({}), bytes=1G)", stack);
        break;
      default:
        stack = fmt::format("slice({})", stack);
    }
  }
  return stack;
}

// The same blocks on the same two drives, whatever is drawn.
std::string draw_stack(Rng& rng, bool mirrored) {
  std::string a = dressed(rng, "file:a,size=1M");
  std::string b = dressed(rng, "file:b,size=1M");
  if (mirrored) {
    if (rng.bernoulli(0.3)) std::swap(a, b);  // a mirror knows its legs
    return dressed(rng,
                   fmt::format("mirror({}, {}, rate={})", a, b, rng.bernoulli(0.5) ? 0 : 1 << 30));
  }
  return dressed(rng, fmt::format("stripe({}, {}, chunk=16K)", a, b));
}

// Changes the stack that a load uses, again and again.
class Editor {
 public:
  Editor(StackLoad& load, bool mirrored) : load_(load), mirrored_(mirrored) {
    load.on_live = [this](drive::LiveStack* live) { live_ = live; };
  }

  task::Task<void> run(env::Env& env) {
    while (live_ == nullptr && load_.failure().empty() && !env.stop_token().requested()) {
      co_await pause(env);
    }
    while (live_ != nullptr && failure_.empty() && !env.stop_token().requested()) {
      wanted_ = draw_stack(env.rng(), mirrored_);
      is_editing_ = true;
      const drive::LiveStack::Edited edited = co_await live_->edit(wanted_);
      is_editing_ = false;
      if (env.stop_token().requested()) co_return;
      if (!edited) {
        failure_ = fmt::format("{}\nto {}: {}", load_text_, wanted_, edited.error().text);
        co_return;
      }
      ++edits_;
      load_text_ = wanted_;
      load_.open_next(wanted_);
      co_await pause(env);
    }
  }
  // After a power loss: whichever of the two it was, both open.
  void crashed(Rng& rng, bool within_edit) {
    live_ = nullptr;
    if (!within_edit) return;
    ++crashed_within_;
    if (rng.bernoulli(0.5)) load_.open_next(wanted_);
  }

  bool is_editing() const { return is_editing_; }
  const std::string& failure() const { return failure_; }
  uint64_t edits() const { return edits_; }
  uint64_t crashed_within() const { return crashed_within_; }

 private:
  static task::Task<void> pause(env::Env& env) {
    const Duration time{static_cast<int64_t>(env.rng().below(400'000))};
    const Result<void> slept = co_await task::sleep_for(env, time, env.stop_token());
    (void)slept;
  }

  StackLoad& load_;
  const bool mirrored_;
  drive::LiveStack* live_ = nullptr;
  bool is_editing_ = false;
  uint64_t edits_ = 0;
  uint64_t crashed_within_ = 0;
  std::string wanted_;
  std::string load_text_;
  std::string failure_;
};

// The load waits for the last edit before it closes the stack, as whoever owns one must.
task::Task<void> live(env::Env& env, StackLoad& load, Editor& editor) {
  task::Task<void> editing = editor.run(env);
  co_await load.live(env);
  co_await std::move(editing);
}

class Edits : public testing::TestWithParam<bool> {};

TEST_P(Edits, AreNotSeenAboveAndSurvivePowerLosses) {
  const bool mirrored = GetParam();
  uint64_t edits = 0;
  uint64_t within = 0;
  size_t seeds = 0;
  for (const uint64_t seed : sim::seeds_to_run(4)) {
    ++seeds;
    Rng rng(seed);
    StackLoad load({.stack = draw_stack(rng, mirrored), .requests = 3000});
    Editor editor(load, mirrored);
    sim::Cluster cluster({.seed = seed});
    sim::Node& node = cluster.node("host");
    node.start([&](env::Env& env) { return live(env, load, editor); });
    for (int life = 0; life < 5 && load.failure().empty() && editor.failure().empty(); ++life) {
      const uint64_t target = load.done() + rng.below(1000);
      const uint64_t finished = load.finished();
      const bool within_edit = rng.bernoulli(0.7);
      const auto is_time = [&] {
        return (load.done() >= target && (!within_edit || editor.is_editing())) ||
               !node.is_running();
      };
      ASSERT_TRUE(cluster.run_until(is_time, 1000_s)) << cluster.report();
      if (load.finished() == finished) {
        const bool was_editing = editor.is_editing();
        node.crash();
        load.crashed();
        editor.crashed(rng, was_editing);
      }
      node.restart();
    }
    const auto has_ended = [&] { return !node.is_running(); };
    ASSERT_TRUE(cluster.run_until(has_ended, 1000_s)) << cluster.report();
    ASSERT_EQ(load.failure(), "") << cluster.report();
    ASSERT_EQ(editor.failure(), "") << cluster.report();
    edits += editor.edits();
    within += editor.crashed_within();
  }
  if (seeds < 4) return;  // somebody repeats one
  EXPECT_GT(edits, 200U);
  EXPECT_GT(within, 0U);
}

INSTANTIATE_TEST_SUITE_P(Stacks, Edits, testing::Bool(), [](const testing::TestParamInfo<bool>& i) {
  return i.param ? "mirror" : "stripe";
});

}  // namespace
}  // namespace cairn::stack
