// SPDX-License-Identifier: Apache-2.0
#include "server/open/target_uri.h"

#include <gtest/gtest.h>

#include <string>

#include "base/uuid.h"

namespace cairn::server {
namespace {

std::expected<std::string, std::string> look_up(const std::string& name) {
  if (name == "box1.example") return "192.0.2.7";
  if (name == "box6") return "[2001:db8::6]";
  return std::unexpected("Name or service not known");
}

std::string resolved(std::string_view text) {
  const Attempt<std::string> result = resolve_names(text, look_up);
  return result ? *result : result.error().text;
}

TEST(ResolveNames, PutsAddressesWhereNamesWere) {
  EXPECT_EQ(resolved("nvme-tcp://box1.example:4420/nqn.a:b?nsid=2"),
            "nvme-tcp://192.0.2.7:4420/nqn.a:b?nsid=2");
  EXPECT_EQ(resolved("nvme-tcp://box6"), "nvme-tcp://[2001:db8::6]");
  EXPECT_EQ(resolved("nvme-tcp://box6/nqn.a:b?path=box1.example:1&nsid=2&path=box6"),
            "nvme-tcp://[2001:db8::6]/nqn.a:b?path=192.0.2.7:1&nsid=2&path=[2001:db8::6]");
}

TEST(ResolveNames, LeavesAddressesAndOtherTextAlone) {
  for (const char* text : {"nvme-tcp://127.0.0.1:4420/nqn.a:b?nsid=1&hostnqn=path=x",
                           "nvme-tcp://[::1]:4420/nqn.a:b", "nvme-tcp://localhost:4420", "file:/x",
                           "", "nvme-tcp://", "nvme-tcp://?", "nvme-tcp:///"}) {
    EXPECT_EQ(resolved(text), text);
  }
}

TEST(ResolveNames, AnUnknownNameIsNamed) {
  EXPECT_NE(resolved("nvme-tcp://bxo1/nqn.a:b").find("'bxo1'"), std::string::npos);
  EXPECT_NE(resolved("nvme-tcp://box6/nqn.a:b?path=bxo2").find("'bxo2'"), std::string::npos);
}

TEST(CheckTargetUri, NamesOfHostsAreTakenUnseen) {
  EXPECT_TRUE(check_target_uri("nvme-tcp://box1.example:4420/nqn.a:b", Needs::kNamespace));
  EXPECT_TRUE(check_target_uri("nvme-tcp://box1", Needs::kDiscovery));
}

TEST(CheckTargetUri, ACommandOnANamespaceNeedsASubsystem) {
  const Attempt<void> checked = check_target_uri("nvme-tcp://127.0.0.1:4420", Needs::kNamespace);
  ASSERT_FALSE(checked);
  EXPECT_NE(checked.error().text.find("discovery service"), std::string::npos);
  EXPECT_NE(checked.error().text.find("cairn nvme discover nvme-tcp://127.0.0.1:4420"),
            std::string::npos);
}

TEST(CheckTargetUri, AMistakeIsShownWithTheForm) {
  const Attempt<void> checked = check_target_uri("/dev/nvme0n1", Needs::kNamespace);
  ASSERT_FALSE(checked);
  EXPECT_NE(checked.error().text.find("nvme-tcp://HOST:PORT/NQN?nsid=1"), std::string::npos);
}

// --- who we are ---------------------------------------------------------------------------------

TEST(HostName, IsTheSystemsWhereItHasOne) {
  fabric::HostOptions options;
  name_host_stably({.nqn_file = "nqn.2014-08.org.nvmexpress:uuid:abc",
                    .id_file = "00112233-4455-6677-8899-aabbccddeeff"},
                   options);
  EXPECT_EQ(options.host_nqn, "nqn.2014-08.org.nvmexpress:uuid:abc");
  EXPECT_EQ(uuid_text(options.host_id), "00112233-4455-6677-8899-aabbccddeeff");
}

TEST(HostName, IsElseMadeFromMachineAndUser) {
  const auto made = [](const HostFacts& facts) {
    fabric::HostOptions options;
    name_host_stably(facts, options);
    EXPECT_EQ(options.host_nqn, "nqn.2014-08.org.nvmexpress:uuid:" + uuid_text(options.host_id));
    return options.host_nqn;
  };
  const HostFacts one{.machine_id = "a", .machine_name = "m", .user_id = 1};
  HostFacts other_machine = one;
  other_machine.machine_id = "b";
  HostFacts other_user = one;
  other_user.user_id = 2;
  EXPECT_EQ(made(one), made(one));
  EXPECT_NE(made(one), made(other_machine));
  EXPECT_NE(made(one), made(other_user));
  EXPECT_EQ(made(one).find("machine"), std::string::npos);
}

TEST(HostName, WhatTheUriSaysStays) {
  fabric::HostOptions options{.host_nqn = "nqn.mine"};
  name_host_stably({.nqn_file = "nqn.system"}, options);
  EXPECT_EQ(options.host_nqn, "nqn.mine");
}

}  // namespace
}  // namespace cairn::server
