// SPDX-License-Identifier: Apache-2.0
#include "nvme/format/fabrics_format.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "base/bytes.h"
#include "base/rng.h"
#include "nvme/format/command_format.h"
#include "nvme/format/nqn.h"
#include "nvme/format/opcode_format.h"
#include "nvme/format/property_format.h"
#include "testing/nvme/hex.h"

namespace cairn::nvme {
namespace {

TEST(Fabrics, ConnectOfAnAdminQueue) {
  ConnectCommand connect;
  connect.cid = 0x0102;
  connect.queue_size = 31;
  connect.attributes = ConnectAttributes::kNoFlowControl;
  connect.keep_alive_ms = 5000;
  EXPECT_EQ(wire(connect), hex("7f 40 0201 01 00*19 | 00*8 00040000 000000 01 |"
                               "0000 0000 1f00 04 00 88130000 00*12"));
  const Sqe sqe = to_sqe(connect);
  EXPECT_TRUE(sqe.is_fabrics());
  EXPECT_EQ(sqe.fabrics_type(), FabricsType::kConnect);
  EXPECT_EQ(sqe.psdt(), Psdt::kSgl);
  EXPECT_EQ(fabrics_cast<ConnectCommand>(sqe).keep_alive_ms, 5000u);
}

TEST(Fabrics, ConnectData) {
  ConnectData data;
  data.host_id.fill(0xab);
  data.host_nqn.set("nqn.2026-11.io.cairn:h");
  data.subsystem_nqn.set(kDiscoveryNqn);
  const auto bytes = wire(data);
  EXPECT_EQ(wire(Bytes(bytes).first(18)), hex("ab*16 ffff"));
  EXPECT_EQ(as_text(Bytes(bytes).subspan(256, kDiscoveryNqn.size())), kDiscoveryNqn);
  EXPECT_EQ(as_text(Bytes(bytes).subspan(512, 22)), "nqn.2026-11.io.cairn:h");
  EXPECT_EQ(wire(Bytes(bytes).subspan(768)), hex("00*256"));
}

TEST(Fabrics, ConnectAnswers) {
  EXPECT_EQ((ConnectResult{.controller_id = 0x1234, .authenticate = true}.encode()), 0x0002'1234u);
  EXPECT_TRUE(ConnectResult::decode(0x0006'0001).authenticate_and_tls);
  EXPECT_EQ(ConnectResult::decode(0x0006'0001).controller_id, 1);
  EXPECT_EQ((ConnectInvalid{.offset = 256, .in_data = true}.encode()), 0x0001'0100u);
  EXPECT_EQ((ConnectInvalid{.offset = 42}.encode()), 0x2au);
  EXPECT_TRUE(ConnectInvalid::decode(0x0001'0100).in_data);
  EXPECT_EQ(ConnectInvalid::decode(0x0001'0100).offset, 256);
}

TEST(Fabrics, PropertyGetOfCapabilities) {
  PropertyCommand get;
  get.cid = 1;
  get.attributes = PropertyCommand::k8Bytes;
  get.offset = static_cast<uint32_t>(PropertyOffset::kCapabilities);
  EXPECT_EQ(wire(get), hex("7f 40 0100 04 00*35 | 01 000000 00000000 00*8 00*8"));
  EXPECT_EQ(get.size_code(), PropertyCommand::k8Bytes);
}

TEST(Fabrics, PropertySetOfConfiguration) {
  PropertyCommand set;
  set.type = FabricsType::kPropertySet;
  set.cid = 2;
  set.offset = static_cast<uint32_t>(PropertyOffset::kConfiguration);
  set.value = Configuration{.enable = true, .submission_entry_size = 6, .completion_entry_size = 4}
                  .encode();
  EXPECT_EQ(wire(set), hex("7f 40 0200 00 00*35 | 00 000000 14000000 0100460000000000 00*8"));
}

TEST(Fabrics, DisconnectAndAuthentication) {
  EXPECT_EQ(wire(DisconnectCommand{.cid = 3}), hex("7f 40 0300 08 00*35 | 0000 00*22"));
  AuthenticationCommand receive;
  receive.type = FabricsType::kAuthenticationReceive;
  receive.sgl1 = SglDescriptor::transport(4096);
  receive.length = 4096;
  EXPECT_EQ(wire(receive), hex("7f 40 0000 06 00*19 | 00*8 00100000 000000 5a |"
                               "00 01 01 e9 00100000 00*16"));
}

TEST(Property, CapabilitiesOfASmallController) {
  const Capabilities capabilities{.queue_entries_max = 127,
                                  .contiguous_queues = true,
                                  .timeout_500ms = 30,
                                  .command_sets = CommandSets::kNvm | CommandSets::kSeveral,
                                  .page_size_max = 4,
                                  .ready_with_media = true};
  EXPECT_EQ(capabilities.encode(), 0x0840'0820'1e01'007fu);
  EXPECT_EQ(Capabilities::decode(0x0840'0820'1e01'007f), capabilities);
}

TEST(Property, VersionsCompare) {
  EXPECT_EQ((Version{2, 0, 0}.encode()), 0x00020000u);
  EXPECT_EQ((Version{1, 4, 0}.encode()), 0x00010400u);
  EXPECT_LT(Version::decode(0x00010402), (Version{2, 0, 0}));
}

TEST(Property, ConfigurationOfAShutdown) {
  const auto cc = Configuration::decode(0x00464001);
  EXPECT_TRUE(cc.enable);
  EXPECT_EQ(cc.shutdown, ShutdownNotice::kNormal);
  EXPECT_EQ(cc.submission_entry_size, 6);
  EXPECT_EQ(cc.completion_entry_size, 4);
  EXPECT_EQ(Configuration::decode(0x00460060).command_sets, CommandSetSelect::kAllSupported);
}

TEST(Property, StatusOfAShutdown) {
  const ControllerStatus status{.ready = true, .shutdown = ShutdownStatus::kComplete};
  EXPECT_EQ(status.encode(), 0x9u);
  EXPECT_EQ(ControllerStatus::decode(0x9), status);
  EXPECT_TRUE(ControllerStatus::decode(0x2).fatal);
  EXPECT_EQ((ReadyTimeouts{.with_media = 1, .independent_of_media = 2}.encode()), 0x00020001u);
}

TEST(Property, AnyValueDecodesAndEncodesToTheSameFields) {
  Rng rng(4);
  for (int i = 0; i < 2000; ++i) {
    const uint64_t value = rng.next();
    const auto low = static_cast<uint32_t>(value);
    const auto cap = Capabilities::decode(value);
    EXPECT_EQ(Capabilities::decode(cap.encode()), cap);
    const auto cc = Configuration::decode(low);
    EXPECT_EQ(Configuration::decode(cc.encode()), cc);
    const auto csts = ControllerStatus::decode(low);
    EXPECT_EQ(ControllerStatus::decode(csts.encode()), csts);
    EXPECT_EQ(Version::decode(low).encode(), low);
    EXPECT_EQ(ReadyTimeouts::decode(low).encode(), low);
  }
}

}  // namespace
}  // namespace cairn::nvme
