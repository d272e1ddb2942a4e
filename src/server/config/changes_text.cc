// SPDX-License-Identifier: Apache-2.0
#include "server/config/changes_text.h"

#include <fmt/format.h>

#include <charconv>
#include <memory>
#include <optional>
#include <utility>

#include "base/crc32c.h"
#include "base/uuid.h"
#include "base/words.h"
#include "config/config.h"
#include "fabric/host/uri.h"
#include "nvme/format/limits.h"
#include "nvme/format/nqn.h"
#include "server/config/keys.h"
#include "server/control/control_format.h"

namespace cairn::server {

namespace {

constexpr std::string_view kChecksumStart = "# crc32c ";
constexpr config::IntegerRange kNsids = {.min = 1, .max = nvme::kNsidMax};

// A TOML basic string.
std::string toml_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string toml_list(const std::vector<std::string>& texts) {
  std::vector<std::string> all;
  for (const std::string& each : texts) all.push_back(toml_text(each));
  return fmt::format("[{}]", fmt::join(all, ", "));
}

// Ids that are not given are made from the names again.
std::string namespace_text(const char* table, const nvme::NamespaceOptions& options) {
  std::string text = fmt::format("[[subsystem.{}]]\nnsid = {}\ndrive = {}\n", table, options.nsid,
                                 toml_text(options.drive_text()));
  if (!options.name.empty()) text += fmt::format("name = {}\n", toml_text(options.name));
  if (options.uuid != Uuid{}) {
    text += fmt::format("uuid = \"{}\"\n", uuid_text(options.uuid));
  }
  if (options.nguid != Uuid{}) {
    text += fmt::format("nguid = \"{:02x}\"\n", fmt::join(options.nguid, ""));
  }
  return text +
         fmt::format("ana_group = {}\nread_only = {}\n", options.ana_group, options.read_only);
}

std::string contract_text(const char* table, const rack::Contract& contract) {
  return fmt::format(
      "[[subsystem.{}]]\nid = \"{}\"\nowner = {}\ndrive = {}\nshelf = {}\nsize = {}\niops = "
      "{}\nbandwidth = {}\nnsid = {}\nconfirmed = {}\n",
      table, uuid_text(contract.id), toml_text(contract.owner), toml_text(contract.drive),
      toml_text(contract.shelf), contract.amount.bytes, contract.amount.iops,
      contract.amount.bandwidth, contract.nsid, contract.is_confirmed);
}

std::string subsystem_text(const std::string& nqn, const SubsystemChanges& changes) {
  std::string text = fmt::format("\n[[subsystem]]\nnqn = {}\n", toml_text(nqn));
  if (changes.last_nsid != 0) text += fmt::format("last_nsid = {}\n", changes.last_nsid);
  if (!changes.removed.empty()) {
    text += fmt::format("removed = [{}]\n", fmt::join(changes.removed, ", "));
  }
  if (changes.access) {
    text += fmt::format("any_host = {}\nhosts = {}\n", changes.access->any,
                        toml_list(changes.access->hosts));
  }
  for (const auto& [nsid, options] : changes.added) text += namespace_text("namespace", options);
  for (const auto& [nsid, options] : changes.edited) text += namespace_text("edited", options);
  for (const auto& [nsid, moved] : changes.moved) {
    text += fmt::format(
        "[[subsystem.moved]]\nnsid = {}\ncontrol = {}\nuri = {}\nlayers = {}\n"
        "transfer_blocks = {}\n",
        nsid, toml_text(moved.control), toml_text(moved.uri), toml_text(moved.layers),
        moved.transfer_blocks);
  }
  for (const auto& [nsid, size] : changes.resized) {
    text += fmt::format("[[subsystem.resized]]\nnsid = {}\nsize = {}\n", nsid, size);
  }
  for (const auto& [id, contract] : changes.contracts) text += contract_text("contract", contract);
  for (const auto& [id, contract] : changes.ended) text += contract_text("ended", contract);
  for (const auto& [group, state] : changes.ana) {
    text += fmt::format("[[subsystem.ana]]\ngroup = {}\nstate = \"{}\"\n", group, ana_word(state));
  }
  return text;
}

uint32_t checksum_of(std::string_view text) { return crc32c(std::as_bytes(std::span(text))); }

// What stands in the first line, if it is there.
std::optional<uint32_t> stated_checksum(std::string_view text) {
  if (!text.starts_with(kChecksumStart)) return std::nullopt;
  text.remove_prefix(kChecksumStart.size());
  uint32_t checksum = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), checksum, 16);
  // A line that is there but cannot be read is no reason to believe the rest.
  return error == std::errc{} && end == text.data() + 8 ? checksum : ~uint32_t{0};
}

// Somewhere for keys to go until their table is whole.
struct Resized {
  uint32_t nsid = 0;
  uint64_t size = 0;
};

config::Section resized_keys(SubsystemChanges& changes) {
  const auto resized = std::make_shared<Resized>();
  config::Section keys;
  keys.integer("nsid", resized->nsid, kNsids).required();
  keys.integer("size", resized->size, {.min = 1}).required();
  return std::move(keys.whole([&changes, resized]() -> Attempt<void> {
    changes.resized[resized->nsid] = resized->size;
    return {};
  }));
}

config::Section moved_keys(SubsystemChanges& changes) {
  struct Read {
    uint32_t nsid = 0;
    MovedLayers moved;
  };
  const auto read = std::make_shared<Read>();
  config::Section keys;
  keys.integer("nsid", read->nsid, kNsids).required();
  keys.text("control", read->moved.control).required();
  keys.taken("uri",
             [read](const std::string& text) -> Attempt<void> {
               if (const auto uri = fabric::Uri::parse(text); !uri) return refuse(uri.error());
               read->moved.uri = text;
               return {};
             })
      .required();
  keys.text("layers", read->moved.layers).required();
  keys.integer("transfer_blocks", read->moved.transfer_blocks, {.min = 1, .max = UINT32_MAX})
      .required();
  return std::move(keys.whole([&changes, read]() -> Attempt<void> {
    if (changes.moved.emplace(read->nsid, read->moved).second) return {};
    return refuse(fmt::format("nsid {} is there twice", read->nsid));
  }));
}

// Those that were added, or that were edited.
using Namespaces = std::map<uint32_t, nvme::NamespaceOptions>;
config::Section changed_keys(Namespaces& changed) {
  const auto options = std::make_shared<nvme::NamespaceOptions>();
  return std::move(namespace_keys(*options).whole([&changed, options]() -> Attempt<void> {
    if (options->nsid == 0) return refuse("there is no nsid");
    if (changed.emplace(options->nsid, *options).second) return {};
    return refuse(fmt::format("nsid {} is there twice", options->nsid));
  }));
}

config::Section changed_ana_keys(SubsystemChanges& changes) {
  const auto option = std::make_shared<AnaGroupOption>();
  return std::move(ana_keys(*option).whole([&changes, option]() -> Attempt<void> {
    changes.ana[option->group] = option->state;
    return {};
  }));
}

// A name that rack/types.h would not take is no contract of ours.
using Contracts = std::map<rack::ContractId, rack::Contract>;
Attempt<void> take_contract(const rack::Contract& contract, Contracts& contracts) {
  for (const Result<void>& sound :
       {rack::check_drive_name(contract.drive), rack::check_shelf_name(contract.shelf),
        rack::check_amount(contract.amount)}) {
    if (!sound) return refuse(sound.error().what());
  }
  if (contract.owner.empty() || contract.owner.size() > nvme::kNqnMax) {
    return refuse(fmt::format("{} is not the NQN of a host", in_quotes(contract.owner)));
  }
  if (contracts.emplace(contract.id, contract).second) return {};
  return refuse("a contract with this id is there twice");
}

config::Section contract_keys(Contracts& contracts) {
  const auto contract = std::make_shared<rack::Contract>();
  constexpr config::IntegerRange kAmounts = {.min = 0, .max = int64_t{rack::kBytesMax}};
  config::Section keys;
  keys.taken("id",
             [contract](const std::string& text) -> Attempt<void> {
               const auto id = parse_uuid(text);
               if (!id) return refuse(fmt::format("{} is not a UUID", in_quotes(text)));
               contract->id = *id;
               return {};
             })
      .required();
  keys.text("owner", contract->owner).required();
  keys.text("drive", contract->drive).required();
  keys.text("shelf", contract->shelf).required();
  keys.integer("size", contract->amount.bytes, kAmounts).required();
  keys.integer("iops", contract->amount.iops, kAmounts).required();
  keys.integer("bandwidth", contract->amount.bandwidth, kAmounts).required();
  keys.integer("nsid", contract->nsid, kNsids).required();
  keys.boolean("confirmed", contract->is_confirmed).required();
  keys.whole([&contracts, contract] { return take_contract(*contract, contracts); });
  return keys;
}

config::Section subsystem_keys(ServerChanges& all) {
  struct Read {
    std::string nqn;
    SubsystemChanges changes;
    std::vector<int> removed;
    HostAccess access;
    bool has_access = false;
  };
  const auto read = std::make_shared<Read>();
  config::Section keys;
  keys.text("nqn", read->nqn).required();
  keys.integers("removed", read->removed, kNsids, nvme::kNamespacesMax);
  keys.integer("last_nsid", read->changes.last_nsid, kNsids);
  keys.boolean("any_host", read->access.any);
  keys.taken_list(
      "hosts", kHostsMax, [read] { read->has_access = true; },
      [read](const std::string& text) -> Attempt<void> {
        read->access.hosts.push_back(text);
        return {};
      });
  keys.tables("namespace", nvme::kNamespacesMax,
              [read] { return changed_keys(read->changes.added); });
  keys.tables("edited", nvme::kNamespacesMax,
              [read] { return changed_keys(read->changes.edited); });
  keys.tables("moved", nvme::kNamespacesMax, [read] { return moved_keys(read->changes); });
  keys.tables("resized", nvme::kNamespacesMax, [read] { return resized_keys(read->changes); });
  keys.tables("ana", nvme::kAnaGroupsMax, [read] { return changed_ana_keys(read->changes); });
  keys.tables("contract", rack::kContractsMax,
              [read] { return contract_keys(read->changes.contracts); });
  keys.tables("ended", rack::kContractsMax, [read] { return contract_keys(read->changes.ended); });
  keys.whole([&all, read]() -> Attempt<void> {
    for (auto& [id, contract] : read->changes.contracts) {
      contract.nqn = read->nqn;
      if (!read->changes.added.contains(contract.nsid)) {
        return refuse(fmt::format("contract {} has no namespace", uuid_text(id)));
      }
    }
    for (auto& [id, contract] : read->changes.ended) contract.nqn = read->nqn;
    read->changes.removed.insert(read->removed.begin(), read->removed.end());
    if (read->has_access) read->changes.access = read->access;
    if (all.emplace(read->nqn, read->changes).second) return {};
    return refuse("this subsystem is there twice");
  });
  return keys;
}

Problem damaged(const std::string& file, std::string_view lines) {
  return {
      fmt::format("{}\n{}: what was changed while the server ran is kept here: restore it from "
                  "a copy, mend it, or move it away to start without those changes",
                  lines, file)};
}

}  // namespace

std::string changes_text(const ServerChanges& changes) {
  std::string text = fmt::format("version = {}\n", kChangesVersion);
  for (const auto& [nqn, each] : changes) {
    if (!each.empty()) text += subsystem_text(nqn, each);
  }
  text += "\n[end]\n";
  return fmt::format("{}{:08x} of all below. Remove this line when you edit the file.\n{}",
                     kChecksumStart, checksum_of(text), text);
}

Attempt<ServerChanges> parse_changes(std::string_view text, const std::string& file) {
  if (const std::optional<uint32_t> stated = stated_checksum(text)) {
    const std::string_view rest = text.substr(std::min(text.find('\n'), text.size() - 1) + 1);
    if (checksum_of(rest) != *stated) {
      return std::unexpected(damaged(
          file, fmt::format("{}:1:1: the checksum differs: the file is damaged, or was edited and "
                            "this line is still there",
                            file)));
    }
  }
  ServerChanges changes;
  int version = 0;
  config::Section root;
  // Of version 1 an nsid was not remembered when its namespace went; of version 2 drives had no
  // names, and were not edited; of version 3 it was not kept where layers had moved.
  root.integer("version", version, {.min = 1, .max = kChangesVersion}).required();
  root.tables("subsystem", kSubsystemsMax, [&changes] { return subsystem_keys(changes); });
  root.table("end", config::Section()).required();
  if (const Attempt<void> checked = config::check_config(text, file, root); !checked) {
    return std::unexpected(damaged(file, checked.error().text));
  }
  return changes;
}

}  // namespace cairn::server
