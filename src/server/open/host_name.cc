// SPDX-License-Identifier: Apache-2.0
// Who this host is. Targets tell hosts apart by NQN and id: access lists and reservations name
// them, so both must be the same in every run.
#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <optional>

#include "base/bytes.h"
#include "base/rng.h"
#include "base/uuid.h"
#include "config/files.h"
#include "nvme/format/nqn.h"
#include "server/open/target_uri.h"

namespace cairn::server {

namespace {

std::string trimmed(std::string text) {
  const size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t\r") + 1 - first);
}

std::string line_of(const char* path) { return trimmed(config::first_line(path).value_or("")); }

// 16 bytes that depend on every letter, in the form of a UUID that its maker defines (RFC 9562,
// version 8). The machine's id itself is not to leave it (machine-id(5)).
Uuid uuid_from(std::string_view text) {
  Uuid id{};
  uint64_t high = mix64(text.size());
  uint64_t low = mix64(~high);
  for (const char c : text) {
    high = mix64(high ^ static_cast<unsigned char>(c));
    low = mix64(low + static_cast<unsigned char>(c)) ^ high;
  }
  const MutableBytes bytes = std::as_writable_bytes(std::span(id));
  store(bytes, high);
  store(bytes.subspan(8), low);
  id[6] = static_cast<uint8_t>((id[6] & 0x0f) | 0x80);
  id[8] = static_cast<uint8_t>((id[8] & 0x3f) | 0x80);
  return id;
}

}  // namespace

HostFacts gather_host() {
  HostFacts facts{.nqn_file = line_of("/etc/nvme/hostnqn"),
                  .id_file = line_of("/etc/nvme/hostid"),
                  .machine_id = line_of("/etc/machine-id"),
                  .user_id = ::getuid()};
  utsname node = {};
  if (::uname(&node) == 0) facts.machine_name = node.nodename;
  return facts;
}

void name_host_stably(const HostFacts& facts, fabric::HostOptions& options) {
  const bool has_id = options.host_id != Uuid{};
  if (!options.host_nqn.empty() || has_id) return;  // each is made from the other
  const bool has_file = !facts.nqn_file.empty() && facts.nqn_file.size() <= nvme::kNqnMax;
  if (has_file) {
    options.host_nqn = facts.nqn_file;
    if (const std::optional<Uuid> id = parse_uuid(facts.id_file)) {
      options.host_id = *id;
    }
    return;
  }
  options.host_id = uuid_from(
      fmt::format("cairn host {} {} {}", facts.machine_id, facts.machine_name, facts.user_id));
  options.host_nqn = "nqn.2014-08.org.nvmexpress:uuid:" + uuid_text(options.host_id);
}

}  // namespace cairn::server
