// SPDX-License-Identifier: Apache-2.0
#include "nvme/controller/pci_registers.h"

#include <gtest/gtest.h>

#include <array>

namespace cairn::nvme {
namespace {

using Step = PciRegisters::Step;
constexpr auto kCc = static_cast<uint32_t>(PropertyOffset::kConfiguration);
constexpr auto kCsts = static_cast<uint32_t>(PropertyOffset::kStatus);
constexpr uint32_t kOn = 0x0046'0001;

class PciRegistersTest : public ::testing::Test {
 protected:
  PciRegisters registers{256};

  template <class T = uint32_t>
  T get(uint32_t offset) {
    std::array<std::byte, sizeof(T)> bytes;
    registers.read(offset, bytes);
    return load<T>(bytes);
  }
  template <class T>
  void put(uint32_t offset, T value) {
    registers.write(offset, std::as_bytes(std::span(&value, 1)));
  }
  ControllerStatus status() { return ControllerStatus::decode(get(kCsts)); }
  void set_admin_queue() {
    put<uint32_t>(PciRegister::kAdminQueues, 0x001f'001f);
    put<uint64_t>(PciRegister::kAdminSubmission, 0x1000);
    put<uint64_t>(PciRegister::kAdminCompletion, 0x2000);
  }
};

TEST_F(PciRegistersTest, CapabilitiesAreGolden) {
  // MQES 255, CQR, TO 7.5 s, CSS NVM, MPSMAX 64 KiB, CRMS.CRWMS.
  EXPECT_EQ(get<uint64_t>(0), 0x0840'0020'0f01'00ffu);
  EXPECT_EQ(get(0), 0x0f01'00ffu);
  EXPECT_EQ(get(4), 0x0840'0020u);
  EXPECT_EQ(get(8), 0x0002'0000u);
  EXPECT_EQ(get(0x68), 15u);
}

TEST_F(PciRegistersTest, AddressesAreWrittenInHalvesOrWhole) {
  put<uint64_t>(PciRegister::kAdminSubmission, 0x1234'5678'9abc'd000);
  EXPECT_EQ(get<uint64_t>(PciRegister::kAdminSubmission), 0x1234'5678'9abc'd000u);
  put<uint32_t>(PciRegister::kAdminSubmission, 0x1111'1000);
  put<uint32_t>(PciRegister::kAdminSubmission + 4, 0x2222);
  EXPECT_EQ(registers.admin_submission(), 0x2222'1111'1000u);
  put<uint32_t>(PciRegister::kAdminCompletion + 4, 7);
  EXPECT_EQ(registers.admin_completion(), 0x7'0000'0000u);
}

TEST_F(PciRegistersTest, StrangeAccessesChangeNothing) {
  set_admin_queue();
  const PciRegisters::Values before = registers.save();
  put<uint16_t>(PciRegister::kAdminQueues, 0xffff);
  put<uint8_t>(kCc, 1);
  put<uint32_t>(kCc + 1, 0x0100'0000);
  put<uint64_t>(PciRegister::kAdminQueues, UINT64_MAX);
  put<uint64_t>(PciRegister::kAdminSubmission + 4, UINT64_MAX);
  put<uint64_t>(0, 0);
  put<uint32_t>(kCsts, UINT32_MAX);
  put<uint32_t>(0x20, 0x4e56'4d65);
  for (uint32_t offset = 0x38; offset < 0x1000; offset += 4) put<uint32_t>(offset, UINT32_MAX);
  put<uint32_t>(0xffff'fffc, 1);
  const PciRegisters::Values after = registers.save();
  EXPECT_TRUE(std::ranges::equal(bytes_of(before), bytes_of(after)));
  EXPECT_EQ(get<uint64_t>(0x6c), 0u) << "across the end of what there is";
  EXPECT_EQ(get<uint64_t>(0xffff'fff8), 0u);
  EXPECT_EQ(get(0x38), 0u) << "no controller memory";
  EXPECT_EQ(get<uint16_t>(PciRegister::kAdminQueues + 1), 0x1f00u) << "reads may begin anywhere";
}

TEST_F(PciRegistersTest, InterruptMaskIsSetAndCleared) {
  put<uint32_t>(PciRegister::kInterruptMaskSet, 0xf0);
  put<uint32_t>(PciRegister::kInterruptMaskClear, 0x30);
  EXPECT_EQ(get(PciRegister::kInterruptMaskSet), 0xc0u);
  EXPECT_EQ(get(PciRegister::kInterruptMaskClear), 0xc0u);
}

TEST_F(PciRegistersTest, EnablingWaitsForTheController) {
  set_admin_queue();
  put(kCc, kOn);
  EXPECT_EQ(registers.next(), Step::kEnable);
  EXPECT_TRUE(registers.can_enable());
  EXPECT_FALSE(status().ready);
  registers.was_enabled();
  EXPECT_TRUE(status().ready);
  EXPECT_EQ(registers.next(), Step::kNone);
}

TEST_F(PciRegistersTest, WhatCannotBeEnabledIsToldApart) {
  const auto can_with = [this](uint32_t cc, uint32_t aqa, uint64_t asq, uint64_t acq) {
    put(kCc, cc);
    put(PciRegister::kAdminQueues, aqa);
    put(PciRegister::kAdminSubmission, asq);
    put(PciRegister::kAdminCompletion, acq);
    return registers.can_enable();
  };
  EXPECT_TRUE(can_with(kOn, 0x001f'001f, 0x1000, 0x2000));
  EXPECT_TRUE(can_with(kOn | 4 << 7, 0x001f'001f, 0x1000, 0x2000)) << "pages of 64 KiB";
  EXPECT_FALSE(can_with(kOn | 5 << 7, 0x001f'001f, 0x1000, 0x2000)) << "larger ones";
  EXPECT_FALSE(can_with(kOn, 0x001f'0000, 0x1000, 0x2000)) << "ASQS";
  EXPECT_FALSE(can_with(kOn, 0x0000'001f, 0x1000, 0x2000)) << "ACQS";
  EXPECT_FALSE(can_with(kOn, 0x001f'001f, 0x1004, 0x2000)) << "ASQ";
  EXPECT_FALSE(can_with(kOn, 0x001f'001f, 0x1000, 0x2800)) << "ACQ";
  EXPECT_FALSE(can_with(0x0045'0001, 0x001f'001f, 0x1000, 0x2000)) << "IOSQES";
  EXPECT_FALSE(can_with(0x0036'0001, 0x001f'001f, 0x1000, 0x2000)) << "IOCQES";
  EXPECT_FALSE(can_with(kOn | 1 << 11, 0x001f'001f, 0x1000, 0x2000)) << "AMS";
  EXPECT_FALSE(can_with(kOn | 1 << 4, 0x001f'001f, 0x1000, 0x2000)) << "CSS";
}

TEST_F(PciRegistersTest, ReadyStaysUntilTheResetIsDone) {
  set_admin_queue();
  put(kCc, kOn);
  registers.was_enabled();
  put<uint32_t>(kCc, 0);
  EXPECT_EQ(registers.next(), Step::kReset);
  EXPECT_FALSE(registers.is_running());
  EXPECT_TRUE(status().ready);
  // The driver does not wait: the reset is still due, and enabling afterwards.
  put(kCc, kOn);
  EXPECT_EQ(registers.next(), Step::kReset);
  registers.was_reset();
  EXPECT_FALSE(status().ready);
  EXPECT_EQ(registers.next(), Step::kEnable);
  EXPECT_EQ(registers.admin_submission(), 0x1000u) << "these survive a reset";
}

TEST_F(PciRegistersTest, FailureLastsUntilReset) {
  put(kCc, kOn);
  registers.fail();
  EXPECT_TRUE(status().fatal);
  EXPECT_EQ(registers.next(), Step::kNone);
  put<uint32_t>(kCc, 0);
  EXPECT_EQ(registers.next(), Step::kReset);
  registers.was_reset();
  EXPECT_EQ(status(), ControllerStatus{});
}

TEST_F(PciRegistersTest, ShutdownComesBeforeReset) {
  set_admin_queue();
  put(kCc, kOn);
  registers.was_enabled();
  put(kCc, kOn | 1 << 14);
  EXPECT_EQ(status().shutdown, ShutdownStatus::kOccurring);
  put<uint32_t>(kCc, 1 << 14);
  EXPECT_EQ(registers.next(), Step::kShutDown);
  registers.was_shut_down();
  EXPECT_EQ(status().shutdown, ShutdownStatus::kComplete);
  EXPECT_EQ(registers.next(), Step::kReset);
  registers.was_reset();
  EXPECT_EQ(status().shutdown, ShutdownStatus::kComplete) << "the notice still stands";
  put(kCc, kOn);
  EXPECT_EQ(status().shutdown, ShutdownStatus::kNone);
  EXPECT_EQ(registers.next(), Step::kEnable);
}

TEST_F(PciRegistersTest, RestoredRegistersReadTheSame) {
  set_admin_queue();
  put(kCc, kOn);
  put<uint32_t>(PciRegister::kInterruptMaskSet, 5);
  registers.was_enabled();
  PciRegisters other(256);
  other.restore(registers.save());
  for (uint32_t offset = 0; offset < 0x70; offset += 4) {
    std::array<std::byte, 4> bytes;
    other.read(offset, bytes);
    EXPECT_EQ(load<uint32_t>(bytes), get(offset)) << offset;
  }
  EXPECT_TRUE(other.is_running());
}

TEST_F(PciRegistersTest, RestoredNonsenseFailsInsteadOfRunning) {
  PciRegisters::Values values;
  values.status = 1;
  registers.restore(values);
  EXPECT_FALSE(registers.is_running());
  EXPECT_EQ(registers.next(), Step::kReset);
}

}  // namespace
}  // namespace cairn::nvme
