// SPDX-License-Identifier: Apache-2.0
// CLUSTER and its kin, as clients of Redis Cluster ask to find the node of a key.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "door/resp/cluster.h"
#include "door/resp/command_table.h"
#include "door/resp/door_state.h"
#include "door/resp/help.h"
#include "env/address.h"
#include "kv/ring/slot.h"

namespace cairn::door::resp {

namespace {

using kv::ring::Member;
using kv::ring::MemberId;
using View = std::shared_ptr<const kv::ring::View>;

// The view, if there is a cluster; null with an error in the reply, or none yet.
bool has_cluster(Call& call) {
  if (call.door.options.cluster) return true;
  call.reply.error("ERR This instance has cluster support disabled");
  return false;
}
View view_of(const Call& call) { return call.door.options.cluster->view(); }

struct Endpoint {
  std::string host;
  uint16_t port = 0;
};
// Where clients of Redis find a member, which says where.
Endpoint endpoint_of(const Member& member) {
  const Result<env::Address> at = env::Address::parse(member.resp);
  CHECK(at.has_value(), "views with other addresses are not decoded");
  std::string host = member.resp.substr(0, member.resp.rfind(':'));
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  return {.host = std::move(host), .port = at->port};
}

void tell_node(Reply& reply, const Member& member) {
  const Endpoint at = endpoint_of(member);
  reply.array(4);
  reply.bulk(at.host);
  reply.integer(at.port);
  reply.bulk(node_name(member.id));
  reply.array(0);  // more of where it is
}

void slots(Call& call) {
  if (!has_cluster(call)) return;
  const View view = view_of(call);
  if (!view) return call.reply.array(0);
  const std::vector<SlotRun> runs = slot_runs(*view);
  call.reply.array(runs.size());
  for (const SlotRun& run : runs) {
    call.reply.array(3);
    call.reply.integer(run.first);
    call.reply.integer(run.last);
    tell_node(call.reply, *view->member(run.member));
  }
}

// Of one member, whom clients can find.
void tell_shard(Reply& reply, const Member& member, const std::vector<SlotRun>& runs) {
  std::vector<SlotRun> mine;
  std::ranges::copy_if(runs, std::back_inserter(mine),
                       [&](const SlotRun& run) { return run.member == member.id; });
  const Endpoint at = endpoint_of(member);
  reply.map(2);
  reply.bulk("slots");
  reply.array(2 * mine.size());
  for (const SlotRun& run : mine) {
    reply.integer(run.first);
    reply.integer(run.last);
  }
  reply.bulk("nodes");
  reply.array(1);
  reply.map(7);
  reply.bulk("id");
  reply.bulk(node_name(member.id));
  reply.bulk("port");
  reply.integer(at.port);
  reply.bulk("ip");
  reply.bulk(at.host);
  reply.bulk("endpoint");
  reply.bulk(at.host);
  reply.bulk("role");
  reply.bulk("master");
  reply.bulk("replication-offset");
  reply.integer(0);
  reply.bulk("health");
  reply.bulk("online");
}

void shards(Call& call) {
  if (!has_cluster(call)) return;
  const View view = view_of(call);
  if (!view) return call.reply.array(0);
  const std::vector<SlotRun> runs = slot_runs(*view);
  std::vector<const Member*> found;
  for (const Member& member : view->members) {
    if (!member.resp.empty()) found.push_back(&member);
  }
  call.reply.array(found.size());
  for (const Member* member : found) tell_shard(call.reply, *member, runs);
}

void nodes(Call& call) {
  if (!has_cluster(call)) return;
  const View view = view_of(call);
  std::string text;
  const std::vector<SlotRun> runs = view ? slot_runs(*view) : std::vector<SlotRun>();
  for (const Member& member : view ? view->members : std::vector<Member>()) {
    if (member.resp.empty()) continue;
    const Endpoint at = endpoint_of(member);
    const bool is_me = member.id == call.door.options.cluster->self;
    text += fmt::format("{} {}:{}@{} {}master - 0 0 {} connected", node_name(member.id), at.host,
                        at.port, at.port, is_me ? "myself," : "", view->epoch.value());
    for (const SlotRun& run : runs) {
      if (run.member != member.id) continue;
      text += run.first == run.last ? fmt::format(" {}", run.first)
                                    : fmt::format(" {}-{}", run.first, run.last);
    }
    text += "\n";
  }
  call.reply.verbatim("txt", text);
}

void info(Call& call) {
  if (!has_cluster(call)) return;
  const View view = view_of(call);
  uint32_t served = 0;
  size_t members = 0;
  if (view) {
    for (const SlotRun& run : slot_runs(*view)) served += run.last - run.first + 1;
    members = view->members.size();
  }
  call.reply.verbatim(
      "txt", fmt::format("cluster_enabled:1\r\ncluster_state:{}\r\ncluster_slots_assigned:{}\r\n"
                         "cluster_slots_ok:{}\r\ncluster_slots_pfail:0\r\n"
                         "cluster_slots_fail:{}\r\ncluster_known_nodes:{}\r\ncluster_size:{}\r\n"
                         "cluster_current_epoch:{}\r\ncluster_my_epoch:{}\r\n",
                         served == kv::ring::kSlots ? "ok" : "fail", served, served,
                         kv::ring::kSlots - served, members, members,
                         view ? view->epoch.value() : 0, view ? view->epoch.value() : 0));
}

void myid(Call& call) {
  if (has_cluster(call)) call.reply.bulk(node_name(call.door.options.cluster->self));
}

void keyslot(Call& call) {
  if (has_cluster(call)) call.reply.integer(kv::ring::slot_of(call.args[2]));
}

// Reads and writes go to any node, so there is nothing to switch.
void accept(Call& call) {
  if (has_cluster(call)) call.reply.ok();
}

constexpr Command sub(std::string_view name, int arity, std::string_view since,
                      std::string_view summary, void (*run)(Call&)) {
  return {.name = name,
          .arity = arity,
          .flags = 0,
          .keys = {},
          .group = "cluster",
          .since = since,
          .summary = summary,
          .plain = run};
}

constexpr std::array kCluster = {
    sub("cluster|help", 2, "5.0.0", "Show helpful text about the different subcommands", help),
    sub("cluster|info", 2, "3.0.0", "Provides info about the state of the cluster", info),
    sub("cluster|keyslot", 3, "3.0.0", "Returns the slot of a key", keyslot),
    sub("cluster|myid", 2, "3.0.0", "Return the node id", myid),
    sub("cluster|nodes", 2, "3.0.0", "The nodes of the cluster, a line each", nodes),
    sub("cluster|shards", 2, "7.0.0", "The nodes of the cluster and their slots", shards),
    sub("cluster|slots", 2, "3.0.0", "The slots and their nodes", slots),
};

constexpr std::array kCommands = {
    Command{.name = "cluster",
            .arity = -2,
            .flags = 0,
            .keys = {},
            .group = "cluster",
            .since = "3.0.0",
            .summary = "A container for cluster commands",
            .subcommands = kCluster},
    sub("asking", 1, "3.0.0", "Sent by clients after an -ASK, which is never answered", accept),
    sub("readonly", 1, "3.0.0", "Enables read queries, which every node answers", accept),
    sub("readwrite", 1, "3.0.0", "Disables read queries, which every node answers", accept),
};

}  // namespace

std::span<const Command> cluster_commands() { return kCommands; }

}  // namespace cairn::door::resp
