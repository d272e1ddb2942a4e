// SPDX-License-Identifier: Apache-2.0
#include "nvme/controller/features.h"

#include <gtest/gtest.h>

#include "nvme/format/identify_controller_format.h"
#include "nvme/format/limits.h"
#include "nvme/format/log_format.h"

namespace cairn::nvme {
namespace {

constexpr uint32_t kOffered = EventMask::kNamespaceAttributes | EventMask::kAna;

class FeaturesTest : public ::testing::Test {
 protected:
  Features features{
      {.queues_max = 16, .events_offered = kOffered, .keep_alive_ms = 5000, .host = {1, 2, 3}}};

  Answer get(Feature feature, FeatureSelect select = FeatureSelect::kCurrent, uint32_t value = 0,
             MutableBytes data = {}) const {
    return features.get({.feature = feature, .select = select, .value = value}, data);
  }
  Answer set(Feature feature, uint32_t value, Bytes data = {}) {
    return features.set({.feature = feature, .value = value}, data, false);
  }
};

TEST_F(FeaturesTest, CurrentChangesDefaultAndSavedDoNot) {
  EXPECT_EQ(get(Feature::kArbitration).result, 7u);
  EXPECT_TRUE(set(Feature::kArbitration, 0x0102'0303).ok());
  EXPECT_EQ(get(Feature::kArbitration).result, 0x0102'0303u);
  EXPECT_EQ(get(Feature::kArbitration, FeatureSelect::kDefault).result, 7u);
  EXPECT_EQ(get(Feature::kArbitration, FeatureSelect::kSaved).result, 7u);
  EXPECT_EQ(get(Feature::kArbitration, FeatureSelect::kCapabilities).result,
            FeatureCapabilities::kChangeable);
  EXPECT_FALSE(get(Feature::kArbitration, FeatureSelect{4}).ok());
  features.reset();
  EXPECT_EQ(get(Feature::kArbitration).result, 7u);
}

TEST_F(FeaturesTest, NothingCanBeSaved) {
  const Answer answer = features.set({.feature = Feature::kArbitration, .save = true}, {}, false);
  EXPECT_EQ(answer.status, final_status(StatusCode::kFeatureNotSaveable));
}

TEST_F(FeaturesTest, UnsupportedOnesAreInvalid) {
  for (const int id : {0x00, 0x03, 0x08, 0x09, 0x0c, 0x0d, 0x0e, 0x10, 0x11, 0x19, 0x80, 0xff}) {
    EXPECT_EQ(get(Feature(id)).status, final_status(StatusCode::kInvalidField));
    EXPECT_EQ(set(Feature(id), 0).status, final_status(StatusCode::kInvalidField));
  }
}

TEST_F(FeaturesTest, QueuesAreGrantedUpToTheMaximum) {
  EXPECT_EQ(get(Feature::kNumberOfQueues).result, 0x000f'000fu);
  EXPECT_EQ(set(Feature::kNumberOfQueues, 0x0003'0003).result, 0x0003'0003u);
  EXPECT_EQ(features.queues_granted(), 4);
  EXPECT_EQ(set(Feature::kNumberOfQueues, 0x0001'0005).result, 0x0005'0005u);
  EXPECT_EQ(set(Feature::kNumberOfQueues, 0x1000'1000).result, 0x000f'000fu);
  EXPECT_EQ(set(Feature::kNumberOfQueues, 0x0000'ffff).status, StatusCode::kInvalidField);
  EXPECT_EQ(set(Feature::kNumberOfQueues, 0xffff'0000).status, StatusCode::kInvalidField);
  const Answer late = features.set({.feature = Feature::kNumberOfQueues, .value = 0}, {}, true);
  EXPECT_EQ(late.status, StatusCode::kCommandSequenceError);
}

TEST_F(FeaturesTest, KeepAliveIsRoundedUpAndSurvivesAReset) {
  EXPECT_EQ(get(Feature::kKeepAlive).result, 5000u);
  EXPECT_TRUE(set(Feature::kKeepAlive, 1).ok());
  EXPECT_EQ(features.keep_alive_ms(), 100u);
  EXPECT_TRUE(set(Feature::kKeepAlive, UINT32_MAX).ok());
  EXPECT_EQ(features.keep_alive_ms(), UINT32_MAX);
  EXPECT_TRUE(set(Feature::kKeepAlive, 2500).ok());
  features.reset();
  EXPECT_EQ(features.keep_alive_ms(), 2500u);
}

TEST_F(FeaturesTest, OnlyOfferedEventsCanBeSwitched) {
  EXPECT_TRUE(features.wants_event(EventMask::kAna)) << "what is offered is on";
  EXPECT_TRUE(set(Feature::kEventConfiguration, EventMask::kAna).ok());
  EXPECT_FALSE(features.wants_event(EventMask::kNamespaceAttributes));
  EXPECT_FALSE(set(Feature::kEventConfiguration, EventMask::kDiscoveryLog).ok());
  EXPECT_FALSE(set(Feature::kEventConfiguration, EventMask::kFirmwareActivation).ok());
  EXPECT_EQ(get(Feature::kEventConfiguration).result, EventMask::kAna);
}

TEST_F(FeaturesTest, WriteCacheIsOnAndStays) {
  EXPECT_EQ(get(Feature::kWriteCache).result, 1u);
  EXPECT_TRUE(set(Feature::kWriteCache, 1).ok());
  EXPECT_EQ(set(Feature::kWriteCache, 0).status, final_status(StatusCode::kFeatureNotChangeable));
}

TEST_F(FeaturesTest, WhoGoesByIncarnationsSaysSoBeforeItHasQueues) {
  EXPECT_FALSE(features.knows_incarnations());
  EXPECT_TRUE(set(Feature::kIncarnations, 1).ok());
  EXPECT_TRUE(features.knows_incarnations());
  EXPECT_EQ(get(Feature::kIncarnations).result, 1u);
  EXPECT_EQ(set(Feature::kIncarnations, 2).status, StatusCode::kInvalidField);
  const Answer late = features.set({.feature = Feature::kIncarnations}, {}, true);
  EXPECT_EQ(late.status, final_status(StatusCode::kCommandSequenceError));
  features.reset();
  EXPECT_FALSE(features.knows_incarnations()) << "the host says so again";
}

TEST_F(FeaturesTest, ThereIsOnePowerState) {
  EXPECT_TRUE(set(Feature::kPowerManagement, 0x20).ok());
  EXPECT_EQ(set(Feature::kPowerManagement, 1).status, StatusCode::kInvalidField);
}

TEST_F(FeaturesTest, TemperatureThresholdsWarn) {
  EXPECT_EQ(get(Feature::kTemperatureThreshold).result, kWarningKelvin);
  EXPECT_EQ(get(Feature::kTemperatureThreshold, FeatureSelect::kCurrent, 1 << 20).result, 0u);
  EXPECT_EQ(features.temperature_warning(), 0);
  EXPECT_TRUE(set(Feature::kTemperatureThreshold, 300).ok());
  EXPECT_EQ(features.temperature_warning(), CriticalWarning::kTemperature);
  EXPECT_TRUE(set(Feature::kTemperatureThreshold, 400).ok());
  EXPECT_EQ(features.temperature_warning(), 0);
  EXPECT_TRUE(set(Feature::kTemperatureThreshold, 1 << 20 | 320).ok()) << "under";
  EXPECT_EQ(features.temperature_warning(), CriticalWarning::kTemperature);
  EXPECT_FALSE(set(Feature::kTemperatureThreshold, 1 << 16 | 300).ok()) << "no such sensor";
  EXPECT_FALSE(set(Feature::kTemperatureThreshold, 2 << 20 | 300).ok());
}

TEST_F(FeaturesTest, DeallocatedErrorsAreNotOffered) {
  EXPECT_TRUE(set(Feature::kErrorRecovery, 100).ok());
  EXPECT_EQ(get(Feature::kErrorRecovery).result, 100u);
  EXPECT_FALSE(set(Feature::kErrorRecovery, 1 << 16).ok());
}

TEST_F(FeaturesTest, HostIdIsReadOnlyAndLong) {
  std::array<std::byte, 16> data{};
  EXPECT_TRUE(get(Feature::kHostId, FeatureSelect::kCurrent, kHostIdExtended, data).ok());
  EXPECT_EQ(data[2], std::byte{3});
  EXPECT_FALSE(get(Feature::kHostId, FeatureSelect::kCurrent, 0, data).ok());
  EXPECT_FALSE(get(Feature::kHostId, FeatureSelect::kCurrent, kHostIdExtended).ok());
  EXPECT_EQ(set(Feature::kHostId, kHostIdExtended, data).status,
            final_status(StatusCode::kCommandSequenceError));
}

TEST_F(FeaturesTest, HostBehaviorIsKept) {
  HostBehavior behavior;
  behavior.retry_delay = 1;
  EXPECT_TRUE(set(Feature::kHostBehavior, 0, bytes_of(behavior)).ok());
  HostBehavior back;
  EXPECT_TRUE(get(Feature::kHostBehavior, FeatureSelect::kCurrent, 0, mutable_bytes_of(back)).ok());
  EXPECT_EQ(back.retry_delay, 1);
  behavior.retry_delay = 2;
  EXPECT_FALSE(set(Feature::kHostBehavior, 0, bytes_of(behavior)).ok());
  EXPECT_EQ(set(Feature::kHostBehavior, 0, bytes_of(behavior).first(511)).status,
            StatusCode::kDataSglLengthInvalid);
}

TEST(DiscoveryFeatures, AreKeepAliveAndEvents) {
  int count = 0;
  for (int id = 0; id < 256; ++id)
    count += Features::capabilities(Feature(id), ControllerKind::kDiscovery) ? 1 : 0;
  EXPECT_EQ(count, 2);
  EXPECT_TRUE(Features::capabilities(Feature::kKeepAlive, ControllerKind::kDiscovery));
  EXPECT_TRUE(Features::capabilities(Feature::kEventConfiguration, ControllerKind::kDiscovery));
}

}  // namespace
}  // namespace cairn::nvme
