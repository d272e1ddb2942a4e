// SPDX-License-Identifier: Apache-2.0
#include "fabric/host/uri.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace cairn::fabric {
namespace {

TEST(Uri, ReadsWhatItPrints) {
  for (const char* text :
       {"nvme-tcp://10.0.0.1:4420/nqn.2026-11.io.cairn:a?nsid=1",
        "nvme-tcp://[fd00::7]:4421/nqn.2014-08.org.nvmexpress:uuid:1-2?nsid=4294967294",
        "nvme-tcp://10.0.0.1:8009",
        "nvme-tcp://10.0.0.1:4420/a%3Fb%20c%25?nsid=3&path=10.0.1.1:4420&path=[::1]:5&"
        "hostnqn=nqn.2026-11.io.cairn:h&hostid=00112233-4455-6677-8899-aabbccddeeff&hdgst=on&"
        "ddgst=on&queues=4&depth=64&retries=0&connect_timeout=2s&admin_timeout=1500ms&"
        "io_timeout=120s&kato=0&reconnect_delay=1us&reconnect_delay_max=3s&loss_timeout=never&"
        "cancel_timeout=0&quiesce=0"}) {
    const auto uri = Uri::parse(text);
    ASSERT_TRUE(uri) << uri.error();
    EXPECT_EQ(uri->text(), text);
  }
}

TEST(Uri, FillsInWhatIsLeftOut) {
  const auto uri = Uri::parse("nvme-tcp://localhost/nqn.x?io_timeout=2m&path=10.1.1.1");
  ASSERT_TRUE(uri) << uri.error();
  EXPECT_EQ(uri->text(),
            "nvme-tcp://127.0.0.1:4420/nqn.x?nsid=1&path=10.1.1.1:4420&io_timeout=120s");
  EXPECT_EQ(uri->nsid, 1u);
  EXPECT_FALSE(uri->is_discovery());

  const auto discovery = Uri::parse("nvme-tcp://[::1]/");
  ASSERT_TRUE(discovery) << discovery.error();
  EXPECT_TRUE(discovery->is_discovery());
  EXPECT_EQ(discovery->text(), "nvme-tcp://[::1]:8009");
}

TEST(Uri, NamesANamespaceByItsUuidOrItsNumber) {
  const std::string text =
      "nvme-tcp://1.2.3.4:4420/nqn.x?uuid=01234567-89ab-4def-8123-456789abcdef&queues=2";
  const auto uri = Uri::parse(text);
  ASSERT_TRUE(uri) << uri.error();
  EXPECT_EQ(uri->text(), text);
  EXPECT_EQ(uuid_text(uri->uuid), "01234567-89ab-4def-8123-456789abcdef");
  for (const char* wrong : {"uuid=1", "uuid=00000000-0000-0000-0000-000000000000",
                            "nsid=1&uuid=01234567-89ab-4def-8123-456789abcdef"}) {
    EXPECT_FALSE(Uri::parse(std::string("nvme-tcp://1.2.3.4/nqn.x?") + wrong)) << wrong;
  }
}

TEST(Uri, SetsLanesApart) {
  const std::string text =
      "nvme-tcp://1.2.3.4:4420/x?nsid=1&queues=3&batching=fixed&lane.1.batching=off&"
      "lane.1.urgent=on&lane.3.caravan=32&lane.3.caravan_bytes=4096&lane.3.doorbell=20us";
  const auto uri = Uri::parse(text);
  ASSERT_TRUE(uri) << uri.error();
  EXPECT_EQ(uri->text(), text);
  using Mode = DoorbellOptions::Mode;
  EXPECT_EQ(uri->options.doorbell_of(1).mode, Mode::kOff);
  EXPECT_TRUE(uri->options.is_urgent(1));
  EXPECT_EQ(uri->options.doorbell_of(2), uri->options.doorbell);
  const DoorbellOptions third{.mode = Mode::kFixed, .count = 32, .bytes = 4096, .delay = 20_us};
  EXPECT_EQ(uri->options.doorbell_of(3), third);
  EXPECT_FALSE(uri->options.is_urgent(3));
}

TEST(Uri, NamesKeyFiles) {
  const std::string text =
      "nvme-tcp://1.2.3.4:4420/x?nsid=1&dhchap_key=keys%2Fhost&dhchap_ctrl_key=k";
  const auto uri = Uri::parse(text);
  ASSERT_TRUE(uri) << uri.error();
  EXPECT_EQ(uri->options.key_file, "keys/host");
  EXPECT_EQ(uri->options.controller_key_file, "k");
  EXPECT_EQ(uri->text(), text);
}

TEST(Uri, SaysWhatIsWrongAndWhere) {
  const std::pair<std::string, const char*> cases[] = {
      {"", "does not begin with"},
      {"nvme://1.2.3.4/x", "does not begin with"},
      {"nvme-tcp://", "'' is not HOST or HOST:PORT"},
      {"nvme-tcp://box1:4420/x", "names are not looked up"},
      {"nvme-tcp://fd00::1/x", "IPv6 in brackets"},
      {"nvme-tcp://1.2.3.4:99999/x", "'1.2.3.4:99999'"},
      {"nvme-tcp://1.2.3.4:0/x", "port 0"},
      {"nvme-tcp://unix:/x:1/y", "is not HOST"},
      {"nvme-tcp://1.2.3.4/%2", "two hexadecimal digits"},
      {"nvme-tcp://1.2.3.4/%zz", "two hexadecimal digits"},
      {"nvme-tcp://1.2.3.4/a%00", "none of them zero"},
      {"nvme-tcp://1.2.3.4/" + std::string(224, 'a'), "1 to 223 bytes"},
      {"nvme-tcp://1.2.3.4/x?nsid=0", "nsid='0' is not a number from 1"},
      {"nvme-tcp://1.2.3.4/x?nsid=4294967295", "from 1 to 4294967294"},
      {"nvme-tcp://1.2.3.4/x?nsid", "is not KEY=VALUE"},
      {"nvme-tcp://1.2.3.4/x?=1", "is not KEY=VALUE"},
      {"nvme-tcp://1.2.3.4/x?colour=red", "'colour' is not an option"},
      {"nvme-tcp://1.2.3.4/x?hdgst=yes", "neither 'on' nor 'off'"},
      {"nvme-tcp://1.2.3.4/x?queues=129", "from 1 to 128"},
      {"nvme-tcp://1.2.3.4/x?depth=-1", "from 1 to 1023"},
      {"nvme-tcp://1.2.3.4/x?io_timeout=0", "above 0"},
      {"nvme-tcp://1.2.3.4/x?io_timeout=never", "is not a time"},
      {"nvme-tcp://1.2.3.4/x?kato=5", "is not a time"},
      {"nvme-tcp://1.2.3.4/x?kato=99999999999999999999s", "is not a time"},
      {"nvme-tcp://1.2.3.4/x?hostid=12", "is not a UUID"},
      {"nvme-tcp://1.2.3.4/x?hostnqn=", "is no host NQN"},
      {"nvme-tcp://1.2.3.4/x?dhchap_key=", "is not the name of a file"},
      {"nvme-tcp://1.2.3.4/x?dhchap_key=DHHC-1:00:AAAA:", "not the key itself"},
      {"nvme-tcp://1.2.3.4/x?dhchap_ctrl_key=k", "needs dhchap_key too"},
      {"nvme-tcp://1.2.3.4/x?queues=2&lane.3.batching=off", "write queues=3"},
      {"nvme-tcp://1.2.3.4/x?lane.0.batching=off", "is not lane.N.OPTION"},
      {"nvme-tcp://1.2.3.4/x?lane.1=off", "is not lane.N.OPTION"},
      {"nvme-tcp://1.2.3.4/x?lane.x.urgent=on", "is not lane.N.OPTION"},
      {"nvme-tcp://1.2.3.4/x?lane.1.batching=of", "lane.1.batching='of' is none of"},
      {"nvme-tcp://1.2.3.4/x?lane.1.depth=2", "'depth' is none of batching"},
      {"nvme-tcp://1.2.3.4/x?lane.1.caravan=0", "from 1 to 1023"},
      {"nvme-tcp://1.2.3.4/x?path=nowhere", "'nowhere' is not HOST"},
  };
  for (const auto& [text, part] : cases) {
    const auto uri = Uri::parse(text);
    ASSERT_FALSE(uri) << text;
    EXPECT_NE(uri.error().find(part), std::string::npos) << uri.error();
  }
}

}  // namespace
}  // namespace cairn::fabric
