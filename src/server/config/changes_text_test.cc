// SPDX-License-Identifier: Apache-2.0
#include "server/config/changes_text.h"

#include <gtest/gtest.h>

#include <string>

namespace cairn::server {
namespace {

ServerChanges some_changes() {
  ServerChanges all;
  SubsystemChanges& first = all["nqn.2026-11.io.cairn:a"];
  first.removed = {2, 9};
  first.resized = {{1, 8192}};
  first.access = HostAccess{.any = false, .hosts = {"nqn.\"h\"", "nqn.b\\"}};
  first.ana = {{3, nvme::AnaState::kInaccessible}};
  nvme::NamespaceOptions added{.nsid = 5, .ana_group = 3, .read_only = true};
  added.drive = *drive::Spec::parse("file:/srv/a \xc3\xbc,size=8G");
  added.uuid = {1, 2};
  added.nguid = {3, 4};
  added.name = "vm.1";
  first.added = {{5, added}};
  nvme::NamespaceOptions edited{.nsid = 1, .stack = "limit(mem:size=1048576,block=4096, iops=9)"};
  edited.uuid = {6};
  edited.nguid = {7};
  first.edited = {{1, edited}};
  first.moved = {{1,
                  {.control = "/run/\"box\".sock",
                   .uri = "nvme-tcp://127.0.0.1:4420/nqn.2026-11.io.cairn:box?nsid=2",
                   .layers = "limit(file:/srv/a, iops=9)",
                   .transfer_blocks = 256}}};
  rack::Contract contract{.id = {7, 8},
                          .nqn = "nqn.2026-11.io.cairn:a",
                          .owner = "nqn.\"h\"",
                          .drive = "vm",
                          .shelf = "d0",
                          .amount = {.bytes = 4 * rack::kUnit, .iops = 10, .bandwidth = 20},
                          .nsid = 5,
                          .is_confirmed = true};
  first.contracts = {{contract.id, contract}};
  contract.id = {9};
  contract.nsid = 4;  // whose namespace is gone
  first.ended = {{contract.id, contract}};
  first.last_nsid = 65536;
  all["nqn.2026-11.io.cairn:b"].access = HostAccess{.any = true, .hosts = {}};
  return all;
}

TEST(ChangesText, ReadsWhatItWrites) {
  const std::string text = changes_text(some_changes());
  const Attempt<ServerChanges> read = parse_changes(text, "f");
  ASSERT_TRUE(read) << read.error().text;
  EXPECT_EQ(changes_text(*read), text);
  const SubsystemChanges& first = read->at("nqn.2026-11.io.cairn:a");
  EXPECT_EQ(first.removed, (std::set<uint32_t>{2, 9}));
  EXPECT_EQ(first.resized.at(1), 8192u);
  EXPECT_EQ(first.access->hosts[1], "nqn.b\\");
  EXPECT_EQ(first.added.at(5).drive.path, "/srv/a \xc3\xbc");
  EXPECT_TRUE(first.added.at(5).read_only);
  EXPECT_EQ(first.added.at(5).uuid[1], 2);
  EXPECT_EQ(first.added.at(5).name, "vm.1");
  EXPECT_TRUE(first.edited.at(1).stack.starts_with("limit(mem:size=1048576"));
  EXPECT_EQ(first.edited.at(1).nguid[0], 7);
  EXPECT_EQ(first.moved.at(1).control, "/run/\"box\".sock");
  EXPECT_EQ(first.moved.at(1).transfer_blocks, 256u);
  EXPECT_EQ(first.moved.at(1).layers, "limit(file:/srv/a, iops=9)");
  EXPECT_EQ(first.ana.at(3), nvme::AnaState::kInaccessible);
  EXPECT_TRUE(read->at("nqn.2026-11.io.cairn:b").access->any);
}

TEST(ChangesText, ContractsComeBackAsTheyWere) {
  const Attempt<ServerChanges> read = parse_changes(changes_text(some_changes()), "f");
  ASSERT_TRUE(read) << read.error().text;
  const std::string nqn = "nqn.2026-11.io.cairn:a";
  EXPECT_EQ(read->at(nqn).contracts, some_changes().at(nqn).contracts);
  EXPECT_EQ(read->at(nqn).ended, some_changes().at(nqn).ended);
  EXPECT_EQ(read->at(nqn).last_nsid, 65536u);
}

TEST(ChangesText, AContractWithoutItsNamespaceIsDamage) {
  ServerChanges changes = some_changes();
  changes.at("nqn.2026-11.io.cairn:a").added.clear();
  const Attempt<ServerChanges> read = parse_changes(changes_text(changes), "f");
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().text.find("has no namespace"), std::string::npos) << read.error().text;
}

TEST(ChangesText, NothingIsAText) {
  const Attempt<ServerChanges> read = parse_changes(changes_text({}), "f");
  ASSERT_TRUE(read) << read.error().text;
  EXPECT_TRUE(read->empty());
}

TEST(ChangesText, ATextCutShortIsNeverTakenForWhole) {
  const std::string text = changes_text(some_changes());
  const std::string edited = text.substr(text.find('\n') + 1);
  for (size_t size = 0; size < text.size(); ++size) {
    const Attempt<ServerChanges> read = parse_changes(text.substr(0, size), "f");
    ASSERT_FALSE(read) << size;
    EXPECT_NE(read.error().text.find("move it away"), std::string::npos) << read.error().text;
  }
  for (size_t size = 0; size + 2 < edited.size(); ++size) {
    EXPECT_FALSE(parse_changes(edited.substr(0, size), "f")) << edited.substr(0, size);
  }
}

TEST(ChangesText, OneWrongBitIsNoticed) {
  const std::string text = changes_text(some_changes());
  for (size_t i = 0; i < text.size(); ++i) {
    std::string wrong = text;
    wrong[i] = static_cast<char>(wrong[i] ^ 1);
    const Attempt<ServerChanges> read = parse_changes(wrong, "f");
    // In the remark of the first line it changes nothing.
    EXPECT_TRUE(!read || changes_text(*read) == text) << i;
  }
}

TEST(ChangesText, ItMayBeEdited) {
  const Attempt<ServerChanges> read =
      parse_changes("version = 1\n[[subsystem]]\nnqn = 'nqn.x'\nremoved = [1]\n[end]\n", "f");
  ASSERT_TRUE(read) << read.error().text;
  EXPECT_TRUE(read->at("nqn.x").removed.contains(1));
  const Attempt<ServerChanges> wrong =
      parse_changes("version = 1\n[[subsystem]]\nnqn = 'nqn.x'\nremovd = [1]\n[end]\n", "f");
  EXPECT_NE(wrong.error().text.find("f:4:1: unknown key 'removd'"), std::string::npos)
      << wrong.error().text;
  EXPECT_FALSE(parse_changes("version = 5\n[end]\n", "f"));
}

}  // namespace
}  // namespace cairn::server
