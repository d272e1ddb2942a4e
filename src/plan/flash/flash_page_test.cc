// SPDX-License-Identifier: Apache-2.0
#include "plan/flash/flash_page.h"

#include <gtest/gtest.h>

#include "model/flash/workload.h"
#include "plan/flash/flash_profile.h"

namespace cairn::plan {
namespace {

struct FlashTrial {
  explicit FlashTrial(const flash::Synthetic& load)
      : model(*load_flash_profile("laptop-tlc")), history(model) {
    flash::run_synthetic(model, load, [this](const flash::Completion& completion) {
      (completion.op == flash::Op::kRead ? reads : writes)
          .add(completion.done - completion.arrival);
      history.completed(completion);
    });
    history.end();
  }
  std::string page() const {
    return flash_page({.drive = "<laptop>",
                       .load = "writes",
                       .reads = reads,
                       .writes = writes,
                       .history = history,
                       .model = model});
  }
  flash::FlashModel model;
  FlashHistory history;
  LatencyTally reads;
  LatencyTally writes;
};

TEST(FlashHistory, IsBoundedInOrderAndWhole) {
  const FlashTrial run({.read_fraction = 0.5, .requests = 20'000, .queue_depth = 16});
  const std::vector<FlashSample>& samples = run.history.samples();
  ASSERT_GT(samples.size(), FlashHistory::kSamplesMax / 4);
  EXPECT_LE(samples.size(), FlashHistory::kSamplesMax);
  for (size_t i = 1; i < samples.size(); ++i) {
    EXPECT_GT(samples[i].at, samples[i - 1].at);
    EXPECT_GE(samples[i].read_bytes, samples[i - 1].read_bytes);
    EXPECT_GE(samples[i].dies_busy, samples[i - 1].dies_busy);
  }
  EXPECT_EQ(samples.front().read_bytes, 0u);
  EXPECT_EQ(samples.back().at, run.model.now());
  EXPECT_EQ(samples.back().read_bytes + samples.back().written_bytes, 20'000u * 4096);
  EXPECT_EQ(samples.back().user_pages, run.model.counters().user_pages_programmed);
}

TEST(FlashHistory, NoPartIsBusierThanTimeAllows) {
  const FlashTrial run({.read_fraction = 0.5, .requests = 20'000, .queue_depth = 64});
  const std::vector<FlashSample>& samples = run.history.samples();
  ASSERT_GT(samples.size(), 10u);
  EXPECT_GT(samples.back().dies_busy, samples.front().dies_busy);
  for (size_t i = 1; i < samples.size(); ++i) {
    EXPECT_LE(samples[i].dies_busy - samples[i - 1].dies_busy,
              (samples[i].at - samples[i - 1].at) * run.model.geometry().dies());
  }
}

TEST(FlashPage, ShowsEveryPlotAndEscapesNames) {
  const std::string page =
      FlashTrial({.read_fraction = 0.5, .requests = 5'000, .queue_depth = 16}).page();
  for (const char* part :
       {"&lt;laptop&gt;", "took at most so long", "Completed", "Busy, by channel",
        "Pages programmed", "Blocks erased", "Write amplification"}) {
    EXPECT_NE(page.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(page.find("http-equiv"), std::string::npos);
  EXPECT_EQ(page.find("<script"), std::string::npos);
  EXPECT_EQ(page.find("src="), std::string::npos);
}

TEST(FlashPage, ReadsAloneHaveNoCurveOfWrites) {
  const std::string page =
      FlashTrial({.read_fraction = 1, .requests = 100, .queue_depth = 1}).page();
  EXPECT_NE(page.find("reads"), std::string::npos);
  EXPECT_EQ(page.find(">writes<"), std::string::npos);
}

TEST(FlashPage, NothingDoneIsAPageToo) {
  const std::string page = FlashTrial({.requests = 0}).page();
  EXPECT_NE(page.find("no data"), std::string::npos);
}

}  // namespace
}  // namespace cairn::plan
