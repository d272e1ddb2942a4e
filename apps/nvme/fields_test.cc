// SPDX-License-Identifier: Apache-2.0
#include "apps/nvme/fields.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "apps/nvme/logs.h"
#include "apps/nvme/pages.h"
#include "base/rng.h"
#include "base/table.h"
#include "config/json_text.h"
#include "nvme/format/ana_format.h"

namespace cairn::apps {
namespace {

TEST(FieldTable, HasOneFormForScriptsAndOneForPeople) {
  FieldTable table;
  table.number("mdts", 8, "1 MiB in one command");
  table.bits("oncs", 0x5d, "compare");
  table.text("subnqn", "nqn.a:b");
  table.line("more");
  table.json_only("psds", nlohmann::ordered_json::array());
  EXPECT_EQ(table.table(),
            "mdts    8     1 MiB in one command\n"
            "oncs    0x5d  compare\n"
            "subnqn  nqn.a:b\n"
            "more\n");
  EXPECT_EQ(table.json().dump(), R"({"mdts":8,"oncs":93,"subnqn":"nqn.a:b","psds":[]})");
}

// A target may send what a terminal would obey.
TEST(FieldTable, TextOfATargetIsEscaped) {
  FieldTable table;
  table.text("sn", "a\x1b[2J\xff");
  EXPECT_EQ(table.table(), "sn  a\\x1b[2J\\xff\n");
  EXPECT_NE(config::json_text(table.json()).find("\\u001b[2J"), std::string::npos);
}

TEST(FieldTable, NumbersBeyond64BitsAreDigits) {
  FieldTable table;
  table.large("small", {.low = 7, .high = 0});
  table.large("large", {.low = 0, .high = 1});
  EXPECT_EQ(table.json().dump(), R"({"small":7,"large":"18446744073709551616"})");
}

TEST(BitNames, NamesWhatIsSet) {
  EXPECT_EQ(bit_names(5, {{1, "one"}, {2, "two"}, {4, "four"}}), "one, four");
  EXPECT_EQ(bit_names(8, {{1, "one"}}), "none");
}

TEST(Aligned, ColumnsAreAsWideAsTheirWidest) {
  EXPECT_EQ(table_text({{"A", "B"}, {"long", "x"}, {"y"}}), "A     B\nlong  x\ny\n");
}

// --- pages ---------------------------------------------------------------------------------------

TEST(Pages, SizesOfANamespaceAreReadable) {
  auto page = std::make_unique<nvme::IdentifyNamespace>();
  page->size = 262144;
  page->lba_formats[0].block_shift = 12;
  const std::string table = fields_of(*page).table();
  EXPECT_NE(table.find("1 GiB"), std::string::npos);
  EXPECT_NE(table.find("blocks of 4096 bytes, 0 of metadata (in use)"), std::string::npos);
}

template <class Page>
std::unique_ptr<Page> random_page(uint64_t seed) {
  auto page = std::make_unique<Page>();
  Rng(seed).fill(nvme::mutable_bytes_of(*page));
  return page;
}

// Any bytes give some text and some JSON.
TEST(Pages, AnyBytesCanBeShown) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    EXPECT_FALSE(
        config::json_text(fields_of(*random_page<nvme::IdentifyController>(seed), 4096).json())
            .empty());
    EXPECT_FALSE(fields_of(*random_page<nvme::IdentifyNamespace>(seed)).table().empty());
    EXPECT_FALSE(fields_of(*random_page<nvme::HealthPage>(seed)).table().empty());
    EXPECT_FALSE(show_effects(*random_page<nvme::CommandEffectsPage>(seed)).text.empty());
    EXPECT_FALSE(show_firmware(*random_page<nvme::FirmwarePage>(seed)).text.empty());
    EXPECT_FALSE(
        show_reservation_notice(*random_page<nvme::ReservationNoticePage>(seed)).text.empty());
    std::vector<std::byte> bytes(seed * 7);
    Rng(seed).fill(bytes);
    EXPECT_FALSE(show_errors(bytes).text.empty());
    EXPECT_FALSE(show_ana(bytes).text.empty());
  }
}

TEST(Logs, AnaGroupsThatBreakOffEndTheList) {
  std::vector<std::byte> page(sizeof(nvme::AnaHeader) + sizeof(nvme::AnaGroup) + 4);
  nvme::AnaHeader header;
  header.groups = 2;
  nvme::AnaGroup group;
  group.group_id = 3;
  group.namespaces = 1000;
  group.set_state(nvme::AnaState::kInaccessible);
  store(MutableBytes(page), header);
  store(MutableBytes(page).subspan(sizeof header), group);
  store(MutableBytes(page).subspan(sizeof header + sizeof group), uint32_t{9});
  const ShownLog shown = show_ana(page);
  EXPECT_EQ(shown.json["groups"].dump(),
            R"([{"grpid":3,"state":"inaccessible","chgcnt":0,"nsids":[9]}])");
}

TEST(Logs, MoreChangesThanFitAreToldAsAll) {
  auto page = std::make_unique<nvme::ChangedNamespacesPage>();
  page->nsids[0] = nvme::kBroadcastNsid;
  EXPECT_EQ(show_changed_namespaces(*page).json["all"], true);
}

}  // namespace
}  // namespace cairn::apps
