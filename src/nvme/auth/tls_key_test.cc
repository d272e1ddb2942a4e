// SPDX-License-Identifier: Apache-2.0
// Texts of keys and identities of version 1 are those of libnvme's own tests; derived keys were
// computed with Python's hmac from RFC 5869 and RFC 8446.
#include "nvme/auth/tls_key.h"

#include <gtest/gtest.h>

#include <string>

#include "nvme/auth/tls_identity.h"
#include "testing/nvme/hex.h"

namespace cairn::nvme {
namespace {

using crypto::Hash;

constexpr TlsNames kNames = {.host = "nqn.psk-test-host", .subsystem = "nqn.psk-test-subsys"};
const std::string kKey00 = "NVMeTLSkey-1:00:VRLbtnN9AQb2WXW3c9+wEf/DRLz0QuLdbYvEhwtdWwNf9LrZ:";
const std::string kKey01 = "NVMeTLSkey-1:01:VRLbtnN9AQb2WXW3c9+wEf/DRLz0QuLdbYvEhwtdWwNf9LrZ:";
const std::string kKey02 =
    "NVMeTLSkey-1:02:VRLbtnN9AQb2WXW3c9+wEf/DRLz0QuLdbYvEhwtdWwP/w0S89ELi3W2LxIcLXVsDn8kXZQ==:";

TlsPsk derived(const std::string& key, TlsIdentityVersion version) {
  return TlsKey::parse(key).value().psk_of(kNames, version).value();
}

TEST(TlsKey, IsReadAndWrittenAsLibnvmeDoes) {
  for (const std::string& text : {kKey00, kKey01, kKey02}) {
    const Result<TlsKey> key = TlsKey::parse(text);
    ASSERT_TRUE(key) << text;
    EXPECT_EQ(key->text(), text);
  }
  EXPECT_EQ(TlsKey::parse(kKey00)->binding(), std::nullopt);
  EXPECT_EQ(TlsKey::parse(kKey00)->hash(), Hash::kSha256) << "by its length";
  EXPECT_EQ(TlsKey::parse(kKey02)->hash(), Hash::kSha384);
  EXPECT_EQ(wire(TlsKey::parse(kKey01)->key()),
            hex("5512dbb6737d0106f65975b773dfb011ffc344bcf442e2dd6d8bc4870b5d5b03"));
}

TEST(TlsKey, OtherTextIsRefused) {
  std::string other_end = kKey01;
  other_end.pop_back();
  for (const std::string& text :
       {std::string(), std::string("NVMeTLSkey-1:"), other_end, kKey01 + ":",
        "NVMeTLSkey-2" + kKey01.substr(12), "NVMeTLSkey-1:03" + kKey01.substr(15),
        "NVMeTLSkey-1:02" + kKey01.substr(15), "NVMeTLSkey-1:01" + kKey02.substr(15),
        std::string("NVMeTLSkey-1:01:!!!!:"), std::string("NVMeTLSkey-1:01:AAAA:"),
        std::string("DHHC-1:01:AAAA:")}) {
    const Result<TlsKey> key = TlsKey::parse(text);
    ASSERT_FALSE(key) << text;
    EXPECT_EQ(key.error(), Errc::kInvalid) << text;
  }
  std::string typo = kKey01;
  typo[20] = typo[20] == 'A' ? 'B' : 'A';
  const Result<TlsKey> key = TlsKey::parse(typo);
  ASSERT_FALSE(key);
  EXPECT_EQ(key.error(), Errc::kCorrupt);
}

TEST(TlsKey, Version1HasTheIdentityOfLibnvme) {
  EXPECT_EQ(derived(kKey01, TlsIdentityVersion::k1).identity.text(),
            "NVMe1R01 nqn.psk-test-host nqn.psk-test-subsys "
            "iSbjiStwJ/1TrTvDlt2fjFmzvsytOJelidNnA+X5lEU=");
  EXPECT_EQ(derived(kKey02, TlsIdentityVersion::k1).identity.text(),
            "NVMe1R02 nqn.psk-test-host nqn.psk-test-subsys "
            "QhW2+Rp6RzHlNtCslyRxMnwJ11tKKhz8JCAQpQ+XUD8f9td1VeH5h53yz2wKJG1a");
  EXPECT_EQ(derived(kKey01, TlsIdentityVersion::k0).identity.text(),
            "NVMe0R01 nqn.psk-test-host nqn.psk-test-subsys");
}

TEST(TlsKey, DerivesWhatTlsGets) {
  EXPECT_EQ(wire(derived(kKey01, TlsIdentityVersion::k1).key.bytes()),
            hex("8fc3c0badfd4c0c66fa3ca33aadd0314f85536cc9bc47338b60f3e6e563786ca"));
  EXPECT_EQ(wire(derived(kKey01, TlsIdentityVersion::k0).key.bytes()),
            hex("05c6503551ad136e6ee32e6eeb3f6d500b69701d84ec71e328f65c7f51566f68"));
  EXPECT_EQ(wire(derived(kKey02, TlsIdentityVersion::k1).key.bytes()),
            hex("a2b2f943f479fc682555cec89857c80ed004ce92f32a973d5764155bb7e36b17"
                "a85368a0666d250afac9282dda2e62ca"));
  EXPECT_EQ(wire(derived(kKey02, TlsIdentityVersion::k0).key.bytes()),
            hex("f42ba63824cdfe421914c582921f85b5b5b7e2d4df084caeedc9be20b212e8bb"
                "0fe8a23e9d59a1c8fc6449da4970a78d"));
}

TEST(TlsKey, NamesThatDoNotFitAreRefused) {
  const TlsKey key = TlsKey::parse(kKey01).value();
  const std::string longest(kNqnMax, 'n');
  EXPECT_TRUE(key.psk_of({.host = longest, .subsystem = longest}, TlsIdentityVersion::k1));
  EXPECT_FALSE(key.psk_of({.host = longest, .subsystem = longest}, TlsIdentityVersion::k0));
  EXPECT_FALSE(key.psk_of({.host = "a b", .subsystem = "c"}, TlsIdentityVersion::k1));
  EXPECT_FALSE(key.psk_of({.host = "", .subsystem = "c"}, TlsIdentityVersion::k1));
}

TEST(TlsIdentity, IsParsedAndWrittenTheSame) {
  const std::string text = derived(kKey02, TlsIdentityVersion::k1).identity.text();
  const Result<TlsIdentity> identity = TlsIdentity::parse(text);
  ASSERT_TRUE(identity);
  EXPECT_EQ(identity->version, TlsIdentityVersion::k1);
  EXPECT_EQ(identity->hash, Hash::kSha384);
  EXPECT_EQ(identity->host_nqn, kNames.host);
  EXPECT_EQ(identity->nqn, kNames.subsystem);
  EXPECT_EQ(identity->text(), text);
  EXPECT_EQ(TlsIdentity::parse("NVMe0R01 h s")->text(), "NVMe0R01 h s");
}

TEST(TlsIdentity, OtherTextIsRefused) {
  const std::string digest = derived(kKey01, TlsIdentityVersion::k1).identity.digest;
  for (const std::string& text :
       {std::string(), std::string("NVMe0R01"), std::string("NVMe0R01 h"),
        std::string("NVMe0R01 h "), std::string("NVMe0R01 h s "), std::string("NVMe0R01 h s x"),
        std::string("NVMe0R01  h s"), std::string("nvme0R01 h s"), std::string("NVMe0G01 h s"),
        std::string("NVMe0R03 h s"), std::string("NVMe2R01 h s"), std::string("NVMe1R01 h s"),
        std::string("NVMe1R01 h s AAAA"), "NVMe1R02 h s " + digest, "NVMe1R01 h s " + digest + " ",
        "NVMe0R01 h " + std::string(kNqnMax + 1, 's'), std::string(2000, 'x')}) {
    EXPECT_FALSE(TlsIdentity::parse(text)) << text;
  }
  EXPECT_TRUE(TlsIdentity::parse("NVMe1R01 h s " + digest));
}

}  // namespace
}  // namespace cairn::nvme
