// SPDX-License-Identifier: Apache-2.0
// Drives that are known, measured by the model, written as fio writes, and fitted from there.
#include "plan/flash/flash_fit.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "plan/flash/fit_report.h"
#include "plan/flash/flash_profile.h"
#include "plan/flash/flash_profile_text.h"
#include "plan/flash/least_squares.h"

namespace cairn::plan {
namespace {

using flash::Parameters;

struct Load {
  const char* rw;
  const char* bs;
  int depth;
  const char* size = "100%";
};

// Runs the loads on a drive and writes what fio would. Other requests and more of them than the
// fit's, as a real measurement has.
std::string measured_by_fio(const Parameters& drive, std::initializer_list<Load> loads) {
  nlohmann::json jobs = nlohmann::json::array();
  for (const Load& load : loads) {
    const std::string depth = std::to_string(load.depth);
    nlohmann::json job = {{"jobname", fmt::format("{}-{}-{}", load.rw, load.bs, load.depth)},
                          {"groupid", jobs.size()},
                          {"error", 0},
                          {"job options",
                           {{"rw", load.rw},
                            {"bs", load.bs},
                            {"size", load.size},
                            {"iodepth", depth},
                            {"direct", "1"},
                            {"ioengine", "io_uring"}}},
                          {"read", {{"iops", 1}, {"clat_ns", {{"mean", 1}}}}},
                          {"write", {{"iops", 1}, {"clat_ns", {{"mean", 1}}}}}};
    const auto shape = parse_fio(nlohmann::json{{"jobs", {job}}}.dump());
    EXPECT_TRUE(shape) << shape.error().text;
    const auto result =
        predict(drive, shape->points[0], {.requests = 12'000, .seed = 17, .occupancy = 0});
    const auto put = [&job](const char* side, const std::optional<LoadSide>& found) {
      if (!found) return;
      job[side] = {
          {"iops", found->iops},
          {"clat_ns", {{"mean", found->mean_ns}, {"percentile", {{"99.000000", found->p99_ns}}}}}};
    };
    put("read", result->read);
    put("write", result->write);
    jobs.push_back(job);
  }
  return nlohmann::json{{"fio version", "fio-3.33"}, {"jobs", jobs}}.dump();
}

std::vector<FioPoint> points_of(const Parameters& drive, std::initializer_list<Load> loads) {
  auto found = parse_fio(measured_by_fio(drive, loads));
  EXPECT_TRUE(found) << found.error().text;
  return found ? found->points : std::vector<FioPoint>{};
}

void expect_near(const std::vector<FioPoint>& points, const std::vector<Prediction>& predictions,
                 double tolerance) {
  for (size_t i = 0; i < points.size(); ++i) {
    const auto compare = [&](const std::optional<LoadSide>& measured,
                             const std::optional<LoadSide>& predicted) {
      if (!measured) return;
      ASSERT_TRUE(predicted);
      EXPECT_NEAR(predicted->iops / measured->iops, 1, tolerance) << points[i].job;
      EXPECT_NEAR(predicted->mean_ns / measured->mean_ns, 1, tolerance) << points[i].job;
    };
    compare(points[i].read, predictions[i].read);
    compare(points[i].write, predictions[i].write);
  }
}

constexpr std::initializer_list<Load> kMeasured = {
    {"randread", "4k", 1},        {"randread", "4k", 16},   {"randread", "4k", 256},
    {"randread", "16k", 1},       {"randread", "64k", 128}, {"read", "1m", 32},
    {"randwrite", "4k", 1, "1m"}, {"randwrite", "16k", 64}, {"write", "128k", 32}};

Parameters laptop() { return *load_flash_profile("laptop-tlc"); }

// A drive that differs from laptop-tlc in everything that is fitted but the channels' number.
Parameters unknown_drive() {
  Parameters p = laptop();
  p.command_ns = 6'000;
  p.read_ns = {50'000, 62'000, 75'000, 75'000};
  p.program_ns = {600'000, 840'000, 1'080'000, 1'080'000};
  p.channel_mt_per_s = 500;
  p.chips_per_channel = 4;
  p.lane_gb_per_s = 0.45;
  return p;
}

TEST(FlashFit, AKnownDriveIsRecovered) {
  const Parameters truth = unknown_drive();
  const std::vector<FioPoint> points = points_of(truth, kMeasured);
  const auto fit = fit_flash(laptop(), points, {.load = {.requests = 3000}, .trials_max = 300});
  ASSERT_TRUE(fit);
  expect_near(points, fit->predictions, 0.02);
  const Parameters& found = fit->parameters;
  EXPECT_NEAR(static_cast<double>(found.command_ns) / 6000, 1, 0.05);
  EXPECT_NEAR(static_cast<double>(found.read_ns[1]) / 62'000, 1, 0.05);
  EXPECT_NEAR(static_cast<double>(found.program_ns[1]) / 840'000, 1, 0.08);
  EXPECT_NEAR(static_cast<double>(found.channel_mt_per_s) / 500, 1, 0.08);
  EXPECT_NEAR(found.lane_gb_per_s / 0.45, 1, 0.03);
  EXPECT_EQ(found.channels * found.chips_per_channel, 16u);
  // Loads that nobody measured.
  const std::vector<FioPoint> held_out = points_of(truth, {{"randread", "4k", 4},
                                                           {"randread", "4k", 64},
                                                           {"randread", "32k", 16},
                                                           {"read", "128k", 4},
                                                           {"randwrite", "16k", 8},
                                                           {"randrw", "16k", 32}});
  std::vector<Prediction> predictions;
  for (const FioPoint& point : held_out) predictions.push_back(*predict(found, point, {}));
  expect_near(held_out, predictions, 0.10);
}

TEST(FlashFit, TheSameAgainIsTheSameFit) {
  const std::vector<FioPoint> points = points_of(unknown_drive(), {{"randread", "4k", 1}});
  const FitOptions options{.load = {.requests = 600}, .trials_max = 30};
  const auto once = fit_flash(laptop(), points, options);
  const auto again = fit_flash(laptop(), points, options);
  EXPECT_EQ(flash_profile_text(once->parameters, ""), flash_profile_text(again->parameters, ""));
  EXPECT_LE(once->trials, 30u + fit_knobs().size() * 6);
}

TEST(FlashFit, WhatNoPointTellsStaysAndIsSaid) {
  const std::vector<FioPoint> points = points_of(unknown_drive(), {{"randread", "4k", 1}});
  const auto fit = fit_flash(laptop(), points, {.load = {.requests = 600}, .trials_max = 60});
  ASSERT_TRUE(fit);
  expect_near(points, fit->predictions, 0.02);
  EXPECT_EQ(fit->parameters.program_ns, laptop().program_ns);
  const std::string text = fit_text(*fit, points);
  EXPECT_TRUE(text.contains("program: no point tells it\n  fio --name=program ")) << text;
  EXPECT_TRUE(text.contains("--rw=write --bs=128k --iodepth=32")) << text;
}

// One number of a drive that is none of the model's, as people begin with.
std::vector<FioPoint> read_point(int depth, double iops, double mean_ns) {
  const nlohmann::json job = {{"jobname", "one"},
                              {"groupid", 0},
                              {"error", 0},
                              {"job options",
                               {{"rw", "randread"},
                                {"bs", "4k"},
                                {"size", "100%"},
                                {"iodepth", std::to_string(depth)},
                                {"direct", "1"},
                                {"ioengine", "io_uring"}}},
                              {"read", {{"iops", iops}, {"clat_ns", {{"mean", mean_ns}}}}},
                              {"write", {{"iops", 0}, {"clat_ns", {{"mean", 0}}}}}};
  const auto found = parse_fio(nlohmann::json{{"jobs", {job}}}.dump());
  EXPECT_TRUE(found) << found.error().text;
  return found ? found->points : std::vector<FioPoint>{};
}

TEST(FlashFit, AKeyThatNoPointTellsIsThatOfTheProfile) {
  for (const char* profile : {"laptop-tlc", "pm1725a"}) {
    const Parameters start = *load_flash_profile(profile);
    for (const std::vector<FioPoint>& points :
         {read_point(1, 11'000, 90'000), read_point(32, 250'000, 128'000)}) {
      const auto fit = fit_flash(start, points, {.load = {.requests = 600}, .trials_max = 60});
      ASSERT_TRUE(fit);
      expect_near(points, fit->predictions, 0.02);
      size_t untold = 0;
      for (size_t i = 0; i < fit->knobs.size(); ++i) {
        if (fit->knobs[i].told != Told::kNotAtAll) continue;
        ++untold;
        EXPECT_EQ(fit->knobs[i].value, fit->knobs[i].start) << profile << " " << fit_knobs()[i].key;
      }
      EXPECT_GT(untold, 0U);
      for (const FittedKnob& knob : fit->knobs) EXPECT_NE(knob.told, Told::kBound);
    }
  }
}

// One latency cannot tell the controller's time from the page's.
TEST(FlashFit, WhatOnlyASumTellsIsSaid) {
  Parameters start = laptop();
  start.command_ns = 20'000;
  const std::vector<FioPoint> points = points_of(unknown_drive(), {{"randread", "4k", 1}});
  const auto fit = fit_flash(start, points, {.load = {.requests = 600}, .trials_max = 60});
  ASSERT_TRUE(fit);
  EXPECT_EQ(fit->knobs[0].told, Told::kTogether);
  EXPECT_EQ(fit->knobs[1].told, Told::kTogether);
  const std::string text = fit_text(*fit, points);
  EXPECT_TRUE(text.contains("read: known only together with others")) << text;
}

TEST(FlashFit, TheProfileIsOneThatCanBeReadAgain) {
  const std::vector<FioPoint> points = points_of(unknown_drive(), {{"randread", "4k", 1}});
  const auto fit = fit_flash(laptop(), points, {.load = {.requests = 600}, .trials_max = 20});
  const std::string text = fit_profile(*fit, points, "a \"fitted\" drive");
  EXPECT_TRUE(text.contains("# randread-4k-1  randread 4 KiB x 1  read iops")) << text;
  const auto read = parse_flash_profile(text);
  ASSERT_TRUE(read) << read.error().text;
  EXPECT_EQ(flash_profile_text(*read, ""), flash_profile_text(fit->parameters, ""));
}

TEST(FlashFit, AUsedDriveIsSlowerAtWrites) {
  const std::vector<FioPoint> points = points_of(laptop(), {{"randwrite", "16k", 32}});
  const auto fresh = predict(laptop(), points[0], {});
  const auto used = predict(laptop(), points[0], {.occupancy = 0.9});
  EXPECT_LT(used->write->iops, 0.8 * fresh->write->iops);
}

TEST(FlashProfileText, EveryProfileRoundTrips) {
  ASSERT_FALSE(flash_profile_names().empty());
  for (const std::string& name : flash_profile_names()) {
    const auto drive = load_flash_profile(name);
    ASSERT_TRUE(drive);
    const std::string text = flash_profile_text(*drive, name);
    const auto again = parse_flash_profile(text);
    ASSERT_TRUE(again) << name << ": " << again.error().text;
    EXPECT_EQ(flash_profile_text(*again, name), text);
    EXPECT_EQ(again->read_ns, drive->read_ns) << name;
    EXPECT_EQ(again->planes(), drive->planes()) << name;
    EXPECT_EQ(again->mqsim, drive->mqsim) << name;
  }
}

TEST(FitKnobs, MorePlanesKeepTheDrivesSize) {
  const Parameters start = laptop();
  KnobValues values = knob_values(start);
  for (size_t i = 0; i < values.size(); ++i) {
    if (fit_knobs()[i].key == "channels") values[i] = 2;
  }
  const Parameters p = with_knobs(start, values);
  EXPECT_EQ(p.channels, 2u);
  EXPECT_EQ(p.physical_pages(), start.physical_pages());
  for (double& value : values) value = 1e9;
  for (size_t i = 0; i < values.size(); ++i) values[i] = fit_knobs()[i].max;
  EXPECT_FALSE(flash::check(with_knobs(start, values)));
  for (size_t i = 0; i < values.size(); ++i) values[i] = fit_knobs()[i].min;
  EXPECT_FALSE(flash::check(with_knobs(start, values)));
}

TEST(LeastSquares, StepsToTheSolution) {
  const Columns columns = {{1, 0, 1}, {0, 2, 1}};
  const std::vector<double> step = damped_step(columns, {-3, -4, -5}, 1e-12);
  EXPECT_NEAR(step[0], 3, 1e-6);
  EXPECT_NEAR(step[1], 2, 1e-6);
}

TEST(LeastSquares, IndependenceIsWhatOthersCannotMakeUpFor) {
  EXPECT_NEAR(independence({{1, 0}, {0, 1}}, 0), 1, 1e-9);
  EXPECT_NEAR(independence({{1, 1}, {2, 2}}, 0), 0, 1e-9);
  EXPECT_NEAR(independence({{1, 1}, {1, 0}}, 0), std::sqrt(0.5), 1e-9);
  EXPECT_EQ(independence({{0, 0}, {1, 0}}, 0), 0);
  EXPECT_NEAR(independence({{1, 2}, {0, 0}}, 0), 1, 1e-9);
}

}  // namespace
}  // namespace cairn::plan
