// SPDX-License-Identifier: Apache-2.0
#include "apps/commands.h"

#include <string>

#include "apps/common/command_tree.h"
#include "apps/drive/qemu_args.h"
#include "apps/events/commands.h"
#include "apps/key/commands.h"
#include "apps/kv/commands.h"
#include "apps/nvme/commands.h"
#include "apps/rack/commands.h"
#include "apps/support/commands.h"
#include "apps/up/commands.h"
#include "apps/view/commands.h"
#include "apps/volume/commands.h"

namespace cairn::apps {

namespace {

// What is asked of a server that runs.
void add_server(CommandTree& tree) {
  CLI::App& root = tree.root();
  tree.add(root, "serve", "serve drives and stacks of services, at every door", make_serve);
  CLI::App& host = CommandTree::group(root, "host", "which NVMe hosts may connect");
  tree.add(host, "list", "those that may, and those that are connected", make_host_list);
  tree.add(host, "add", "let a host connect", make_host_add);
  tree.add(host, "remove", "do not let a host connect", make_host_remove);
}

void add_volumes(CommandTree& tree) {
  CLI::App& root = tree.root();
  CLI::App& arbiter = tree.add(
      root, "arbiter", "decide where elastic volumes lie, one process of several", make_arbiter);
  tree.add(arbiter, "status", "which arbiters run, and which of them leads", make_arbiter_status);
  CLI::App& pool = CommandTree::group(root, "pool", "drives of boxes that volumes lie on");
  tree.add(pool, "add", "take the drives of a box into the pool", make_pool_add);
  tree.add(pool, "list", "the drives of the pool", make_pool_list);
  tree.add(pool, "show", "how much the pool has", make_pool_show);
  tree.add(pool, "drain", "have all extents leave a drive", make_pool_drain);
  tree.add(pool, "remove", "take a drive out of the pool", make_pool_remove);
  CLI::App& volume = CommandTree::group(root, "volume", "elastic volumes over many drives");
  tree.add(volume, "create", "make a volume", make_volume_create);
  tree.add(volume, "list", "the volumes of the pool", make_volume_list);
  tree.add(volume, "show", "a volume, where it lies and why", make_volume_show);
  tree.add(volume, "resize", "change the size of a volume", make_volume_resize);
  tree.add(volume, "update", "change how a volume is placed, replicated or served",
           make_volume_update);
  tree.add(volume, "snapshot", "keep what a volume holds now", make_volume_snapshot);
  tree.add(volume, "clone", "make a volume that begins as a snapshot", make_volume_clone);
  tree.add(volume, "destroy", "remove a volume or a snapshot and what it holds",
           make_volume_destroy);
  CLI::App& view = CommandTree::group(root, "view", "how the boxes of a pool are doing inside");
  tree.add(view, "top", "drives and volumes, the busiest first", make_view_top);
  tree.add(view, "watch", "drives and volumes, again and again", make_view_watch);
  tree.add(view, "why", "why a volume is slow", make_view_why);
  tree.add(view, "query", "all that is known of boxes", make_view_query);
}

void add_key(CommandTree& tree) {
  CLI::App& key = CommandTree::group(tree.root(), "key", "keys of hosts, boxes and drives");
  CLI::App& made = CommandTree::group(key, "new", "make a key");
  tree.add(made, "auth", "a key with which hosts and boxes authenticate", make_key_new_auth);
  tree.add(made, "tls", "a pre-shared key for TLS", make_key_new_tls);
  tree.add(made, "drive", "a key for a drive that encrypts", make_key_new_drive);
  tree.add(key, "inspect", "say what a key for TLS is, and is called", make_key_inspect);
}

// What users of earlier versions type.
void add_renamed(CommandTree& tree) {
  tree.add_renamed("sim ssd", "plan ssd");
  tree.add_renamed("sim net", "plan net");
  tree.add_renamed("sim snis", "plan snis");
  tree.add_renamed("sim plan", "plan capacity");
  tree.add_renamed("sim fit", "plan fit");
  tree.add_renamed("sim check", "plan validate");
  tree.add_renamed("box", "serve");
  tree.add_renamed("drive serve", "serve");
  tree.add_renamed("nvme gen-key", "key new auth");
  tree.add_renamed("nvme gen-tls-key", "key new tls");
  tree.add_renamed("nvme check-tls-key", "key inspect");
  tree.add_renamed("drive key", "key new drive");
}

}  // namespace

void add_commands(CommandTree& tree) {
  CLI::App& root = tree.root();
  tree.add(root, "up", "run Cairn on this machine", make_up);
  tree.add(root, "status", "how the Cairn that 'up' runs is", make_up_status);
  tree.add(root, "events", "what changed: drives, volumes, nodes, and how they are", make_events);
  tree.add(root, "down", "end the Cairn that 'up' runs", make_up_down);
  CLI::App& demo = CommandTree::group(root, "demo", "see what becomes of a failure");
  tree.add(demo, "kill-drive", "a drive of 'up' fails, and is replaced", make_demo_kill_drive);
  CLI::App& doctor =
      tree.add(root, "doctor", "say what this machine can do, and what to mend", make_doctor);
  tree.add(doctor, "tls", "which step towards a target through TLS fails", make_doctor_tls);
  tree.add(root, "support-bundle", "what somebody needs who helps, without secrets",
           make_support_bundle);
  add_server(tree);
  CLI::App& drive =
      CommandTree::group(root, "drive", "drives that are served, changed while they are used");
  tree.add(drive, "list", "the drives that are served", make_drive_list);
  tree.add(drive, "status", "what runs, and which hosts are connected", make_status);
  tree.add(drive, "stats", "what was read and written, and what connections do", make_stats);
  tree.add(drive, "metrics", "all counters, for Prometheus", make_metrics);
  tree.add(drive, "add", "serve another drive", make_drive_add);
  tree.add(drive, "remove", "stop serving a drive", make_drive_remove);
  tree.add(drive, "create", "make a drive of space that boxes of a rack spare", make_drive_create);
  tree.add(drive, "release", "remove such a drive and give its space back", make_drive_release);
  tree.add(drive, "show", "stacks as trees, with live figures", make_drive_show);
  tree.add(drive, "edit", "change a stack while it is used", make_drive_edit);
  tree.add(drive, "move", "run the layers of a drive in a box, and back, while it is used",
           make_drive_move);
  tree.add(drive, "retry", "open a drive that could not be opened", make_drive_retry);
  tree.add(drive, "resize", "change the size of a drive while it is used", make_drive_resize);
  tree.add(drive, "snapshot", "take a version of a drive", make_drive_snapshot);
  tree.add(drive, "ana", "say how well a group of drives is reached here", make_drive_ana);
  tree.add(drive, "qemu-args", "print the options with which QEMU uses a drive",
           make_drive_qemu_args);
  tree.add(drive, "tell", "give a command to one layer of a stack", make_drive_tell);
  tree.add(drive, "replay", "run the requests of a trace on a stack", make_drive_replay);
  tree.add(drive, "check", "what a stack would be, or what is wrong with it", make_drive_check);
  tree.add(drive, "services", "what stacks can be made of", make_drive_services);
  CLI::App& door = CommandTree::group(drive, "door", "doors of served drives for virtual machines");
  tree.add(door, "add", "open another door while the drive is served", make_drive_door_add);
  tree.add(door, "remove", "ask the guest for its device, and close the door",
           make_drive_door_remove);
  CLI::App& kv = CommandTree::group(root, "kv", "keys and values, for the clients of Redis");
  tree.add(kv, "serve", "serve keys and values", make_kv_serve);
  tree.add(kv, "check", "whether a drive of keys and values is whole", make_kv_check);
  tree.add(kv, "get", "print a value", make_kv_get);
  tree.add(kv, "put", "set a value", make_kv_put);
  tree.add(kv, "del", "remove keys", make_kv_del);
  tree.add(kv, "scan", "list the keys", make_kv_scan);
  tree.add(kv, "stats", "what a server has done, and has", make_kv_stats);
  tree.add(kv, "bench", "YCSB's workloads on a server, or on a drive", make_kv_bench);
  CLI::App& ring = CommandTree::group(kv, "ring", "the nodes of a cluster of keys");
  tree.add(ring, "show", "the nodes, and who keeps which keys", make_kv_ring_show);
  tree.add(ring, "add", "let a drained or removed node take part again", make_kv_ring_add);
  tree.add(ring, "drain", "give a node's keys to others", make_kv_ring_drain);
  tree.add(ring, "remove", "give up a node that is away", make_kv_ring_remove);
  CLI::App& rack = CommandTree::group(root, "rack", "space that boxes offer each other");
  tree.add(rack, "offers", "list who has how much space to spare", make_rack_offers);
  tree.add(rack, "drives", "list the drives that were made of it", make_rack_drives);
  tree.add(rack, "stack", "print such a drive's stack as 'cairn serve' takes it", make_rack_stack);
  tree.add(rack, "serve", "serve the metadata of a rack on one machine", make_rack_serve);
  add_volumes(tree);
  CLI::App& nvme = CommandTree::group(root, "nvme", "use drives across the network");
  for (const NvmeVerb& verb : nvme_verbs()) tree.add(nvme, verb.name, verb.what, verb.make);
  add_key(tree);
  add_renamed(tree);
}

void add_last_commands(CommandTree& tree) {
  CLI::App& root = tree.root();
  CLI::App& config = CommandTree::group(root, "config", "work with configuration files");
  tree.add(config, "check", "check a configuration file", make_config_check);
  tree.add(root, "version", "print version, commit and compiler; also --version", make_version);
}

}  // namespace cairn::apps
