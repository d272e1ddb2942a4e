// SPDX-License-Identifier: Apache-2.0
// Golden bytes of the commands a host sends, written out from the specifications.
#include "nvme/format/command_format.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "base/ids.h"
#include "base/rng.h"
#include "nvme/format/copy_format.h"
#include "nvme/format/data_pointer.h"
#include "nvme/format/dsm_format.h"
#include "nvme/format/feature_format.h"
#include "nvme/format/field.h"
#include "nvme/format/identify_format.h"
#include "nvme/format/io_format.h"
#include "nvme/format/log_format.h"
#include "nvme/format/opcode_format.h"
#include "nvme/format/replicate_format.h"
#include "nvme/format/reservation_format.h"
#include "nvme/format/status_format.h"
#include "testing/nvme/hex.h"

namespace cairn::nvme {
namespace {

// An entry from bytes, and what encoding `fields` into an empty one gives.
Sqe entry(const std::string& text) { return load<Sqe>(hex(text)); }

template <class Fields>
void expect_golden(Sqe sqe, const Fields& fields, const std::string& text) {
  fields.encode(sqe);
  EXPECT_EQ(wire(sqe), hex(text));
  const Sqe back = entry(text);
  EXPECT_EQ(Fields::decode(back), fields);
}

TEST(Command, ReadOf8BlocksAt0x123456789) {
  Sqe sqe = Sqe::make(IoOpcode::kRead, 7);
  sqe.cid = 0x1234;
  sqe.sgl1 = SglDescriptor::transport(4096);
  expect_golden(sqe, BlockFields{.start = Lba(0x1'2345'6789), .blocks = 8, .dataset_hint = 0x41},
                "02 40 3412 07000000 00*16 | 00*8 00100000 000000 5a |"
                "89674523 01000000 07000000 41000000 00*8");
}

TEST(Command, WriteWithForceUnitAccessAndInCapsuleData) {
  Sqe sqe = Sqe::make(IoOpcode::kWrite, 1);
  sqe.cid = 1;
  sqe.sgl1 = SglDescriptor::in_capsule(512);
  expect_golden(sqe, BlockFields{.start = Lba(2), .blocks = 1, .force_unit_access = true},
                "01 40 0100 01000000 00*16 | 00*8 00020000 000000 01 |"
                "02000000 00000000 00000040 00*12");
}

TEST(Command, WriteZeroesThatMayDeallocate) {
  expect_golden(
      Sqe::make(IoOpcode::kWriteZeroes, 1),
      BlockFields{.blocks = kBlocksPerCommandMax, .limited_retry = true, .deallocate = true},
      "08 40 0000 01000000 00*16 | 00*15 5a | 00*8 ffff0082 00*12");
}

TEST(Command, FusedCompareAndWrite) {
  Sqe compare = Sqe::make(IoOpcode::kCompare, 1);
  compare.set_fuse(Fuse::kFirst);
  Sqe write = Sqe::make(IoOpcode::kWrite, 1);
  write.set_fuse(Fuse::kSecond);
  EXPECT_EQ(compare.flags, 0x41);
  EXPECT_EQ(write.flags, 0x42);
  EXPECT_EQ(write.fuse(), Fuse::kSecond);
  EXPECT_EQ(write.psdt(), Psdt::kSgl);
  write.set_fuse(Fuse::kNone);
  EXPECT_EQ(write.flags, 0x40);
}

TEST(Command, DatasetManagementWithTwoRanges) {
  expect_golden(Sqe::make(IoOpcode::kDatasetManagement, 3),
                DsmFields{.ranges = 2, .deallocate = true},
                "09 40 0000 03000000 00*16 | 00*15 5a | 01000000 04000000 00*16");
  EXPECT_EQ(wire(DsmRange{.blocks = 0x10, .start = 0x0102030405060708}),
            hex("00000000 10000000 0807060504030201"));
}

TEST(Command, CopyOfOneRange) {
  expect_golden(
      Sqe::make(IoOpcode::kCopy, 1),
      CopyFields{.destination = Lba(0x1'0000'0000), .ranges = 1, .force_unit_access = true},
      "19 40 0000 01000000 00*16 | 00*15 5a | 00000000 01000000 00000040 00*12");
  EXPECT_EQ(wire(CopyRange{.start = 0x20, .blocks = 7}),
            hex("00*8 2000000000000000 0700 00*6 00*8"));
}

TEST(Command, ReplicatedWriteToTwoMore) {
  expect_golden(
      Sqe::make(IoOpcode::kReplicatedWrite, 1),
      ReplicateFields{.blocks = {.start = Lba(0x208), .blocks = 8, .force_unit_access = true},
                      .unit_shift = 9,
                      .replicas = {{{.nsid = 2, .unit = 5, .check = 0x01020304},
                                    {.nsid = 3, .unit = 0x0a0b0c0d, .check = 0x05060708}}}},
      "81 40 0000 01000000 02000300 05000000 00*8 | 00*15 5a |"
      "08020000 00000000 07000940 0d0c0b0a 04030201 08070605");
}

TEST(Command, PlaceOfAReplicaIsTheFirstOnesInItsUnit) {
  ReplicateFields fields{.blocks = {.start = Lba(0x208), .blocks = 8}, .unit_shift = 9};
  EXPECT_EQ(fields.start_in({.nsid = 2, .unit = 5}), Lba(5 * 512 + 8));
  EXPECT_EQ(fields.start_in({.nsid = 2, .unit = UINT32_MAX}), Lba((0xffff'ffffull << 9) + 8));
  EXPECT_TRUE(fields.is_in_one_unit());
  fields.blocks.blocks = 504;
  EXPECT_TRUE(fields.is_in_one_unit());
  fields.blocks.blocks = 505;
  EXPECT_FALSE(fields.is_in_one_unit());
  fields.unit_shift = 0;
  EXPECT_FALSE(fields.is_in_one_unit());
}

TEST(Command, IdentifyController) {
  Sqe sqe = Sqe::make(AdminOpcode::kIdentify);
  sqe.cid = 9;
  sqe.sgl1 = SglDescriptor::transport(kIdentifySize);
  expect_golden(sqe, IdentifyFields{.cns = Cns::kController},
                "06 40 0900 00000000 00*16 | 00*8 00100000 000000 5a | 01000000 00*20");
  expect_golden(sqe,
                IdentifyFields{.cns = Cns::kCommandSetNamespace,
                               .controller_id = 0x0102,
                               .specific_id = 0x0304,
                               .csi = Csi::kZoned,
                               .uuid_index = 5},
                "06 40 0900 00000000 00*16 | 00*8 00100000 000000 5a |"
                "05000201 04030002 00000000 00000000 05000000 00000000");
}

TEST(Command, GetLogPageWithItsWideFields) {
  expect_golden(Sqe::make(AdminOpcode::kGetLogPage, kBroadcastNsid),
                GetLogFields{.page = LogPage::kDiscovery,
                             .specific = 0x41,
                             .retain_event = true,
                             .dwords = 0x000201ff,
                             .specific_id = 0xbeef,
                             .offset = 0x0000'0001'0000'0400},
                "02 40 0000 ffffffff 00*16 | 00*15 5a |"
                "70c1ff01 0200efbe 00040000 01000000 00*8");
  GetLogFields all{.dwords = 0xffffffff};
  EXPECT_EQ(all.length(), uint64_t{1} << 34);
}

TEST(Command, Features) {
  expect_golden(
      Sqe::make(AdminOpcode::kSetFeatures),
      SetFeaturesFields{.feature = Feature::kNumberOfQueues,
                        .value = NumberOfQueues{.submission = 3, .completion = 4}.encode()},
      "09 40 0000 00000000 00*16 | 00*15 5a | 07000000 03000400 00*16");
  expect_golden(
      Sqe::make(AdminOpcode::kSetFeatures),
      SetFeaturesFields{.feature = Feature::kHostId, .save = true, .value = kHostIdExtended},
      "09 40 0000 00000000 00*16 | 00*15 5a | 81000080 01000000 00*16");
  expect_golden(
      Sqe::make(AdminOpcode::kGetFeatures),
      GetFeaturesFields{.feature = Feature::kKeepAlive, .select = FeatureSelect::kCapabilities},
      "0a 40 0000 00000000 00*16 | 00*15 5a | 0f030000 00*20");
}

TEST(Command, Reservations) {
  expect_golden(
      Sqe::make(IoOpcode::kReservationRegister, 1),
      RegisterFields{
          .action = RegisterAction::kReplace, .ignore_key = true, .persist = PersistChange::kSet},
      "0d 40 0000 01000000 00*16 | 00*15 5a | 0a0000c0 00*20");
  expect_golden(Sqe::make(IoOpcode::kReservationAcquire, 1),
                AcquireFields{.action = AcquireAction::kPreemptAndAbort,
                              .type = ReservationType::kExclusiveAccessAll},
                "11 40 0000 01000000 00*16 | 00*15 5a | 02060000 00*20");
  expect_golden(
      Sqe::make(IoOpcode::kReservationRelease, 1),
      ReleaseFields{.action = ReleaseAction::kClear, .type = ReservationType::kWriteExclusive},
      "15 40 0000 01000000 00*16 | 00*15 5a | 01010000 00*20");
  expect_golden(Sqe::make(IoOpcode::kReservationReport, 1),
                ReportFields{.dwords = 31, .extended = true},
                "0e 40 0000 01000000 00*16 | 00*15 5a | 1f000000 01000000 00*16");
}

TEST(Command, Abort) {
  Sqe sqe = Sqe::make(AdminOpcode::kAbort);
  AbortFields{.sqid = 2, .cid = 0x77}.encode(sqe);
  EXPECT_EQ(wire(sqe), hex("08 40 0000 00000000 00*16 | 00*15 5a | 02007700 00*20"));
  EXPECT_EQ(AbortFields::decode(sqe).cid, 0x77);
}

// Every decoder takes any entry, and what it encodes reads the same again.
template <class Fields>
void expect_stable(const Sqe& sqe) {
  const Fields fields = Fields::decode(sqe);
  Sqe again;
  fields.encode(again);
  EXPECT_EQ(Fields::decode(again), fields);
}

TEST(Command, AnyEntryDecodesAndEncodesToTheSameFields) {
  Rng rng(3);
  for (int i = 0; i < 2000; ++i) {
    Sqe sqe;
    rng.fill(mutable_bytes_of(sqe));
    expect_stable<BlockFields>(sqe);
    expect_stable<DsmFields>(sqe);
    expect_stable<CopyFields>(sqe);
    expect_stable<ReplicateFields>(sqe);
    expect_stable<IdentifyFields>(sqe);
    expect_stable<GetLogFields>(sqe);
    expect_stable<GetFeaturesFields>(sqe);
    expect_stable<SetFeaturesFields>(sqe);
    expect_stable<RegisterFields>(sqe);
    expect_stable<AcquireFields>(sqe);
    expect_stable<ReleaseFields>(sqe);
    expect_stable<ReportFields>(sqe);
  }
}

TEST(Command, TransferDirectionIsInTheOpcode) {
  EXPECT_EQ(Sqe::make(IoOpcode::kRead, 1).transfer(), Transfer::kControllerToHost);
  EXPECT_EQ(Sqe::make(IoOpcode::kCompare, 1).transfer(), Transfer::kHostToController);
  EXPECT_EQ(Sqe::make(IoOpcode::kFlush, 1).transfer(), Transfer::kNone);
  EXPECT_EQ(Sqe::make(FabricsType::kConnect).transfer(), Transfer::kHostToController);
  EXPECT_EQ(Sqe::make(FabricsType::kPropertyGet).transfer(), Transfer::kNone);
  EXPECT_EQ(Sqe::make(FabricsType::kAuthenticationReceive).transfer(), Transfer::kControllerToHost);
}

TEST(Completion, OfASuccessAndOfARefusal) {
  Cqe cqe{.dw0 = 0x00030003, .sqhd = 5, .cid = 0x1234};
  EXPECT_EQ(wire(cqe), hex("03000300 00000000 0500 0000 3412 0000"));
  cqe.set_status(final_status(StatusCode::kInvalidField));
  EXPECT_EQ(wire(cqe), hex("03000300 00000000 0500 0000 3412 0480"));
  cqe.set_result64(0x0102030405060708);
  EXPECT_EQ(cqe.result64(), 0x0102030405060708u);
  EXPECT_EQ(cqe.dw1, 0x01020304u);
}

TEST(Status, FieldsAreWhereTheSpecificationHasThem) {
  const Status status = Status(StatusCode::kAnaTransition).with_retry_delay(2).with_more();
  EXPECT_EQ(status.to_wire(), (0x303 << 1) | (2 << 12) | (1 << 14));
  EXPECT_EQ(Status::from_wire(status.to_wire() | 1), status) << "the phase tag is no part of it";
  EXPECT_EQ(status.type(), StatusType::kPath);
  EXPECT_EQ(status.retry_delay(), 2);
  EXPECT_TRUE(status.more());
  EXPECT_FALSE(status.do_not_retry());
  EXPECT_FALSE(status.ok());
  EXPECT_TRUE(Status().ok());
  EXPECT_EQ(status, StatusCode::kAnaTransition);
  EXPECT_TRUE(status.with_do_not_retry().do_not_retry());
  EXPECT_EQ(status.with_retry_delay(1).retry_delay(), 1);
}

TEST(Status, PrintsItsNameNumberAndModifiers) {
  EXPECT_EQ(text(Status()), "success (000h)");
  EXPECT_EQ(text(final_status(StatusCode::kInvalidField)), "invalid field (002h, do not retry)");
  EXPECT_EQ(text(Status(StatusCode::kCompareFailure).with_more().with_retry_delay(1)),
            "compare failure (285h, retry delay 1, more)");
  EXPECT_EQ(text(static_cast<StatusCode>(0x7ff)), "unknown (7ffh)");
}

TEST(Status, FourCodesMeanAnotherThingInFabrics) {
  EXPECT_EQ(name(StatusCode::kConnectControllerBusy), "invalid protection information");
  EXPECT_EQ(name(StatusCode::kConnectControllerBusy, StatusContext::kFabrics),
            "connect controller busy");
  EXPECT_EQ(name(StatusCode::kConnectInvalidHost), "connect invalid host");
  EXPECT_EQ(name(StatusCode::kInternalError, StatusContext::kFabrics), "internal error");
}

TEST(Opcode, HaveNames) {
  EXPECT_EQ(name(AdminOpcode::kGetLogPage), "get log page");
  EXPECT_EQ(name(IoOpcode::kDatasetManagement), "dataset management");
  EXPECT_EQ(name(FabricsType::kPropertySet), "property set");
  EXPECT_EQ(name(static_cast<IoOpcode>(0xff)), "unknown");
  EXPECT_EQ(name(static_cast<AdminOpcode>(0xff)), "unknown");
  EXPECT_EQ(name(static_cast<FabricsType>(0xff)), "unknown");
}

struct PointerCase {
  const char* sgl;
  uint32_t in_capsule;
  StatusCode refusal;  // or kSuccess
};

TEST(DataPointer, OnlyTheTwoDescriptorsOfTcpAreTaken) {
  const PointerCase cases[] = {
      {"00*8 00020000 000000 01", 512, StatusCode::kSuccess},
      {"00*8 00020000 000000 01", 516, StatusCode::kDataSglLengthInvalid},
      {"00*8 00020000 000000 01", 0, StatusCode::kDataSglLengthInvalid},
      {"0400*1 00*6 00020000 000000 01", 516, StatusCode::kSuccess},
      {"0400*1 00*6 00020000 000000 01", 512, StatusCode::kDataSglLengthInvalid},
      {"01020000 00*4 00000000 000000 01", 512, StatusCode::kSglOffsetInvalid},
      {"ff*8 ffffffff 000000 01", 512, StatusCode::kSglOffsetInvalid},
      {"00*8 00100000 000000 5a", 0, StatusCode::kSuccess},
      {"00*8 00100000 000000 5a", 4096, StatusCode::kDataSglLengthInvalid},
      {"00*8 00100000 000000 00", 0, StatusCode::kSglDescriptorTypeInvalid},
      {"00*8 00100000 000000 40", 0, StatusCode::kSglDescriptorTypeInvalid},
      {"00*8 00100000 000000 50", 0, StatusCode::kSglDescriptorTypeInvalid},
      {"00*8 00100000 000000 30", 0, StatusCode::kSglDescriptorTypeInvalid},
  };
  for (const PointerCase& test : cases) {
    Sqe sqe = Sqe::make(IoOpcode::kWrite, 1);
    sqe.sgl1 = load<SglDescriptor>(hex(test.sgl));
    const auto pointer = decode_data_pointer(sqe, test.in_capsule);
    if (test.refusal == StatusCode::kSuccess) {
      ASSERT_TRUE(pointer) << test.sgl;
      EXPECT_EQ(pointer->in_capsule, test.in_capsule != 0);
      EXPECT_EQ(pointer->length, sqe.sgl1.length);
      EXPECT_EQ(pointer->offset, sqe.sgl1.address);
    } else {
      ASSERT_FALSE(pointer) << test.sgl;
      EXPECT_EQ(pointer.error(), final_status(test.refusal)) << test.sgl;
    }
  }
}

TEST(DataPointer, PrpsAreRefused) {
  Sqe sqe = Sqe::make(IoOpcode::kRead, 1);
  for (Psdt psdt : {Psdt::kPrp, Psdt::kSglMetadataSgl, Psdt::kReserved}) {
    sqe.set_psdt(psdt);
    EXPECT_EQ(decode_data_pointer(sqe, 0).error(), final_status(StatusCode::kInvalidField));
  }
}

TEST(DataPointer, IsNotReadOfCommandsWithoutData) {
  Sqe flush = Sqe::make(IoOpcode::kFlush, 1);
  flush.sgl1 = {};
  ASSERT_TRUE(decode_data_pointer(flush, 0));
  EXPECT_EQ(decode_data_pointer(flush, 0)->length, 0u);
  EXPECT_EQ(decode_data_pointer(flush, 4).error(), StatusCode::kDataSglLengthInvalid);
}

}  // namespace
}  // namespace cairn::nvme
