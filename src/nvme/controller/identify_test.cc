// SPDX-License-Identifier: Apache-2.0
#include "nvme/controller/identify.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "nvme/controller/namespace_ids.h"
#include "nvme/format/limits.h"

namespace cairn::nvme {
namespace {

SubsystemOptions options() {
  SubsystemOptions subsystem;
  subsystem.nqn = "nqn.2026-11.io.cairn:test";
  return subsystem;
}

uint64_t number(Bytes page, size_t offset, size_t size) {
  uint64_t value = 0;
  std::memcpy(&value, page.subspan(offset).first(size).data(), size);
  return value;
}

struct Field {
  const char* name;
  size_t offset;
  size_t size;
  uint64_t value;
};

// Every byte of `page` outside the fields is zero, and each field has its value.
void expect_only(Bytes page, std::initializer_list<Field> fields) {
  std::vector<std::byte> rest(page.begin(), page.end());
  for (const Field& field : fields) {
    if (field.size <= 8) {
      EXPECT_EQ(number(page, field.offset, field.size), field.value) << field.name;
    }
    std::fill_n(rest.begin() + static_cast<ptrdiff_t>(field.offset), field.size, std::byte{0});
  }
  for (size_t i = 0; i < rest.size(); ++i) EXPECT_EQ(rest[i], std::byte{0}) << "byte " << i;
}

// Offsets as the specification prints them.
TEST(Identify, ControllerIsGolden) {
  const SubsystemOptions subsystem = options();
  const IdentifyController page =
      identify_controller({.subsystem = subsystem, .id = 0x1234, .capacity = 5 << 20});
  expect_only(bytes_of(page), {{"SN", 4, 20, 0},
                               {"MN", 24, 40, 0},
                               {"FR", 64, 8, 0x2020'2030'2e31'2e30},
                               {"RAB", 72, 1, 6},
                               {"CMIC", 76, 1, 0x0b},
                               {"MDTS", 77, 1, 8},
                               {"CNTLID", 78, 2, 0x1234},
                               {"VER", 80, 4, 0x20000},
                               {"OAES", 92, 4, 0x900},
                               {"CTRATT", 96, 4, 0x41},
                               {"CNTRLTYPE", 111, 1, 1},
                               {"ACL", 258, 1, 3},
                               {"AERL", 259, 1, 3},
                               {"FRMW", 260, 1, 3},
                               {"LPA", 261, 1, 0x27},
                               {"ELPE", 262, 1, 63},
                               {"WCTEMP", 266, 2, 343},
                               {"CCTEMP", 268, 2, 353},
                               {"TNVMCAP", 280, 8, 5 << 20},
                               {"KAS", 320, 2, 1},
                               {"ANATT", 342, 1, 10},
                               {"ANACAP", 343, 1, 0x5f},
                               {"ANAGRPMAX", 344, 4, 128},
                               {"NANAGRPID", 348, 4, 128},
                               {"SQES", 512, 1, 0x66},
                               {"CQES", 513, 1, 0x44},
                               {"MAXCMD", 514, 2, 128},
                               {"NN", 516, 4, 65536},
                               {"ONCS", 520, 2, 0x13d},
                               {"FUSES", 522, 2, 1},
                               {"VWC", 525, 1, 7},
                               {"OCFS", 534, 2, 1},
                               {"SGLS", 536, 4, 0x0030'0001},
                               {"MNAN", 540, 4, 1024},
                               {"SUBNQN", 768, 256, 0},
                               {"IOCCSZ", 1792, 4, (64 + 8192) / 16},
                               {"IORCSZ", 1796, 4, 1},
                               {"MSDBD", 1803, 1, 1},
                               {"OFCS", 1804, 2, 1},
                               {"feature C0h", 3072, 8, 0x314e'494e'5249'4143},
                               {"Replicated Write", 3080, 8, 0x3157'524e'5249'4143}});
  EXPECT_EQ(page.serial_number.trimmed().size(), 20u);
  EXPECT_EQ(page.model_number.trimmed(), "Cairn flash box");
  EXPECT_EQ(page.subsystem_nqn.get().value_or(""), subsystem.nqn);
}

TEST(Identify, LimitsAgreeWithThoseOfQueues) {
  EXPECT_EQ(IoLimits{}.transfer_bytes_max, kTransferBytesMax);
}

TEST(Identify, DiscoveryControllerIsGolden) {
  SubsystemOptions subsystem;
  subsystem.nqn = kDiscoveryNqn;
  subsystem.model = "Cairn discovery";
  const IdentifyController page =
      identify_controller({.subsystem = subsystem, .id = 1, .kind = ControllerKind::kDiscovery});
  expect_only(bytes_of(page), {{"SN", 4, 20, 0},
                               {"MN", 24, 40, 0},
                               {"FR", 64, 8, 0x2020'2030'2e31'2e30},
                               {"RAB", 72, 1, 6},
                               {"MDTS", 77, 1, 4},
                               {"CNTLID", 78, 2, 1},
                               {"VER", 80, 4, 0x20000},
                               {"OAES", 92, 4, 1u << 31},
                               {"CTRATT", 96, 4, 0x41},
                               {"CNTRLTYPE", 111, 1, 2},
                               {"ACL", 258, 1, 3},
                               {"AERL", 259, 1, 3},
                               {"FRMW", 260, 1, 3},
                               {"LPA", 261, 1, 4},
                               {"ELPE", 262, 1, 63},
                               {"WCTEMP", 266, 2, 343},
                               {"CCTEMP", 268, 2, 353},
                               {"KAS", 320, 2, 1},
                               {"SQES", 512, 1, 0x66},
                               {"CQES", 513, 1, 0x44},
                               {"MAXCMD", 514, 2, 128},
                               {"SGLS", 536, 4, 0x0030'0001},
                               {"SUBNQN", 768, 256, 0},
                               {"MSDBD", 1803, 1, 1},
                               {"DCTYPE", 1806, 1, 1}});
}

TEST(Identify, NamespaceIsGolden) {
  NamespaceOptions space;
  space.nguid = {1};
  space.ana_group = 3;
  space.read_only = true;
  const drive::Geometry geometry{.blocks = 1000,
                                 .block_size = 4096,
                                 .optimal_blocks = 8,
                                 .discard_blocks = 16,
                                 .atomic_blocks = 4,
                                 .transfer_blocks = 256};
  const IdentifyNamespace page =
      identify_namespace({.options = space, .geometry = geometry, .limits = {}});
  expect_only(bytes_of(page),
              {{"NSZE", 0, 8, 1000},          {"NCAP", 8, 8, 1000}, {"NUSE", 16, 8, 1000},
               {"NSFEAT", 24, 1, 0x12},       {"NMIC", 30, 1, 1},   {"RESCAP", 31, 1, 0xfe},
               {"DLFEAT", 33, 1, 9},          {"NAWUN", 34, 2, 3},  {"NAWUPF", 36, 2, 3},
               {"NACWU", 38, 2, 3},           {"NABSN", 40, 2, 3},  {"NABSPF", 44, 2, 3},
               {"NVMCAP", 48, 8, 4096000},    {"NPWG", 64, 2, 7},   {"NPWA", 66, 2, 7},
               {"NPDG", 68, 2, 15},           {"NPDA", 70, 2, 15},  {"NOWS", 72, 2, 7},
               {"MSSRL", 74, 2, 256},         {"MCL", 76, 4, 256},  {"MSRC", 80, 1, 127},
               {"ANAGRPID", 92, 4, 3},        {"NSATTR", 99, 1, 1}, {"NGUID", 104, 16, 0},
               {"LBAF0", 128, 4, 0x000c'0000}});
  EXPECT_EQ(page.nguid, space.nguid);
  const IdentifyNamespaceIndependent other = identify_independent(
      {.options = space, .geometry = geometry, .limits = {}, .keep_reservations = true});
  expect_only(bytes_of(other), {{"NMIC", 1, 1, 1},
                                {"RESCAP", 2, 1, 0xff},
                                {"ANAGRPID", 4, 4, 3},
                                {"NSATTR", 8, 1, 1},
                                {"NSTAT", 14, 1, 1}});
}

TEST(Identify, DescriptorsHoldNguidUuidAndCommandSet) {
  NamespaceOptions space;
  space.nguid = {1, 2};
  space.uuid = {3, 4};
  std::vector<std::byte> page(kIdentifySize);
  identify_descriptors(space, page);
  NamespaceDescriptorReader reader(page);
  auto descriptor = reader.next();
  ASSERT_TRUE(descriptor && descriptor->type == NamespaceIdType::kNguid);
  EXPECT_EQ(descriptor->id[1], std::byte{2});
  descriptor = reader.next();
  ASSERT_TRUE(descriptor && descriptor->type == NamespaceIdType::kUuid);
  EXPECT_EQ(descriptor->id[0], std::byte{3});
  descriptor = reader.next();
  ASSERT_TRUE(descriptor && descriptor->type == NamespaceIdType::kCsi);
  EXPECT_EQ(descriptor->id[0], std::byte{0});
  EXPECT_FALSE(reader.next());
}

TEST(NamespaceIds, AreStableDistinctAndNotOfTheSize) {
  const auto spec = [](const char* text) { return *drive::Spec::parse(text); };
  const NamespaceIds ids = make_namespace_ids("nqn.a", 1, spec("file:/x,size=1G"));
  // Hosts remember these: the same input gives the same ids in every version.
  const std::array<uint8_t, 16> nguid = {0x49, 0x50, 0x02, 0x9c, 0xb1, 0xb9, 0x62, 0xda,
                                         0x25, 0x3e, 0x95, 0x8c, 0xa3, 0x0a, 0xda, 0x7e};
  const std::array<uint8_t, 16> uuid = {0xbc, 0x8f, 0x91, 0x55, 0xa1, 0xcd, 0x88, 0xb2,
                                        0x8c, 0xd3, 0x7e, 0xce, 0x99, 0xe7, 0xd4, 0xd7};
  EXPECT_EQ(ids.nguid, nguid);
  EXPECT_EQ(ids.uuid, uuid);
  EXPECT_EQ(ids.nguid, make_namespace_ids("nqn.a", 1, spec("file:/x,size=2G,block=512")).nguid);
  EXPECT_NE(ids.nguid, make_namespace_ids("nqn.b", 1, spec("file:/x,size=1G")).nguid);
  EXPECT_NE(ids.nguid, make_namespace_ids("nqn.a", 2, spec("file:/x,size=1G")).nguid);
  EXPECT_NE(ids.nguid, make_namespace_ids("nqn.a", 1, spec("file:/y,size=1G")).nguid);
  EXPECT_NE(ids.nguid, make_namespace_ids("nqn.a", 1, spec("mem:size=1G")).nguid);
  EXPECT_EQ(make_named_ids("nqn.a", "x").uuid, make_named_ids("nqn.a", "x").uuid);
  EXPECT_NE(make_named_ids("nqn.a", "x").uuid, make_named_ids("nqn.a", "y").uuid);
  EXPECT_NE(make_named_ids("nqn.a", "x").uuid, make_named_ids("nqn.b", "x").uuid);
  EXPECT_EQ(ids.uuid[6] >> 4, 8);
  EXPECT_EQ(ids.uuid[8] >> 6, 2);
  EXPECT_EQ(make_serial("nqn.a").size(), 20u);
  EXPECT_NE(make_serial("nqn.a"), make_serial("nqn.b"));
}

TEST(Identify, ANamespaceTellsItsIncarnationIfItHasOne) {
  const NamespaceOptions space;
  const drive::Geometry geometry{.blocks = 10};
  IdentifyNamespace page =
      identify_namespace({.options = space, .geometry = geometry, .limits = {}});
  EXPECT_NE(page.incarnation_magic, kIncarnationMagic);
  page = identify_namespace({.options = space,
                             .geometry = geometry,
                             .limits = {},
                             .incarnation = {.medium = 0x0102, .opening = 0x0304}});
  const Bytes bytes = bytes_of(page);
  EXPECT_EQ(as_text(bytes.subspan(384, 8)), "CAIRNIN1");
  EXPECT_EQ(load<uint64_t>(bytes.subspan(392)), 0x0102u);
  EXPECT_EQ(load<uint64_t>(bytes.subspan(400)), 0x0304u);
}

}  // namespace
}  // namespace cairn::nvme
