// SPDX-License-Identifier: Apache-2.0
// `cairn kv ring show|add|drain|remove`: the nodes of a cluster, and who keeps which keys.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/common/confirm.h"
#include "apps/common/output.h"
#include "apps/kv/commands.h"
#include "apps/rack/client.h"
#include "base/error_text.h"
#include "base/table.h"
#include "base/words.h"
#include "config/json_text.h"
#include "kv/ring/plan.h"
#include "kv/ring/roster.h"
#include "kv/ring/slot.h"
#include "rack/store_text.h"
#include "server/kv/node.h"

namespace cairn::apps {

namespace {

using kv::ring::Member;
using kv::ring::MemberId;
using kv::ring::Replica;
using kv::ring::RingRange;
using kv::ring::Roster;
using kv::ring::Share;
using kv::ring::View;

constexpr const char* kMetaOption = "--meta [META]";

// What is wrong with the store, where --meta names it.
Problem store_problem(const Error& error) {
  std::string text = rack::store_text(error);
  const std::string option = "--rack";
  const size_t at = text.rfind(option);
  if (at != std::string::npos) text.replace(at, option.size(), "--meta");
  return Problem{text};
}

task::Task<Attempt<Roster>> read(env::Env&, meta::Store& store, task::CancelToken token) {
  Result<Roster> roster =
      co_await kv::ring::read_roster(store, std::string(server::kKvPrefix), token);
  if (roster) co_return std::move(*roster);
  if (roster.error() == Errc::kCorrupt || roster.error() == Errc::kUnsupported) {
    co_return refuse(
        fmt::format("the ring in this store cannot be read: {}", error_text(roster.error())));
  }
  co_return std::unexpected(store_problem(roster.error()));
}

// A member as it is now: what its node says of itself, else what the view knows.
struct Row {
  Member member;
  bool is_here = false;    // its node has a lease
  bool is_member = false;  // the view has it
  bool is_sent_away = false;
  Share share;

  const char* state() const {
    if (!is_here) return is_sent_away ? "removed" : "away";
    if (is_sent_away) return is_member ? "leaving" : "drained";
    if (!is_member) return "waits";
    return share.joining > 0 || share.running < share.wanted ? "joining" : "here";
  }
};

std::vector<Row> rows_of(const Roster& roster) {
  std::map<MemberId, Row> rows;
  std::map<MemberId, Share> shares;
  if (roster.view) shares = kv::ring::shares(*roster.view);
  for (const Member& member : roster.view ? roster.view->members : std::vector<Member>()) {
    rows[member.id] = {.member = member, .is_member = true, .share = shares[member.id]};
  }
  for (const auto& [id, node] : roster.nodes) {
    rows[id].member = node.member;
    rows[id].is_here = true;
  }
  std::vector<Row> all;
  for (auto& [id, row] : rows) {
    row.is_sent_away = roster.sent_away.contains(id);
    all.push_back(std::move(row));
  }
  std::ranges::sort(all, {}, [](const Row& row) { return row.member.name; });
  return all;
}

std::string id_text(MemberId id) { return fmt::format("{:016x}", id.value()); }

// The slots that lie in each range; a range may have none.
std::vector<std::vector<std::pair<uint32_t, uint32_t>>> slots_of(const View& view) {
  std::vector<std::vector<std::pair<uint32_t, uint32_t>>> slots(view.ranges.size());
  for (uint32_t slot = 0; slot < kv::ring::kSlots; ++slot) {
    auto& runs = slots[view.range_index(kv::ring::place_of_slot(slot))];
    if (!runs.empty() && runs.back().second + 1 == slot) {
      runs.back().second = slot;
    } else {
      runs.emplace_back(slot, slot);
    }
  }
  return slots;
}

const char* text_of(Replica::State state) {
  switch (state) {
    case Replica::State::kRunning:
      return "running";
    case Replica::State::kJoining:
      return "joining";
    case Replica::State::kLeaving:
      return "leaving";
  }
  return "";
}

class ShowCommand final : public Command {
 public:
  explicit ShowCommand(CLI::App& app) : client_(app, kMetaOption) {
    add_switch(app, "--chains", with_chains_, "also each range of slots, and its chain");
    set_examples(app, {"cairn kv ring show", "cairn kv ring show --meta etcd://10.0.0.1:2379",
                       "cairn kv ring show --chains", "cairn kv ring show --json"});
  }
  Attempt<int> run() override {
    const Attempt<Roster> roster = client_.run<Roster>(read);
    if (!roster) return std::unexpected(roster.error());
    say(client_.json() ? config::json_text(json_of(*roster)) : text(*roster));
    return kExitOk;
  }

 private:
  static std::string name_in(const View& view, MemberId id) {
    return escaped(view.member(id)->name);
  }

  std::string text(const Roster& roster) const {
    std::vector<std::vector<std::string>> table = {
        {"NODE", "STATE", "RANGES", "OF", "COPYING", "RESP", "MACHINE", "RACK", "ID"}};
    for (const Row& row : rows_of(roster)) {
      const Member& member = row.member;
      table.push_back({escaped(member.name), row.state(), fmt::format("{}", row.share.running),
                       fmt::format("{}", row.share.wanted), fmt::format("{}", row.share.joining),
                       member.resp.empty() ? "-" : member.resp,
                       member.location.machine.empty() ? "-" : escaped(member.location.machine),
                       member.location.rack.empty() ? "-" : escaped(member.location.rack),
                       id_text(member.id)});
    }
    std::string text = table_text(table);
    if (!roster.view) return text + "there is no ring yet: it begins when enough nodes are there\n";
    text += fmt::format("epoch {}, {} replicas, {}\n", roster.view->epoch.value(),
                        roster.view->replicas,
                        kv::ring::is_settled(*roster.view) ? "settled" : "changing");
    return with_chains_ ? text + "\n" + chains(*roster.view) : text;
  }

  static std::string chains(const View& view) {
    std::vector<std::vector<std::string>> table = {{"SLOTS", "EPOCH", "CHAIN"}};
    const auto slots = slots_of(view);
    for (size_t i = 0; i < view.ranges.size(); ++i) {
      std::string runs;
      for (const auto& [first, last] : slots[i]) {
        runs += fmt::format("{}{}-{}", runs.empty() ? "" : ",", first, last);
      }
      std::string chain;
      for (const Replica& each : view.ranges[i].chain) {
        chain += chain.empty() ? "" : " > ";
        chain += name_in(view, each.member);
        if (each.state != Replica::State::kRunning) {
          chain += fmt::format(" ({})", text_of(each.state));
        }
      }
      table.push_back(
          {runs.empty() ? "none" : runs, fmt::format("{}", view.ranges[i].epoch.value()), chain});
    }
    return table_text(table);
  }

  static nlohmann::ordered_json json_of(const Roster& roster) {
    nlohmann::ordered_json json = {{"schema_version", 1},
                                   {"epoch", roster.view ? roster.view->epoch.value() : 0},
                                   {"replicas", roster.view ? roster.view->replicas : 0},
                                   {"settled", roster.view && kv::ring::is_settled(*roster.view)},
                                   {"nodes", nlohmann::ordered_json::array()},
                                   {"ranges", nlohmann::ordered_json::array()}};
    for (const Row& row : rows_of(roster)) {
      json["nodes"].push_back({{"name", row.member.name},
                               {"id", id_text(row.member.id)},
                               {"state", row.state()},
                               {"address", row.member.address},
                               {"resp", row.member.resp},
                               {"machine", row.member.location.machine},
                               {"rack", row.member.location.rack},
                               {"ranges_running", row.share.running},
                               {"ranges_joining", row.share.joining},
                               {"ranges_leaving", row.share.leaving},
                               {"ranges_wanted", row.share.wanted},
                               {"ranges_named", row.share.named}});
    }
    if (!roster.view) return json;
    const auto slots = slots_of(*roster.view);
    for (size_t i = 0; i < slots.size(); ++i) {
      const RingRange& range = roster.view->ranges[i];
      nlohmann::ordered_json chain = nlohmann::ordered_json::array();
      for (const Replica& each : range.chain) {
        chain.push_back({{"node", id_text(each.member)}, {"state", text_of(each.state)}});
      }
      json["ranges"].push_back(
          {{"slots", slots[i]}, {"epoch", range.epoch.value()}, {"chain", chain}});
    }
    return json;
  }

  RackClient client_;
  bool with_chains_ = false;
};

// A command about one node.
class NodeCommand : public Command {
 public:
  NodeCommand(CLI::App& app, const char* help) : client_(app, kMetaOption) {
    required(add_text(app, "NODE", name_, help));
  }

 protected:
  // The node that NODE means, by its name or id.
  Attempt<Row> find() const {
    const Attempt<Roster> roster = client_.run<Roster>(read);
    if (!roster) return std::unexpected(roster.error());
    std::vector<Row> found;
    for (Row& row : rows_of(*roster)) {
      if (row.member.name == name_ || id_text(row.member.id) == name_) {
        found.push_back(std::move(row));
      }
    }
    // One that was removed is known by its id alone.
    for (const MemberId away : roster->sent_away) {
      const bool is_it = found.empty() && id_text(away) == name_;
      if (is_it) found.push_back({.member = {.id = away, .name = name_}, .is_sent_away = true});
    }
    if (found.size() == 1) return std::move(found.front());
    return refuse(fmt::format("{} node {}: 'cairn kv ring show' lists them, and their ids",
                              found.empty() ? "there is no" : "there is more than one",
                              in_quotes(name_)));
  }
  using Write = task::Task<Result<void>> (*)(meta::Store&, std::string, MemberId,
                                             task::CancelToken);
  Attempt<void> write(MemberId member, Write how) const {
    const Attempt<int> done =
        client_.run<int>([member, how](env::Env&, meta::Store& store, task::CancelToken token) {
          return write_in(store, member, how, token);
        });
    if (!done) return std::unexpected(done.error());
    return {};
  }
  // As JSON, if that was asked for.
  int told(const Row& row, const std::string& text) const {
    say(client_.json() ? config::json_text({{"schema_version", 1},
                                            {"node", row.member.name},
                                            {"id", id_text(row.member.id)},
                                            {"message", text}})
                       : text + "\n");
    return kExitOk;
  }

 private:
  static task::Task<Attempt<int>> write_in(meta::Store& store, MemberId member, Write how,
                                           task::CancelToken token) {
    const Result<void> done = co_await how(store, std::string(server::kKvPrefix), member, token);
    if (!done) co_return std::unexpected(store_problem(done.error()));
    co_return kExitOk;
  }

  RackClient client_;
  std::string name_;
};

class AddCommand final : public NodeCommand {
 public:
  explicit AddCommand(CLI::App& app)
      : NodeCommand(app, "a node that was drained or removed; others join by themselves") {
    set_examples(app, {"cairn kv ring add kv1"});
  }
  Attempt<int> run() override {
    const Attempt<Row> row = find();
    if (!row) return std::unexpected(row.error());
    if (!row->is_sent_away) {
      return told(*row, fmt::format("{} takes part already", in_quotes(row->member.name)));
    }
    if (const Attempt<void> done = write(row->member.id, &kv::ring::call_back); !done) {
      return std::unexpected(done.error());
    }
    return told(*row, fmt::format("{} {}", in_quotes(row->member.name),
                                  row->is_here ? "joins the ring" : "joins when it runs again"));
  }
};

class DrainCommand final : public NodeCommand {
 public:
  explicit DrainCommand(CLI::App& app)
      : NodeCommand(app, "a node that runs; its keys go to others"), confirmation_(app) {
    set_examples(app, {"cairn kv ring drain kv1 --yes", "cairn kv ring show"});
  }
  Attempt<int> run() override {
    const Attempt<Row> row = find();
    if (!row) return std::unexpected(row.error());
    const std::string name = in_quotes(row->member.name);
    if (!row->is_here) {
      return refuse(fmt::format(
          "{} is away, so it cannot be drained: start it again, or run 'cairn kv ring remove {}'",
          name, row->member.name));
    }
    const Attempt<void> sure = confirmation_.ask(
        fmt::format("{} gives all its keys to other nodes, and its own copies are erased", name));
    if (!sure) return std::unexpected(sure.error());
    if (const Attempt<void> done = write(row->member.id, &kv::ring::send_away); !done) {
      return std::unexpected(done.error());
    }
    return told(*row,
                fmt::format("{} is leaving; 'cairn kv ring show' says when it is drained", name));
  }

 private:
  Confirmation confirmation_;
};

class RemoveCommand final : public NodeCommand {
 public:
  explicit RemoveCommand(CLI::App& app)
      : NodeCommand(app, "a node that is away; others take its place at once"), confirmation_(app) {
    set_examples(app, {"cairn kv ring remove kv1 --yes"});
  }
  Attempt<int> run() override {
    const Attempt<Row> row = find();
    if (!row) return std::unexpected(row.error());
    const std::string name = in_quotes(row->member.name);
    if (row->is_here) {
      return refuse(fmt::format("{} runs: drain it first with 'cairn kv ring drain {}'", name,
                                row->member.name));
    }
    const Attempt<void> sure = confirmation_.ask(
        fmt::format("{} loses its place, and what only it holds waits for it", name));
    if (!sure) return std::unexpected(sure.error());
    if (const Attempt<void> done = write(row->member.id, &kv::ring::send_away); !done) {
      return std::unexpected(done.error());
    }
    return told(*row, fmt::format("{} is removed; 'cairn kv ring add {}' takes that back", name,
                                  id_text(row->member.id)));
  }

 private:
  Confirmation confirmation_;
};

}  // namespace

std::unique_ptr<Command> make_kv_ring_show(CLI::App& app) {
  return std::make_unique<ShowCommand>(app);
}
std::unique_ptr<Command> make_kv_ring_add(CLI::App& app) {
  return std::make_unique<AddCommand>(app);
}
std::unique_ptr<Command> make_kv_ring_drain(CLI::App& app) {
  return std::make_unique<DrainCommand>(app);
}
std::unique_ptr<Command> make_kv_ring_remove(CLI::App& app) {
  return std::make_unique<RemoveCommand>(app);
}

}  // namespace cairn::apps
