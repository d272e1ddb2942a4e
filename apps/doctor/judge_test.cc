// SPDX-License-Identifier: Apache-2.0
#include "apps/doctor/judge.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/units.h"
#include "config/json_text.h"

namespace cairn::apps::doctor {
namespace {

// A machine with nothing to complain about; each test breaks one thing.
machine::Facts good_machine() {
  machine::Facts facts;
  facts.kernel = {"6.1.0-18-amd64", 6, 1, "x86_64", "Debian GNU/Linux 12 (bookworm)"};
  facts.cpu = {"A CPU", 4, {0, 1, 2, 3}, {"sse4_2", "avx2"}, {}};
  facts.memory = {16_GiB, 8_GiB};
  facts.uring = {{true, 0, true, true, true, true, true}, 0, false};
  facts.limits = {65536, 65536, UINT64_MAX, false};
  facts.folder = {"/data", "ext4", 100_GiB, 50_GiB, 0, 0, 512};
  facts.nvme_drives = {{"nvme0n1", "A Drive", 960_GiB}};
  facts.network_namespaces = machine::NamespaceRight::kYes;
  facts.ports = {{4420, "NVMe/TCP", 0}};
  return facts;
}

machine::UringFacts without_uring(int error, std::optional<int> disabled = {},
                                  bool seccomp = false) {
  return {{.available = false, .error = error}, disabled, seccomp};
}

Check check_named(const machine::Facts& facts, std::string_view name) {
  const Diagnosis diagnosis = judge(facts);
  const auto found = std::ranges::find(diagnosis.checks, name, &Check::name);
  return found == diagnosis.checks.end() ? Check{} : *found;
}

TEST(Judge, AGoodMachineIsOkThroughout) {
  const Diagnosis diagnosis = judge(good_machine());
  for (const Check& check : diagnosis.checks) {
    EXPECT_EQ(check.status, Status::kOk) << check.name << ": " << check.found;
    EXPECT_EQ(check.next, "") << check.name;
  }
  EXPECT_EQ(diagnosis.chosen.io, config::IoChoice::kUring);
  EXPECT_TRUE(diagnosis.can_run);
}

TEST(Judge, EveryComplaintSaysWhatToDoNext) {
  machine::Facts facts;  // nothing works
  facts.kernel.release = "4.4";
  facts.cpu.wanted_but_missing = {"avx2"};
  facts.uring.support.error = ENOSYS;
  facts.epoll_error = ENOSYS;
  facts.folder.create_error = EACCES;
  facts.kvm_error = ENOENT;
  facts.ports = {{4420, "NVMe/TCP", EADDRINUSE}};
  const Diagnosis diagnosis = judge(facts);
  for (const Check& check : diagnosis.checks) {
    EXPECT_NE(check.status, Status::kOk) << check.name;
    EXPECT_NE(check.next, "") << check.name;
  }
  EXPECT_FALSE(diagnosis.can_run);
  EXPECT_NE(table_of(diagnosis).find("Cairn cannot run here"), std::string::npos);
}

struct UringCase {
  const char* name;
  machine::UringFacts facts;
  const char* found;
  const char* next;
  friend void PrintTo(const UringCase& one, std::ostream* out) { *out << one.name; }
};

class UringCases : public testing::TestWithParam<UringCase> {};

TEST_P(UringCases, NamesTheCauseAndTheCure) {
  const machine::UringVerdict verdict = machine::judge_uring(GetParam().facts);
  EXPECT_FALSE(verdict.usable);
  EXPECT_NE(verdict.found.find(GetParam().found), std::string::npos) << verdict.found;
  EXPECT_NE(verdict.next.find(GetParam().next), std::string::npos) << verdict.next;

  machine::Facts facts = good_machine();
  facts.uring = GetParam().facts;
  const Diagnosis diagnosis = judge(facts);
  EXPECT_EQ(diagnosis.chosen.io, config::IoChoice::kEpoll);
  EXPECT_NE(diagnosis.chosen.why.find(verdict.found), std::string::npos);
  EXPECT_TRUE(diagnosis.can_run);

  const Attempt<machine::Backend> demanded =
      machine::choose_backend(config::IoChoice::kUring, GetParam().facts);
  ASSERT_FALSE(demanded);
  EXPECT_NE(demanded.error().text.find("use --io epoll"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(
    Judge, UringCases,
    testing::Values(
        UringCase{"sysctl2", without_uring(EPERM, 2), "io_uring_disabled=2",
                  "sysctl -w kernel.io_uring_d"},
        UringCase{"sysctl1", without_uring(EPERM, 1), "io_uring_disabled=1", "io_uring_group"},
        UringCase{"seccomp", without_uring(EPERM, 0, true), "seccomp", "--security-opt"},
        UringCase{"seccomp_nosys", without_uring(ENOSYS, 0, true), "seccomp", "--security-opt"},
        UringCase{"module", without_uring(EACCES, 0, false), "not permitted", "dmesg"},
        UringCase{"old", without_uring(ENOSYS, std::nullopt, false), "not in this kernel", "6.1"},
        UringCase{"memory", without_uring(ENOMEM), "locked memory", "ulimit -l"},
        UringCase{"files", without_uring(EMFILE), "descriptor", "ulimit -n"},
        UringCase{"odd", without_uring(EIO), "Input/output error", "doctor --json"}),
    [](const auto& info) { return info.param.name; });

TEST(Judge, AMissingFeatureIsAWarning) {
  machine::Facts facts = good_machine();
  facts.uring.support.zero_copy_send = false;
  const Check check = check_named(facts, "io_uring features");
  EXPECT_EQ(check.status, Status::kWarn);
  EXPECT_TRUE(check.found.ends_with("; not send_zc")) << check.found;
}

TEST(Judge, ALowFileLimitDependsOnTheHardOne) {
  machine::Facts facts = good_machine();
  facts.limits.open_files = 1024;
  EXPECT_NE(check_named(facts, "open files").next.find("ulimit -n"), std::string::npos);
  facts.limits.open_files_hard = 1024;
  EXPECT_NE(check_named(facts, "open files").next.find("hard limit"), std::string::npos);
}

TEST(Judge, LockedMemoryCountsUnlessTheCapabilityIsHeld) {
  machine::Facts facts = good_machine();
  facts.limits.locked_memory_bytes = 64_KiB;
  EXPECT_EQ(check_named(facts, "locked memory").status, Status::kWarn);
  facts.limits.may_lock_any = true;
  EXPECT_EQ(check_named(facts, "locked memory").status, Status::kOk);
}

TEST(Judge, AFileSystemWithoutDirectAccessIsAWarning) {
  machine::Facts facts = good_machine();
  facts.folder.file_system = "tmpfs";
  facts.folder.direct_error = EINVAL;
  const Check check = check_named(facts, "direct I/O");
  EXPECT_EQ(check.status, Status::kWarn);
  EXPECT_NE(check.found.find("/data on tmpfs"), std::string::npos);
}

TEST(Judge, KvmWithoutRightsNamesTheGroup) {
  machine::Facts facts = good_machine();
  facts.kvm_error = EACCES;
  EXPECT_NE(check_named(facts, "/dev/kvm").next.find("group kvm"), std::string::npos);
}

TEST(Judge, ATakenPortSaysHowToFindItsOwner) {
  machine::Facts facts = good_machine();
  facts.ports = {{8009, "NVMe discovery", EADDRINUSE}};
  EXPECT_NE(check_named(facts, "port 8009").next.find("ss -ltnp sport = :8009"), std::string::npos);
}

TEST(Judge, UsableCpusArePrintedAsRanges) {
  machine::Facts facts = good_machine();
  facts.cpu.allowed = {0, 1, 2, 5, 7, 8};
  EXPECT_NE(check_named(facts, "processor").found.find("usable: 0-2,5,7-8"), std::string::npos);
}

TEST(Print, JsonSaysTheSameAsTheTable) {
  machine::Facts facts = good_machine();
  facts.uring = without_uring(EPERM, 0, true);
  facts.folder.path = "/not\xFFutf8";
  const Diagnosis diagnosis = judge(facts);
  const auto json = nlohmann::json::parse(config::json_text(json_of(diagnosis, facts)));
  EXPECT_EQ(json["schema_version"], kSchemaVersion);
  EXPECT_EQ(json["io"]["chosen"], "epoll");
  EXPECT_EQ(json["facts"]["io_uring"]["setup_errno"], EPERM);
  ASSERT_EQ(json["checks"].size(), diagnosis.checks.size());
  const std::string table = table_of(diagnosis);
  for (const auto& check : json["checks"]) {
    EXPECT_NE(table.find(check["name"].get<std::string>()), std::string::npos);
    EXPECT_NE(table.find(check["next"].get<std::string>()), std::string::npos);
  }
}

TEST(Gather, TellsSomethingAboutThisMachine) {
  const machine::Facts facts = machine::gather();
  EXPECT_FALSE(facts.kernel.release.empty());
  EXPECT_GT(facts.kernel.major, 2);
  EXPECT_GT(facts.cpu.online_count, 0);
  EXPECT_FALSE(facts.cpu.allowed.empty());
  EXPECT_GT(facts.memory.total_bytes, 0U);
  EXPECT_GT(facts.limits.open_files, 0U);
  EXPECT_FALSE(facts.folder.file_system.empty());
  EXPECT_EQ(facts.ports.size(), 3U);
}

}  // namespace
}  // namespace cairn::apps::doctor
