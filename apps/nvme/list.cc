// SPDX-License-Identifier: Apache-2.0
// `cairn nvme list`: the namespaces of a subsystem, and how well each path reaches them.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "apps/common/output.h"
#include "apps/nvme/ana_text.h"
#include "apps/nvme/commands.h"
#include "apps/nvme/connect.h"
#include "apps/nvme/fields.h"
#include "base/table.h"
#include "base/uuid.h"
#include "base/words.h"
#include "config/json_text.h"
#include "fabric/host/ana.h"
#include "fabric/host/namespace_info.h"
#include "server/open/explain.h"

namespace cairn::apps {

namespace {

using Json = nlohmann::ordered_json;

// A namespace as one or several paths show it.
struct Listed {
  fabric::NamespaceInfo info;
  std::string problem;              // it cannot be used as a drive
  std::vector<std::string> states;  // one for each path that was asked; empty: not there
};

struct ListedPath {
  env::Address address;
  uint16_t controller_id = 0;
  std::string problem;  // it could not be asked
};

class ListCommand final : public Command {
 public:
  explicit ListCommand(CLI::App& app) {
    add_place(app, "URI", uri_, server::Needs::kSubsystem, "the subsystem; nsid does not matter");
    add_nvme_options(app, options_);
    set_examples(app, {"cairn nvme list nvme-tcp://127.0.0.1:4420/NQN",
                       "cairn nvme list 'nvme-tcp://10.0.0.1/NQN?path=10.0.1.1' --json"});
  }

  Attempt<int> run() override {
    const Attempt<fabric::Uri> uri = server::find_target_uri(uri_, server::Needs::kSubsystem);
    if (!uri) return std::unexpected(uri.error());
    nqn_ = uri->nqn;
    const Attempt<void> ran =
        run_in_world(options_, [&](env::Env& env) { return ask_paths(env, *uri); });
    if (!ran) return std::unexpected(ran.error());
    say(options_.json ? config::json_text(json()) : table());
    return kExitOk;
  }

 private:
  // One path that answers is enough; what others do not say is shown.
  task::Task<Attempt<void>> ask_paths(env::Env& env, const fabric::Uri& uri) {
    bool has_answer = false;
    for (size_t i = 0; i < uri.paths.size(); ++i) {
      paths_.push_back({.address = uri.paths[i]});
      Attempt<void> asked = co_await ask_path(env, uri, i);
      has_answer = has_answer || asked.has_value();
      if (!asked) paths_[i].problem = asked.error().text;
    }
    if (!has_answer) co_return refuse(paths_.front().problem);
    co_return Attempt<void>{};
  }

  task::Task<Attempt<void>> ask_path(env::Env& env, const fabric::Uri& uri, size_t path) {
    Attempt<std::unique_ptr<server::ControllerLink>> link =
        co_await server::ControllerLink::open(env, uri, path);
    if (!link) co_return std::unexpected(link.error());
    const Result<void> asked = co_await ask(**link, path);
    co_await (*link)->close();
    if (!asked) co_return std::unexpected(server::cannot_do("listing namespaces", asked.error()));
    co_return Attempt<void>{};
  }

  task::Task<Result<void>> ask(server::ControllerLink& link, size_t path) {
    fabric::HostSession& session = link.session();
    paths_[path].controller_id = session.controller_id();
    model_ = session.identity().model_number.trimmed();
    serial_ = session.identity().serial_number.trimmed();
    const Result<std::vector<uint32_t>> nsids =
        co_await fabric::active_namespaces(session, link.token());
    if (!nsids) co_return fail(nsids.error());
    for (const uint32_t nsid : *nsids) {
      Result<fabric::NamespaceInfo> info =
          co_await fabric::read_namespace(session, nsid, link.token());
      Listed& listed = found_[nsid];
      listed.states.resize(path + 1);
      if (!info) {
        if (session.lost() || link.token().requested()) co_return fail(info.error());
        listed.info.nsid = nsid;
        listed.problem = server::error_sentence(info.error());
        continue;
      }
      listed.info = *info;
      const Result<nvme::AnaState> state =
          co_await fabric::read_ana_state(session, info->ana_group, link.token());
      listed.states[path] = state ? ana_text(*state) : server::error_sentence(state.error());
    }
    co_return Result<void>{};
  }

  Json json() const {
    Json paths = Json::array();
    for (const ListedPath& path : paths_) {
      Json each = {{"address", path.address.text()}, {"cntlid", path.controller_id}};
      if (!path.problem.empty()) each["problem"] = path.problem;
      paths.push_back(std::move(each));
    }
    Json namespaces = Json::array();
    for (const auto& [nsid, listed] : found_) namespaces.push_back(namespace_json(listed));
    return {{"subnqn", nqn_},
            {"model", model_},
            {"serial", serial_},
            {"paths", std::move(paths)},
            {"namespaces", std::move(namespaces)}};
  }

  Json namespace_json(const Listed& listed) const {
    const fabric::NamespaceInfo& info = listed.info;
    Json json = {{"nsid", info.nsid}};
    if (!listed.problem.empty()) {
      json["problem"] = listed.problem;
      return json;
    }
    json["size"] = info.geometry.bytes();
    json["block_size"] = info.geometry.block_size;
    json["blocks"] = info.geometry.blocks;
    json["shared"] = info.is_shared;
    json["nguid"] = hex_text(info.nguid);
    json["uuid"] = uuid_text(info.uuid);
    json["eui64"] = hex_text(info.eui64);
    Json states = Json::array();
    for (size_t i = 0; i < paths_.size(); ++i) {
      const bool is_there = i < listed.states.size() && !listed.states[i].empty();
      Json state = {{"address", paths_[i].address.text()}, {"state", nullptr}};
      if (is_there) state["state"] = listed.states[i];
      states.push_back(std::move(state));
    }
    json["ana"] = std::move(states);
    return json;
  }

  std::string table() const {
    std::string out = fmt::format("{}: {} {}\n", escaped(nqn_), escaped(model_), escaped(serial_));
    for (const ListedPath& path : paths_) {
      if (!path.problem.empty()) out += fmt::format("not asked: {}\n", path.problem);
    }
    if (found_.empty()) return out + "It has no namespace for this host.\n";
    std::vector<std::vector<std::string>> rows = {{"NSID", "SIZE", "BLOCK", "ID"}};
    for (const ListedPath& path : paths_) rows[0].push_back("VIA " + path.address.text());
    for (const auto& [nsid, listed] : found_) rows.push_back(row(nsid, listed));
    return out + table_text(rows);
  }

  std::vector<std::string> row(uint32_t nsid, const Listed& listed) const {
    if (!listed.problem.empty()) return {fmt::to_string(nsid), "cannot be used: " + listed.problem};
    const fabric::NamespaceInfo& info = listed.info;
    std::vector<std::string> row = {fmt::to_string(nsid), text_bytes(info.geometry.bytes()),
                                    fmt::to_string(info.geometry.block_size), id_text(info)};
    for (size_t i = 0; i < paths_.size(); ++i) {
      const bool is_there = i < listed.states.size() && !listed.states[i].empty();
      row.push_back(is_there ? listed.states[i] : "-");
    }
    return row;
  }

  // The first that is given.
  static std::string id_text(const fabric::NamespaceInfo& info) {
    const auto is_given = [](const auto& id) {
      return std::ranges::any_of(id, [](uint8_t byte) { return byte != 0; });
    };
    if (is_given(info.uuid)) return uuid_text(info.uuid);
    if (is_given(info.nguid)) return hex_text(info.nguid);
    return is_given(info.eui64) ? hex_text(info.eui64) : "none";
  }

  NvmeOptions options_;
  std::string uri_;
  std::string nqn_;
  std::string model_;
  std::string serial_;
  std::vector<ListedPath> paths_;
  std::map<uint32_t, Listed> found_;
};

}  // namespace

std::unique_ptr<Command> make_nvme_list(CLI::App& app) {
  return std::make_unique<ListCommand>(app);
}

}  // namespace cairn::apps
