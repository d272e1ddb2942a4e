// SPDX-License-Identifier: Apache-2.0
// A diagnosis for people and for programs.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "apps/doctor/judge.h"

namespace cairn::apps::doctor {

namespace {

using Json = nlohmann::ordered_json;

Json json_of(const machine::UringFacts& uring) {
  const uring::Support& support = uring.support;
  return {{"available", support.available},
          {"setup_errno", support.error},
          {"sysctl_disabled", uring.disabled ? Json(*uring.disabled) : Json()},
          {"under_seccomp", uring.under_seccomp},
          {"single_issuer_defer_taskrun", support.single_issuer},
          {"buffer_rings", support.buffer_rings},
          {"multishot_accept", support.multishot_accept},
          {"multishot_receive", support.multishot_receive},
          {"zero_copy_send", support.zero_copy_send}};
}

Json json_of(const machine::LimitFacts& limits) {
  const bool unlimited = limits.locked_memory_bytes == UINT64_MAX;
  return {{"open_files", limits.open_files},
          {"open_files_hard", limits.open_files_hard},
          {"locked_memory_bytes", unlimited ? Json() : Json(limits.locked_memory_bytes)},
          {"may_lock_any", limits.may_lock_any}};
}

Json json_of(const machine::FolderFacts& folder) {
  return {{"path", folder.path},
          {"file_system", folder.file_system},
          {"total_bytes", folder.total_bytes},
          {"free_bytes", folder.free_bytes},
          {"create_errno", folder.create_error},
          {"direct_errno", folder.direct_error},
          {"direct_block", folder.direct_block}};
}

Json json_of(const machine::Facts& facts) {
  Json drives = Json::array();
  for (const machine::NvmeDrive& drive : facts.nvme_drives) {
    drives.push_back(
        {{"name", drive.name}, {"model", drive.model}, {"size_bytes", drive.size_bytes}});
  }
  Json ports = Json::array();
  for (const machine::PortFacts& port : facts.ports) {
    ports.push_back({{"port", port.port}, {"use", port.use}, {"errno", port.error}});
  }
  static constexpr const char* kRights[] = {"none", "with_user_namespace", "yes"};
  return {{"kernel",
           {{"release", facts.kernel.release},
            {"architecture", facts.kernel.architecture},
            {"distribution", facts.kernel.distribution}}},
          {"cpu",
           {{"model", facts.cpu.model},
            {"online_count", facts.cpu.online_count},
            {"allowed", facts.cpu.allowed},
            {"wanted", facts.cpu.wanted},
            {"wanted_but_missing", facts.cpu.wanted_but_missing}}},
          {"memory",
           {{"total_bytes", facts.memory.total_bytes},
            {"available_bytes", facts.memory.available_bytes}}},
          {"io_uring", json_of(facts.uring)},
          {"epoll_errno", facts.epoll_error},
          {"limits", json_of(facts.limits)},
          {"folder", json_of(facts.folder)},
          {"nvme_drives", std::move(drives)},
          {"kvm_errno", facts.kvm_error},
          {"network_namespaces", kRights[static_cast<size_t>(facts.network_namespaces)]},
          {"ports", std::move(ports)}};
}

}  // namespace

std::string table_of(const Diagnosis& diagnosis) {
  size_t width = 0;
  for (const Check& check : diagnosis.checks) width = std::max(width, check.name.size());
  std::string out;
  for (const Check& check : diagnosis.checks) {
    out += fmt::format("{:<8} {:<{}}  {}\n", name(check.status), check.name, width, check.found);
    if (!check.next.empty()) out += fmt::format("{:{}}  next: {}\n", "", 9 + width, check.next);
  }
  out +=
      fmt::format("\n--io auto takes {}: {}.\n", name(diagnosis.chosen.io), diagnosis.chosen.why);
  if (!diagnosis.can_run) out += "Cairn cannot run here: neither io_uring nor epoll works.\n";
  return out;
}

Json json_of(const Diagnosis& diagnosis, const machine::Facts& facts) {
  Json checks = Json::array();
  for (const Check& check : diagnosis.checks) {
    checks.push_back({{"name", check.name},
                      {"status", name(check.status)},
                      {"found", check.found},
                      {"next", check.next}});
  }
  return {{"schema_version", kSchemaVersion},
          {"can_run", diagnosis.can_run},
          {"io", {{"chosen", name(diagnosis.chosen.io)}, {"why", diagnosis.chosen.why}}},
          {"checks", std::move(checks)},
          {"facts", json_of(facts)}};
}

}  // namespace cairn::apps::doctor
