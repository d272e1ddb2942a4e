// SPDX-License-Identifier: Apache-2.0
// `cairn pool add|list|show|drain|remove`: drives of boxes that volumes lie on.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/common/confirm.h"
#include "apps/common/output.h"
#include "apps/volume/client.h"
#include "apps/volume/commands.h"
#include "apps/volume/report.h"
#include "base/units.h"
#include "base/words.h"
#include "fabric/host/namespace_info.h"
#include "fabric/host/uri.h"
#include "server/open/controller_link.h"
#include "server/open/explain.h"
#include "server/open/mega_vols.h"
#include "server/open/target_uri.h"

namespace cairn::apps {

namespace {

using arbiter::DriveView;
using arbiter::PoolView;
using volume::MegaVolInfo;
using Json = nlohmann::ordered_json;

bool names_namespace(std::string_view uri) {
  const size_t options = uri.find('?');
  if (options == std::string_view::npos) return false;
  const std::string_view rest = uri.substr(options);
  return rest.find("?nsid=") == 0 || rest.find("&nsid=") != rest.npos || rest.find("?uuid=") == 0 ||
         rest.find("&uuid=") != rest.npos;
}

// Of a subsystem's namespaces each is a drive.
task::Task<Attempt<std::vector<std::string>>> all_namespaces(env::Env& env, std::string text) {
  const Attempt<fabric::Uri> uri = server::find_target_uri(text, server::Needs::kSubsystem);
  if (!uri) co_return std::unexpected(uri.error());
  Attempt<std::unique_ptr<server::ControllerLink>> link =
      co_await server::ControllerLink::open(env, *uri);
  if (!link) co_return std::unexpected(link.error());
  const Result<std::vector<uint32_t>> nsids =
      co_await fabric::active_namespaces((*link)->session(), (*link)->token());
  co_await (*link)->close();
  if (!nsids) co_return std::unexpected(server::cannot_do("listing namespaces", nsids.error()));
  if (nsids->empty()) {
    co_return refuse(
        fmt::format("{} has no namespace for this host: 'cairn drive add' in the box "
                    "serves one",
                    in_quotes(text)));
  }
  std::vector<std::string> uris;
  uris.reserve(nsids->size());
  for (const uint32_t nsid : *nsids) {
    uris.push_back(fmt::format("{}{}nsid={}", text, text.find('?') == text.npos ? '?' : '&', nsid));
  }
  co_return uris;
}

class AddCommand final : public Command {
 public:
  // A drive without discards is cleared block by block.
  static constexpr int kTimeoutS = 86400;

  explicit AddCommand(CLI::App& app) : client_(app, kTimeoutS) {
    required(add_argument(app, "URI",
                          "nvme-tcp://HOST:PORT/NQN: each of its namespaces becomes a drive of the "
                          "pool; with ?nsid=N that one alone",
                          [this](const std::string& text) -> Attempt<void> {
                            uri_ = text;
                            return server::check_mega_vol_uri(text);
                          }));
    add_text(app, "--box NAME", args_.box, "what fails together with it (the address)");
    add_text(app, "--rack NAME", args_.rack, "the same (none)");
    add_number(app, "--preference N", preference_, -100, 100,
               "the higher, the fewer extents it gets (0)");
    add_switch(app, "--format", args_.may_format,
               "take drives that hold something else, which is lost");
    add_switch(app, "--dry-run", is_dry_, "say which drives would be added");
    set_examples(app, {"cairn pool add nvme-tcp://10.0.0.1/NQN --box box1 --rack a",
                       "cairn pool add 'nvme-tcp://10.0.0.1/NQN?nsid=2'"});
  }

  Attempt<int> run() override {
    args_.preference = static_cast<int32_t>(preference_ * 1000);
    const Attempt<int> added =
        client_.run<int>([this](env::Env& env, ArbiterClient::Arbiter& arbiter,
                                task::CancelToken token) { return add_all(env, arbiter, token); });
    if (client_.json()) say(config::json_text({{"schema_version", 1}, {"drives", drives_}}));
    return added;
  }

 private:
  task::Task<Attempt<int>> add_all(env::Env& env, ArbiterClient::Arbiter& arbiter,
                                   task::CancelToken token) {
    // Everybody goes to the same address.
    Attempt<std::string> resolved = server::resolve_names(uri_, server::system_resolver());
    if (!resolved) co_return std::unexpected(resolved.error());
    uri_ = std::move(*resolved);
    std::vector<std::string> uris = {uri_};
    if (!names_namespace(uri_)) {
      Attempt<std::vector<std::string>> all = co_await all_namespaces(env, uri_);
      if (!all) co_return std::unexpected(all.error());
      uris = std::move(*all);
    }
    if (args_.box.empty()) {
      const Attempt<fabric::Uri> place = server::find_target_uri(uri_, server::Needs::kSubsystem);
      if (!place) co_return std::unexpected(place.error());
      args_.box = box_of(place->paths.front());
    }
    for (const std::string& uri : uris) {
      if (is_dry_) {
        note({{"uri", uri}, {"box", args_.box}}, fmt::format("would add {}\n", escaped(uri)));
        continue;
      }
      arbiter::AddArgs args = args_;
      args.uri = uri;
      const Attempt<MegaVolInfo> added =
          co_await client_.ask_one<MegaVolInfo>(arbiter, std::move(args), token);
      if (!added) {
        co_return refuse(fmt::format("{} was not added: {}{}", in_quotes(uri), added.error().text,
                                     advice(added.error().text)));
      }
      note({{"id", added->id.value()}, {"uri", uri}, {"box", added->box}},
           fmt::format("added drive {}: {}\n", added->id.value(), escaped(uri)));
    }
    co_return kExitOk;
  }

  // A name as volume::check_name wants it.
  static std::string box_of(const env::Address& at) {
    std::string text = at.text();
    for (char& c : text) {
      if (c == ':' || c == '[' || c == ']') c = '-';
    }
    const size_t first = text.find_first_not_of('-');
    return first == text.npos ? "" : text.substr(first);
  }
  static std::string_view advice(std::string_view text) {
    if (text.find("blank") != text.npos || text.find("holds") != text.npos) {
      return ": add --format if what is on it may be lost";
    }
    if (text.find("member of a pool") != text.npos) {
      return ": 'cairn pool list' says if of this one; another one's lets it go with 'cairn pool "
             "remove'";
    }
    return "";
  }
  void note(Json json, const std::string& text) {
    drives_.push_back(std::move(json));
    if (!client_.json()) say(text);
  }

  ArbiterClient client_;
  std::string uri_;
  arbiter::AddArgs args_;
  double preference_ = 0;
  bool is_dry_ = false;
  Json drives_ = Json::array();
};

class ListCommand final : public Command {
 public:
  explicit ListCommand(CLI::App& app) : client_(app) {
    set_examples(app, {"cairn pool list", "cairn pool list --json"});
  }
  Attempt<int> run() override {
    const Attempt<PoolView> pool = client_.ask<PoolView>(arbiter::PoolRequest{});
    if (!pool) return std::unexpected(pool.error());
    client_.print(pool_json(*pool), pool_text(*pool));
    return kExitOk;
  }

 private:
  ArbiterClient client_;
};

class ShowCommand final : public Command {
 public:
  explicit ShowCommand(CLI::App& app) : client_(app) {
    set_examples(app, {"cairn pool show", "cairn pool show --json"});
  }
  Attempt<int> run() override {
    const Attempt<PoolView> pool = client_.ask<PoolView>(arbiter::PoolRequest{});
    if (!pool) return std::unexpected(pool.error());
    client_.print(pool_json(*pool), pool_summary(*pool));
    return kExitOk;
  }

 private:
  ArbiterClient client_;
};

// What drain and remove have in common: a drive of the pool, by number or URI.
class OneDrive : public Command {
 public:
  explicit OneDrive(CLI::App& app) : client_(app) {
    required(add_text(app, "DRIVE", wanted_, "its number or URI, as 'cairn pool list' has them"));
    add_switch(app, "--dry-run", is_dry_, "say what would be done");
  }

 protected:
  // The drive, and whether it was asked what would be done alone.
  Attempt<DriveView> find() const {
    const Attempt<PoolView> pool = client_.ask<PoolView>(arbiter::PoolRequest{});
    if (!pool) return std::unexpected(pool.error());
    for (const DriveView& each : pool->drives) {
      const bool is_it =
          each.info.uri == wanted_ || fmt::to_string(each.info.id.value()) == wanted_;
      if (is_it) return each;
    }
    return refuse(fmt::format("the pool has no drive {}: 'cairn pool list' names those it has",
                              in_quotes(wanted_)));
  }
  int done(const DriveView& drive, std::string_view what) const {
    client_.print({{"schema_version", 1},
                   {"id", drive.info.id.value()},
                   {"uri", drive.info.uri},
                   {"extents", drive.legs},
                   {"dry_run", is_dry_}},
                  fmt::format("{}{}\n", is_dry_ ? "would be done: " : "", what));
    return kExitOk;
  }

  ArbiterClient client_;
  bool is_dry_ = false;

 private:
  std::string wanted_;
};

class DrainCommand final : public OneDrive {
 public:
  explicit DrainCommand(CLI::App& app) : OneDrive(app) {
    add_switch(app, "--cancel", is_cancelled_, "let it stay after all");
    set_examples(app, {"cairn pool drain 3", "cairn pool drain 3 --cancel"});
  }
  Attempt<int> run() override {
    const Attempt<DriveView> drive = find();
    if (!drive) return std::unexpected(drive.error());
    const arbiter::DrainRequest request{.id = drive->info.id, .is_leaving = !is_cancelled_};
    if (!is_dry_) {
      if (const Attempt<void> told = client_.ask<void>(request); !told) {
        return std::unexpected(told.error());
      }
    }
    const std::string id = fmt::to_string(drive->info.id.value());
    return done(*drive,
                is_cancelled_
                    ? fmt::format("drive {} stays", id)
                    : fmt::format("{} extents leave drive {}: whoever has their volumes open moves "
                                  "them; 'cairn pool list' says when it is drained",
                                  drive->legs, id));
  }

 private:
  bool is_cancelled_ = false;
};

class RemoveCommand final : public OneDrive {
 public:
  explicit RemoveCommand(CLI::App& app) : OneDrive(app), confirmation_(app) {
    add_switch(app, "--lost", is_lost_,
               "it is broken or gone for good: what is to be cleared there stays as it is");
    set_examples(app, {"cairn pool remove 3", "cairn pool remove 3 --lost"});
  }
  Attempt<int> run() override {
    const Attempt<DriveView> drive = find();
    if (!drive) return std::unexpected(drive.error());
    const std::string id = fmt::to_string(drive->info.id.value());
    if (drive->legs > 0) {
      return refuse(
          fmt::format("{} extents of volumes are on drive {}: move them with 'cairn pool "
                      "drain {}' first",
                      drive->legs, id, id));
    }
    const std::string what =
        fmt::format("drive {} ({}) leaves the pool", id, escaped(drive->info.uri));
    if (is_dry_) return done(*drive, what);
    if (const Attempt<void> sure = confirmation_.ask(what); !sure) {
      return std::unexpected(sure.error());
    }
    const arbiter::RemoveRequest request{.id = drive->info.id, .is_lost = is_lost_};
    if (const Attempt<void> told = client_.ask<void>(request); !told) {
      return std::unexpected(told.error());
    }
    return done(*drive, fmt::format("drive {} is no part of the pool any more", id));
  }

 private:
  Confirmation confirmation_;
  bool is_lost_ = false;
};

}  // namespace

std::unique_ptr<Command> make_pool_add(CLI::App& app) { return std::make_unique<AddCommand>(app); }
std::unique_ptr<Command> make_pool_list(CLI::App& app) {
  return std::make_unique<ListCommand>(app);
}
std::unique_ptr<Command> make_pool_show(CLI::App& app) {
  return std::make_unique<ShowCommand>(app);
}
std::unique_ptr<Command> make_pool_drain(CLI::App& app) {
  return std::make_unique<DrainCommand>(app);
}
std::unique_ptr<Command> make_pool_remove(CLI::App& app) {
  return std::make_unique<RemoveCommand>(app);
}

}  // namespace cairn::apps
