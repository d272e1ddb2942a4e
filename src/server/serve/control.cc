// SPDX-License-Identifier: Apache-2.0
#include "server/serve/control.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "base/words.h"
#include "server/control/health_json.h"
#include "server/open/open_stack.h"
#include "server/open/stack_source.h"

namespace cairn::server {

namespace {

using Command = ControlRequest::Command;
using drive::LayerInfo;

uint64_t whole_number(double value) { return static_cast<uint64_t>(std::llround(value)); }

Json figures_json(const drive::LayerFigures& figures) {
  constexpr const char* kKinds[] = {"read",  "write",   "compare",     "compare_and_write",
                                    "flush", "discard", "write_zeroes"};
  Json requests = Json::object();
  for (size_t i = 0; i < figures.kKinds; ++i) requests[kKinds[i]] = figures.requests[i];
  return {{"requests", std::move(requests)},
          {"read_bytes", figures.read_bytes},
          {"written_bytes", figures.written_bytes},
          {"cleared_bytes", figures.cleared_bytes},
          {"errors", figures.errors},
          {"in_flight", figures.in_flight},
          {"iops", whole_number(figures.requests_per_second)},
          {"bytes_per_second", whole_number(figures.bytes_per_second)},
          {"p50_ns", figures.p50.ns},
          {"p99_ns", figures.p99.ns},
          {"max_ns", figures.longest.ns}};
}

void add_layers(const LayerInfo& layer, Json& into) {
  Json json = {{"path", layer.path}, {"name", layer.name}, {"is_leaf", layer.is_leaf}};
  Json options = Json::object();
  for (const auto& option : layer.options) options[option.key] = option.value;
  json["options"] = std::move(options);
  if (!layer.problem.empty()) {
    json["problem"] = layer.problem;
  } else {
    const drive::Geometry& shape = layer.geometry;
    json.update({{"size", shape.bytes()},
                 {"block_size", shape.block_size},
                 {"transfer_blocks", shape.transfer_blocks},
                 {"atomic_blocks", shape.atomic_blocks},
                 {"volatile_cache", shape.volatile_cache},
                 {"copies", shape.copies}});
    json.update(figures_json(layer.figures));
    Json facts = Json::object();
    for (const auto& [name, value] : layer.facts) facts[name] = value;
    json["facts"] = std::move(facts);
  }
  into.push_back(std::move(json));
  for (const LayerInfo& below : layer.below) add_layers(below, into);
}

// A drive that is no stack: every core opens it for itself, and nothing stands before it.
Json source_json(const ServedDrive& drive) {
  Json layer = {{"path", "0"},
                {"name", drive.text},
                {"is_leaf", true},
                {"problem", drive.problem.empty()
                                ? "no figures: a single drive is opened by every core for itself"
                                : last_line(drive.problem)}};
  return Json::array({std::move(layer)});
}

task::Task<Json> drive_json(DriveServer& server, const ServedDrive& drive, bool with_layers) {
  Json json = {{"name", drive.name}, {"stack", drive.text}, {"is_stack", drive.stack != nullptr}};
  const Result<uint64_t> size = server.size(drive.name);
  if (size) json["size"] = *size;
  json.update(health_json(server.health(drive)));
  if (drive.vhost) json["vhost_user"] = drive.vhost->at.path;
  for (const VfioController& controller : server.vfio()) {
    // One of its own rather than one that it shares.
    if (!controller.has(drive.name)) continue;
    if (controller.drives.size() == 1 || !json.contains("vfio_user"))
      json["vfio_user"] = controller.socket;
  }
  if (!with_layers) co_return json;
  if (drive.stack == nullptr) {
    json["layers"] = source_json(drive);
    if (size) json["layers"][0]["size"] = *size;
    co_return json;
  }
  const LayerInfo top = co_await drive.stack->layers(server.env());
  json["layers"] = layers_json(top);
  co_return json;
}

task::Task<Attempt<Json>> list(DriveServer& server, const ControlRequest& request,
                               bool with_layers) {
  Json drives = Json::array();
  if (!request.drive.empty()) {
    const Attempt<ServedDrive*> drive = server.find(request.drive);
    if (!drive) co_return std::unexpected(drive.error());
    Json json = co_await drive_json(server, **drive, with_layers);
    drives.push_back(std::move(json));
  } else {
    for (const ServedDrive& drive : server.drives()) {
      Json json = co_await drive_json(server, drive, with_layers);
      drives.push_back(std::move(json));
    }
  }
  co_return Json{{"schema_version", 1}, {"drives", std::move(drives)}};
}

Attempt<ServedDrive*> find_stack(DriveServer& server, const std::string& name) {
  const Attempt<ServedDrive*> drive = server.find(name);
  if (!drive || (*drive)->stack != nullptr) return drive;
  if (!(*drive)->problem.empty()) {
    return refuse(fmt::format("{} is not open: {}; 'cairn drive retry {}' tries again",
                              (*drive)->name, last_line((*drive)->problem), (*drive)->name));
  }
  return refuse(
      fmt::format("{} is a single drive, which every core opens for itself: serve it as a stack, "
                  "such as 'slice({})', to change it while it is used",
                  (*drive)->name, (*drive)->text));
}

// Its layers were moved, and it is the way to them.
bool is_in_box(const ServedDrive& drive) {
  return drive.moved != nullptr && drive.text == drive.moved->uri.text();
}

task::Task<Attempt<Json>> edit(DriveServer& server, ControlRequest request) {
  const Attempt<ServedDrive*> drive = find_stack(server, request.drive);
  if (!drive) co_return std::unexpected(drive.error());
  Attempt<std::unique_ptr<StackPlan>> plan = StackPlan::prepare(request.stack);
  if (!plan) co_return std::unexpected(plan.error());
  if (request.format) (*plan)->allow_format();
  const std::string text = (*plan)->grown_text();
  if (is_in_box(**drive) && text.find((*drive)->text) == text.npos) {
    co_return refuse(
        fmt::format("the layers of {0} run in the box at {1}, which has what they stand on open: "
                    "bring them back first, with 'cairn drive move {0} --back', or put {2} into "
                    "the new stack",
                    (*drive)->name, (*drive)->moved->control, (*drive)->text));
  }
  const Attempt<void> edited = co_await (*drive)->stack->edit(server.env(), std::move(*plan));
  if (!edited) co_return std::unexpected(edited.error());
  (*drive)->text = text;
  co_return Json{{"name", (*drive)->name}, {"stack", text}};
}

task::Task<Attempt<Json>> tell(DriveServer& server, ControlRequest request) {
  const Attempt<ServedDrive*> drive = find_stack(server, request.drive);
  if (!drive) co_return std::unexpected(drive.error());
  if (request.words.empty()) co_return refuse("say what the layer is to do");
  drive::LiveStack::Told told = co_await (*drive)->stack->tell(
      server.env(), std::move(request.layer), std::move(request.words));
  if (!told) co_return refuse(std::move(told.error()));
  co_return Json{{"name", (*drive)->name}, {"said", *told}};
}

task::Task<Attempt<Json>> resize(DriveServer& server, ControlRequest request) {
  const Attempt<ServedDrive*> drive = server.find(request.drive);
  if (!drive) co_return std::unexpected(drive.error());
  if (request.size == 0) co_return refuse("say how many bytes the drive is to have");
  const std::string name = (*drive)->name;
  const Attempt<void> resized = co_await server.resize(name, request.size);
  if (!resized) co_return std::unexpected(resized.error());
  co_return Json{{"name", name}, {"size", request.size}};
}

// The box was asked to open the layers, and does not say whether it has.
Problem lost_in_box(const ServedDrive& drive, const std::string& why) {
  return {fmt::format(
      "{}. The box may have opened the layers of {}, so nobody is served until it says that it has "
      "not: 'cairn drive move {} --back' asks it at {}. If that box has ended for good, end this "
      "'cairn drive serve' and begin anew with 'cairn drive serve '{}={}''",
      why, drive.name, drive.name, drive.moved->control, drive.name, drive.moved->layers)};
}

task::Task<Attempt<Json>> retry(DriveServer& server, ControlRequest request) {
  const Attempt<ServedDrive*> drive = server.find(request.drive);
  if (!drive) co_return std::unexpected(drive.error());
  const std::string name = (*drive)->name;
  const bool was_open = (*drive)->problem.empty();
  const Attempt<void> opened = co_await server.reopen(name);
  if (!opened) co_return std::unexpected(opened.error());
  co_return Json{{"name", name}, {"was_open", was_open}};
}

task::Task<Attempt<Json>> move_to_box(DriveServer& server, ServedDrive& drive,
                                      ControlRequest request) {
  if (is_in_box(drive)) {
    co_return refuse(
        fmt::format("the layers of {} are in a box already: bring them back first, "
                    "with 'cairn drive move {} --back'",
                    drive.name, drive.name));
  }
  if (const std::string leaf = drive.stack->plan().leaf_in_memory(); !leaf.empty()) {
    co_return refuse(
        fmt::format("{} stays here: the blocks of {} are in the memory of this "
                    "process. Mirror it to a drive elsewhere, with 'cairn drive "
                    "edit', before it can move",
                    drive.name, leaf));
  }
  Attempt<BoxPlace> found =
      co_await find_place_in_box(server.env(), std::move(request.box), std::move(request.via),
                                 drive.stack->plan().grown_text());
  if (!found) co_return std::unexpected(found.error());
  auto place = std::make_unique<BoxPlace>(std::move(*found));
  MoveToBox mover(*place);
  const Attempt<Duration> waited = co_await drive.stack->move(server.env(), mover);
  if (!waited && place->may_be_open) {
    drive.text = place->uri.text();
    drive.moved = std::move(place);
    co_return std::unexpected(lost_in_box(drive, waited.error().text));
  }
  if (!waited) co_return std::unexpected(waited.error());
  drive.text = place->uri.text();
  drive.moved = std::move(place);
  co_return Json{{"name", drive.name},
                 {"stack", drive.text},
                 {"box", drive.moved->control},
                 {"nsid", drive.moved->uri.nsid},
                 {"waited_ms", waited->seconds() * 1e3}};
}

task::Task<Attempt<Json>> move_back(DriveServer& server, ServedDrive& drive) {
  if (drive.moved == nullptr) {
    co_return refuse(
        fmt::format("the layers of {} are here: move them to a box with --to PATH", drive.name));
  }
  if (drive.text != drive.moved->uri.text()) {
    co_return refuse(
        fmt::format("{} was edited since its layers went to a box: edit it to {} "
                    "first",
                    drive.name, drive.moved->uri.text()));
  }
  MoveFromBox mover(*drive.moved);
  const Attempt<Duration> waited = co_await drive.stack->move(server.env(), mover);
  if (!waited) {
    // Its clients would believe what they wrote and did not flush to be there still.
    co_return refuse(
        fmt::format("{}. If the box is gone for good, end this 'cairn drive serve' "
                    "and begin anew with 'cairn drive serve '{}={}'', so that clients "
                    "learn that what was not flushed may be lost",
                    waited.error().text, drive.name, drive.moved->layers));
  }
  drive.text = drive.moved->layers;
  drive.moved.reset();
  co_return Json{
      {"name", drive.name}, {"stack", drive.text}, {"waited_ms", waited->seconds() * 1e3}};
}

task::Task<Attempt<Json>> move(DriveServer& server, ControlRequest request) {
  const Attempt<ServedDrive*> drive = find_stack(server, request.drive);
  if (!drive) co_return std::unexpected(drive.error());
  Attempt<Json> moved = refuse("");
  if (request.box.empty()) {
    moved = co_await move_back(server, **drive);
  } else {
    moved = co_await move_to_box(server, **drive, std::move(request));
  }
  co_return moved;
}

Attempt<DriveServer::DoorKind> door_kind(const std::string& word) {
  if (word == "vfio-user") return DriveServer::DoorKind::kVfioUser;
  if (word == "vhost-user") return DriveServer::DoorKind::kVhostUser;
  return refuse(fmt::format("{} is no door: write vfio-user or vhost-user", in_quotes(word)));
}

task::Task<Attempt<Json>> change_doors(DriveServer& server, ControlRequest request) {
  const Attempt<ServedDrive*> drive = server.find(request.drive);
  if (!drive) co_return std::unexpected(drive.error());
  const std::string name = (*drive)->name;
  const Attempt<DriveServer::DoorKind> kind = door_kind(request.door);
  if (!kind) co_return std::unexpected(kind.error());
  Attempt<GuestArgs> words = parse_guest_args(request.socket);
  if (!words) co_return std::unexpected(words.error());
  words->drive = name;
  const std::string socket = words->socket;
  Attempt<void> changed;
  if (request.command == Command::kDoorAdd) {
    changed = co_await server.add_door(*kind, std::move(*words));
  } else {
    const Time until = server.env().now() + 1_ms * request.patience_ms;
    changed = co_await server.remove_door(*kind, std::move(*words), until);
  }
  if (!changed) co_return std::unexpected(changed.error());
  co_return Json{{"name", name}, {"door", request.door}, {"socket", socket}};
}

}  // namespace

Json layers_json(const LayerInfo& top) {
  Json layers = Json::array();
  add_layers(top, layers);
  return layers;
}

task::Task<Attempt<Json>> execute(DriveServer& server, ControlRequest request) {
  if (request.command == Command::kDriveList || request.command == Command::kDriveShow) {
    Attempt<Json> listed = co_await list(server, request, request.command == Command::kDriveShow);
    co_return listed;
  }
  if (request.command == Command::kDriveEdit) {
    Attempt<Json> edited = co_await edit(server, std::move(request));
    co_return edited;
  }
  if (request.command == Command::kDriveTell) {
    Attempt<Json> told = co_await tell(server, std::move(request));
    co_return told;
  }
  if (request.command == Command::kDriveResize) {
    Attempt<Json> resized = co_await resize(server, std::move(request));
    co_return resized;
  }
  if (request.command == Command::kDriveRetry) {
    Attempt<Json> retried = co_await retry(server, std::move(request));
    co_return retried;
  }
  if (request.command == Command::kDriveMove) {
    Attempt<Json> moved = co_await move(server, std::move(request));
    co_return moved;
  }
  if (request.command == Command::kDoorAdd || request.command == Command::kDoorRemove) {
    Attempt<Json> changed = co_await change_doors(server, std::move(request));
    co_return changed;
  }
  co_return refuse("drives are served here: ask a box, or use 'cairn drive list'");
}

}  // namespace cairn::server
