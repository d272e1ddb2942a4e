// SPDX-License-Identifier: Apache-2.0
#include "server/serve/drive_commands.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "base/uuid.h"
#include "base/words.h"
#include "nvme/controller/namespace_ids.h"
#include "server/control/health_json.h"
#include "server/open/open_stack.h"
#include "server/open/take_drive.h"
#include "server/serve/show.h"

namespace cairn::server {

namespace {

using Command = ControlRequest::Command;

// Where the drive is found by virtual machines.
void add_guest_doors(const Server& server, const ServedDrive& drive, Json& json) {
  if (drive.vhost) json["vhost_user"] = drive.vhost->at.path;
  for (const VfioController& controller : server.doors().vfio()) {
    // One of its own rather than one that it shares.
    if (!controller.has(drive.name)) continue;
    if (controller.drives.size() == 1 || !json.contains("vfio_user"))
      json["vfio_user"] = controller.socket;
  }
}

// Whom its space was given to.
void add_contract(const Server& server, const ServedDrive& drive, Json& json) {
  if (drive.space.owner.empty()) return;
  for (const rack::Contract& contract : server.contracts()) {
    if (drive.nqn != contract.nqn || drive.space.nsid != contract.nsid) continue;
    json["contract"] = {{"drive", contract.drive},
                        {"owner", contract.owner},
                        {"shelf", contract.shelf},
                        {"iops", contract.amount.iops},
                        {"bandwidth", contract.amount.bandwidth},
                        {"confirmed", contract.is_confirmed}};
  }
}

// A single drive: what NVMe hosts and guests did with it, over all cores.
Json source_layer(const ServedDrive& drive, const nvme::NamespaceInfo& info,
                  const nvme::IoTotals& totals) {
  return {{"path", "0"},
          {"name", drive.text},
          {"is_leaf", true},
          {"options", Json::object()},
          {"size", info.geometry.bytes()},
          {"block_size", info.geometry.block_size},
          {"requests", {{"read", totals.reads}, {"write", totals.writes}}},
          {"read_bytes", totals.sectors_read * 512},
          {"written_bytes", totals.sectors_written * 512},
          {"errors", totals.media_errors},
          {"facts",
           {{"reads", totals.reads},
            {"writes", totals.writes},
            {"bytes_read", totals.sectors_read * 512},
            {"bytes_written", totals.sectors_written * 512}}}};
}

Json drive_json(const Server& server, const ServedDrive& drive,
                const std::optional<nvme::NamespaceInfo>& info) {
  Json json = {{"name", drive.name},
               {"stack", drive.text},
               {"is_stack", drive.stack() != nullptr},
               {"nqn", drive.nqn},
               {"nsid", drive.space.nsid}};
  if (info) {
    json.update({{"size", info->geometry.bytes()},
                 {"block_size", info->geometry.block_size},
                 {"uuid", uuid_text(info->options.uuid)},
                 {"nguid", fmt::format("{:02x}", fmt::join(info->options.nguid, ""))},
                 {"ana_group", info->options.ana_group},
                 {"ana_state", ana_word(info->ana_state)},
                 {"read_only", info->options.read_only}});
  }
  if (!info && drive.space.uuid != Uuid{}) json["uuid"] = uuid_text(drive.space.uuid);
  if (!drive.problem.empty()) json["problem"] = last_line(drive.problem);
  json.update(health_json(server.health(drive)));
  add_guest_doors(server, drive, json);
  add_contract(server, drive, json);
  return json;
}

task::Task<Json> layers_of(Server& server, std::string name) {
  Attempt<ServedDrive*> drive = server.find(name);
  if (!drive) co_return Json::array();
  if (!(*drive)->problem.empty()) {
    co_return Json::array({{{"path", "0"},
                            {"name", (*drive)->text},
                            {"is_leaf", true},
                            {"problem", last_line((*drive)->problem)}}});
  }
  const std::optional<drive::LayerInfo> top = co_await server.layers(name);
  if (top) co_return layers_json(*top);
  drive = server.find(name);
  if (!drive) co_return Json::array();  // removed meanwhile
  const Result<nvme::IoTotals> totals =
      co_await server.registry().totals((*drive)->nqn, (*drive)->space.nsid);
  drive = server.find(name);
  const std::optional<nvme::NamespaceInfo> info = drive ? server.info(**drive) : std::nullopt;
  if (!totals || !info) co_return Json::array();
  co_return Json::array({source_layer(**drive, *info, *totals)});
}

// Which drives a request is about.
Attempt<std::vector<std::string>> meant(Server& server, const ControlRequest& request) {
  if (!request.drive.empty()) {
    const Attempt<ServedDrive*> drive = server.find(request.drive);
    if (!drive) return std::unexpected(drive.error());
    return std::vector<std::string>{(*drive)->name};
  }
  std::string nqn;
  if (!request.nqn.empty()) {
    const Attempt<std::string> found = server.nvme().find(request.nqn);
    if (!found) return std::unexpected(found.error());
    nqn = *found;
  }
  std::vector<std::string> names;
  for (const auto& drive : server.drives()) {
    if (nqn.empty() || drive->nqn == nqn) names.push_back(drive->name);
  }
  return names;
}

task::Task<Attempt<Json>> list(Server& server, ControlRequest request) {
  const Attempt<std::vector<std::string>> names = meant(server, request);
  if (!names) co_return std::unexpected(names.error());
  Json drives = Json::array();
  for (const std::string& name : *names) {
    Json layers;
    if (request.command == Command::kDriveShow) layers = co_await layers_of(server, name);
    const Attempt<ServedDrive*> drive = server.find(name);
    if (!drive) continue;  // removed meanwhile
    Json json = drive_json(server, **drive, server.info(**drive));
    if (request.command == Command::kDriveShow) json["layers"] = std::move(layers);
    drives.push_back(std::move(json));
  }
  Json nqns = Json::array();
  for (const SubsystemConfig& each : server.options().subsystems) nqns.push_back(each.options.nqn);
  co_return Json{
      {"schema_version", 1}, {"subsystems", std::move(nqns)}, {"drives", std::move(drives)}};
}

Attempt<nvme::NamespaceOptions> namespace_of(const ControlRequest& request,
                                             const std::string& nqn) {
  nvme::NamespaceOptions options{.nsid = request.nsid,
                                 .name = request.drive,
                                 .ana_group = request.group,
                                 .read_only = request.read_only};
  if (request.stack.empty()) return refuse("say what the drive is: mem:size=1G, or a stack");
  if (const Attempt<void> taken = take_drive(request.stack, LookUp::kWhenOpened, options); !taken) {
    return std::unexpected(taken.error());
  }
  if (!request.drive.empty()) {
    const nvme::NamespaceIds ids = nvme::make_named_ids(nqn, request.drive);
    options.uuid = ids.uuid;
    options.nguid = ids.nguid;
  }
  if (!request.uuid.empty()) {
    const std::optional<Uuid> uuid = parse_uuid(request.uuid);
    if (!uuid) return refuse(fmt::format("{} is not a UUID", in_quotes(request.uuid)));
    options.uuid = *uuid;
  }
  return options;
}

task::Task<Attempt<Json>> add(Server& server, ControlRequest request) {
  const Attempt<std::string> nqn = server.nvme().find(request.nqn);
  if (!nqn) co_return std::unexpected(nqn.error());
  Attempt<nvme::NamespaceOptions> options = namespace_of(request, *nqn);
  if (!options) co_return std::unexpected(options.error());
  const Attempt<ServedDrive*> added =
      co_await server.add_drive(*nqn, std::move(*options), request.format);
  if (!added) co_return std::unexpected(added.error());
  co_return Json{{"name", (*added)->name}, {"nsid", (*added)->space.nsid}};
}

task::Task<Attempt<Json>> edit(Server& server, ControlRequest request) {
  const Attempt<ServedDrive*> drive = server.find(request.drive);
  if (!drive) co_return std::unexpected(drive.error());
  const std::string name = (*drive)->name;
  Attempt<std::unique_ptr<StackPlan>> plan = StackPlan::prepare(request.stack);
  if (!plan) co_return std::unexpected(plan.error());
  if (request.format) (*plan)->allow_format();
  const Attempt<std::string> text = co_await server.edit_drive(name, std::move(*plan));
  if (!text) co_return std::unexpected(text.error());
  co_return Json{{"name", name}, {"stack", *text}};
}

task::Task<Attempt<Json>> move(Server& server, ControlRequest request) {
  const Attempt<ServedDrive*> found = server.find(request.drive);
  if (!found) co_return std::unexpected(found.error());
  const std::string name = (*found)->name;
  const bool is_back = request.box.empty();
  Attempt<Duration> waited = refuse("");
  if (is_back) {
    waited = co_await server.bring_back(name);
  } else {
    waited = co_await server.move_drive(name, std::move(request.box), std::move(request.via));
  }
  if (!waited) co_return std::unexpected(waited.error());
  const Attempt<ServedDrive*> drive = server.find(name);
  if (!drive) co_return std::unexpected(drive.error());
  Json json = {{"name", name}, {"stack", (*drive)->text}};
  if (const BoxPlace* place = (*drive)->moved.get(); !is_back && place != nullptr) {
    json.update({{"box", place->control}, {"nsid", place->uri.nsid}});
  }
  json["waited_ms"] = waited->seconds() * 1e3;
  co_return json;
}

Attempt<GuestDoor> guest_door(const std::string& word) {
  if (word == "vfio-user") return GuestDoor::kVfioUser;
  if (word == "vhost-user") return GuestDoor::kVhostUser;
  return refuse(fmt::format("{} is no door: write vfio-user or vhost-user", in_quotes(word)));
}

task::Task<Attempt<Json>> change_doors(Server& server, ControlRequest request) {
  const Attempt<ServedDrive*> drive = server.find(request.drive);
  if (!drive) co_return std::unexpected(drive.error());
  const std::string name = (*drive)->name;
  const Attempt<GuestDoor> kind = guest_door(request.door);
  if (!kind) co_return std::unexpected(kind.error());
  Attempt<GuestArgs> args = parse_guest_args(request.socket);
  if (!args) co_return std::unexpected(args.error());
  args->drive = name;
  const std::string socket = args->socket;
  Attempt<void> changed;
  if (request.command == Command::kDoorAdd) {
    changed = co_await server.add_door(*kind, std::move(*args));
  } else {
    const Time until = server.env().now() + 1_ms * request.guest_timeout_ms;
    changed = co_await server.remove_door(*kind, std::move(*args), until);
  }
  if (!changed) co_return std::unexpected(changed.error());
  co_return Json{{"name", name}, {"door", request.door}, {"socket", socket}};
}

task::Task<Attempt<Json>> tell(Server& server, ControlRequest request) {
  if (request.args.empty()) co_return refuse("say what the layer is to do");
  const Attempt<ServedDrive*> drive = server.find(request.drive);
  if (!drive) co_return std::unexpected(drive.error());
  const std::string name = (*drive)->name;
  Attempt<std::string> told =
      co_await server.tell_drive(name, std::move(request.layer), std::move(request.args));
  if (!told) co_return std::unexpected(told.error());
  co_return Json{{"name", name}, {"said", std::move(*told)}};
}

// Those whose answer is the drive's name, and what is known beforehand.
task::Task<Attempt<Json>> change(Server& server, ControlRequest request) {
  const Attempt<ServedDrive*> drive = server.find(request.drive);
  if (!drive) co_return std::unexpected(drive.error());
  Json answer = {{"name", (*drive)->name}};
  const std::string name = (*drive)->name;
  Attempt<void> done;
  if (request.command == Command::kDriveRetry) {
    answer["was_open"] = (*drive)->problem.empty();
    done = co_await server.reopen_drive(name);
  } else if (request.command == Command::kDriveRemove) {
    done = co_await server.remove_drive(name);
  } else if (request.size == 0) {
    done = refuse("say how many bytes the drive is to have");
  } else {
    answer["size"] = request.size;
    done = co_await server.resize_drive(name, request.size);
  }
  if (!done) co_return std::unexpected(done.error());
  co_return answer;
}

task::Task<Attempt<Json>> set_ana(Server& server, ControlRequest request) {
  const Attempt<void> done =
      co_await server.set_ana_state(request.nqn, request.group, request.state);
  if (!done) co_return std::unexpected(done.error());
  co_return Json::object();
}

}  // namespace

Json health_of(const Server& server, const ServedDrive& drive) {
  Json json = {{"name", drive.name}};
  json.update(health_json(server.health(drive)));
  return json;
}

task::Task<Attempt<Json>> execute_for_drive(Server& server, ControlRequest request) {
  switch (request.command) {
    case Command::kDriveAdd:
      return add(server, std::move(request));
    case Command::kDriveEdit:
      return edit(server, std::move(request));
    case Command::kDriveTell:
      return tell(server, std::move(request));
    case Command::kDriveMove:
      return move(server, std::move(request));
    case Command::kDriveAna:
      return set_ana(server, std::move(request));
    case Command::kDoorAdd:
    case Command::kDoorRemove:
      return change_doors(server, std::move(request));
    case Command::kDriveRemove:
    case Command::kDriveResize:
    case Command::kDriveRetry:
      return change(server, std::move(request));
    default:
      return list(server, std::move(request));
  }
}

}  // namespace cairn::server
