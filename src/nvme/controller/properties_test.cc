// SPDX-License-Identifier: Apache-2.0
#include "nvme/controller/properties.h"

#include <gtest/gtest.h>

namespace cairn::nvme {
namespace {

PropertyCommand at(PropertyOffset offset, uint64_t value = 0) {
  PropertyCommand command;
  command.attributes =
      offset == PropertyOffset::kCapabilities ? PropertyCommand::k8Bytes : PropertyCommand::k4Bytes;
  command.offset = static_cast<uint32_t>(offset);
  command.value = value;
  return command;
}

class PropertiesTest : public ::testing::Test {
 protected:
  Properties properties{{.queue_entries_max = 128}};

  ControllerStatus status() const {
    return ControllerStatus::decode(
        static_cast<uint32_t>(properties.get(at(PropertyOffset::kStatus)).result));
  }
  Properties::Change configure(uint32_t cc) {
    const auto outcome = properties.set(at(PropertyOffset::kConfiguration, cc));
    EXPECT_TRUE(outcome.status.ok());
    return outcome.change;
  }
};

constexpr Configuration kGood{
    .enable = true, .submission_entry_size = 6, .completion_entry_size = 4};

TEST_F(PropertiesTest, CapabilitiesAndVersionAreGolden) {
  // MQES 127, CQR, TO 7.5 s, CSS NVM, CRMS.CRWMS.
  EXPECT_EQ(properties.get(at(PropertyOffset::kCapabilities)).result, 0x0800'0020'0f01'007fu);
  EXPECT_EQ(properties.get(at(PropertyOffset::kVersion)).result, 0x0002'0000u);
  EXPECT_EQ(properties.get(at(PropertyOffset::kReadyTimeouts)).result, 15u);
}

TEST_F(PropertiesTest, EnablingMakesReady) {
  EXPECT_FALSE(properties.is_ready());
  EXPECT_EQ(configure(kGood.encode()), Properties::Change::kEnabled);
  EXPECT_TRUE(properties.is_ready());
  EXPECT_EQ(status(), (ControllerStatus{.ready = true}));
  EXPECT_EQ(configure(kGood.encode()), Properties::Change::kNone);
  EXPECT_EQ(configure(0), Properties::Change::kReset);
  EXPECT_EQ(status(), ControllerStatus{});
}

TEST_F(PropertiesTest, ConfigurationReadsBackVerbatim) {
  const uint32_t disabled = 0x0046'0000u | 0xfe00'0000u;
  configure(disabled);
  EXPECT_EQ(properties.get(at(PropertyOffset::kConfiguration)).result, disabled);
}

TEST_F(PropertiesTest, BadConfigurationIsFatalUntilReset) {
  for (auto spoil :
       {+[](Configuration& c) { c.page_size = 1; }, +[](Configuration& c) { c.arbitration = 1; },
        +[](Configuration& c) { c.command_sets = CommandSetSelect::kAllSupported; },
        +[](Configuration& c) { c.command_sets = CommandSetSelect::kAdminOnly; },
        +[](Configuration& c) { c.submission_entry_size = 7; },
        +[](Configuration& c) { c.completion_entry_size = 0; }}) {
    Configuration bad = kGood;
    spoil(bad);
    configure(bad.encode());
    EXPECT_EQ(status(), (ControllerStatus{.fatal = true}));
    EXPECT_FALSE(properties.is_ready());
    configure(0);
    EXPECT_EQ(status(), ControllerStatus{});
  }
}

TEST_F(PropertiesTest, ShutdownCompletesAtOnce) {
  configure(kGood.encode());
  Configuration down = kGood;
  down.shutdown = ShutdownNotice::kNormal;
  EXPECT_EQ(configure(down.encode()), Properties::Change::kNone);
  EXPECT_EQ(status().shutdown, ShutdownStatus::kComplete);
  EXPECT_EQ(configure(0), Properties::Change::kReset);
  EXPECT_EQ(status(), ControllerStatus{});
}

TEST_F(PropertiesTest, UnknownOffsetsAndWrongSizesAreInvalid) {
  for (uint32_t offset = 0; offset < 0x80; ++offset) {
    for (uint8_t size = 0; size < 8; ++size) {
      PropertyCommand command;
      command.offset = offset;
      command.attributes = size;
      const bool known =
          (offset == 0 && size == 1) ||
          (size == 0 && (offset == 8 || offset == 0x14 || offset == 0x1c || offset == 0x68));
      EXPECT_EQ(properties.get(command).ok(), known) << offset << " " << int{size};
      EXPECT_EQ(properties.set(command).status.ok(), offset == 0x14 && size == 0);
    }
  }
}

TEST(DiscoveryProperties, EntrySizesDoNotMatter) {
  Properties properties({.discovery = true});
  properties.set(at(PropertyOffset::kConfiguration, 1));
  EXPECT_TRUE(properties.is_ready());
}

}  // namespace
}  // namespace cairn::nvme
