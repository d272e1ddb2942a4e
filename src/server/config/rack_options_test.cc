// SPDX-License-Identifier: Apache-2.0
#include "server/config/rack_options.h"

#include <gtest/gtest.h>

#include <string>

namespace cairn::server {
namespace {

TEST(RackOptions, AShelfIsReadFromALine) {
  const Attempt<RackShelf> shelf = parse_shelf("d0=file:/srv/r,size=2G,iops=500,bandwidth=1M");
  ASSERT_TRUE(shelf) << shelf.error().text;
  EXPECT_EQ(shelf->name, "d0");
  EXPECT_EQ(shelf->folder, "/srv/r");
  EXPECT_EQ(shelf->room, (rack::Amount{.bytes = 2_GiB, .iops = 500, .bandwidth = 1_MiB}));
  EXPECT_EQ(parse_shelf("m=mem:size=1M")->folder, "");
}

TEST(RackOptions, LinesThatAreNoShelfSayWhy) {
  const auto why = [](const char* text) {
    const Attempt<RackShelf> shelf = parse_shelf(text);
    return shelf ? std::string("taken") : shelf.error().text;
  };
  EXPECT_NE(why("mem:size=1M").find("is no shelf"), std::string::npos);
  EXPECT_NE(why("a=file:,size=1M").find("needs a folder"), std::string::npos);
  EXPECT_NE(why("a=mem:").find("multiples of 1 MiB"), std::string::npos);
  EXPECT_NE(why("a=mem:size=1M,iops=-3").find("no number of requests"), std::string::npos);
  EXPECT_NE(why("a=mem:size=x").find("no number of bytes"), std::string::npos);
  EXPECT_NE(why("a b=mem:size=1M").find("a shelf's name"), std::string::npos);
  EXPECT_NE(why("a=file:/x(y),size=1M").find("a bracket"), std::string::npos);
}

TEST(RackOptions, AFileNamesStoreAndShelves) {
  RackOptions options;
  config::Section root;
  add_rack_keys(root, options);
  const Attempt<void> checked = config::check_config(R"([rack]
store = "etcd://10.0.0.1:2379,10.0.0.2:2379"
name = "box7"
expiry = "9s"
[[rack.shelf]]
name = "d0"
size = "1G"
hosts = ["nqn.2026-11.io.cairn:h"]
)",
                                                     "f", root);
  ASSERT_TRUE(checked) << checked.error().text;
  EXPECT_EQ(options.store.kind, StoreUri::Kind::kEtcd);
  EXPECT_EQ(options.store.servers.size(), 2u);
  EXPECT_EQ(options.expiry, 9_s);
  ASSERT_EQ(options.shelves.size(), 1u);
  EXPECT_EQ(options.shelves[0].hosts, std::vector<std::string>{"nqn.2026-11.io.cairn:h"});
}

TEST(RackOptions, AShelfThatIsThereTwiceIsAMistake) {
  RackOptions options;
  config::Section root;
  add_rack_keys(root, options);
  const std::string shelf = "[[rack.shelf]]\nname = \"d0\"\nsize = \"1G\"\n";
  const Attempt<void> checked = config::check_config("[rack]\n" + shelf + shelf, "f", root);
  ASSERT_FALSE(checked);
  EXPECT_NE(checked.error().text.find("twice"), std::string::npos) << checked.error().text;
}

TEST(StoreUri, EachKindIsReadAndOthersAreRefused) {
  EXPECT_EQ(StoreUri::parse("meta://[::1]:4430")->kind, StoreUri::Kind::kServed);
  EXPECT_EQ(StoreUri::parse("rocks:/a b")->folder, "/a b");
  EXPECT_EQ(StoreUri::parse(kDefaultStore)->servers[0], env::Address::loopback(kMetaPort));
  for (const char* text : {"", "rocks:", "meta://", "meta://a:1", "etcd://1.2.3.4:5,", "http://x",
                           "meta://1.2.3.4:0", "etcd://unix:/x"}) {
    EXPECT_FALSE(StoreUri::parse(text)) << text;
  }
}

TEST(StoreUri, KeysAreFilesAndHaveANameEach) {
  const Attempt<StoreUri> uri =
      StoreUri::parse("meta://1.2.3.4:5,1.2.3.5:5?tls_key=/a%20b/%26.key&name=box7");
  ASSERT_TRUE(uri) << uri.error().text;
  EXPECT_EQ(uri->servers.size(), 2u);
  EXPECT_EQ(uri->tls_key, "/a b/&.key");
  EXPECT_EQ(uri->name, "box7");
  for (const char* query : {"tls_key=f", "name=n", "tls_key=&name=n", "tls_key=f&name=a/b", "x=1",
                            "tls_key=f&name=n&name=m", "tls_key=%0&name=n", "tls_key",
                            "tls_key=%00&name=n", "tls_key=NVMeTLSkey-1:01:AA:&name=n"}) {
    EXPECT_FALSE(StoreUri::parse(std::string("meta://1.2.3.4:5?") + query)) << query;
  }
  EXPECT_FALSE(StoreUri::parse("etcd://1.2.3.4:5?tls_key=f&name=n"));
}

TEST(StoreUri, EtcdHasCertificates) {
  const Attempt<StoreUri> uri =
      StoreUri::parse("etcd://1.2.3.4:5?ca=/c/ca.pem&cert=b.pem&key=b.key&name=etcd.example");
  ASSERT_TRUE(uri) << uri.error().text;
  EXPECT_EQ(uri->ca, "/c/ca.pem");
  EXPECT_EQ(uri->cert, "b.pem");
  EXPECT_EQ(uri->key, "b.key");
  EXPECT_EQ(uri->name, "etcd.example");
  EXPECT_TRUE(StoreUri::parse("etcd://1.2.3.4:5?ca=f"));
  for (const char* query : {"ca=f&cert=c", "ca=f&key=k", "cert=c&key=k", "name=n", "ca=", "x=1"}) {
    EXPECT_FALSE(StoreUri::parse(std::string("etcd://1.2.3.4:5?") + query)) << query;
  }
  EXPECT_FALSE(StoreUri::parse("meta://1.2.3.4:5?ca=f"));
}

}  // namespace
}  // namespace cairn::server
