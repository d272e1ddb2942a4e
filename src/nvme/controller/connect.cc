// SPDX-License-Identifier: Apache-2.0
// Connect: a host asks for a queue (NVMe Base 2.0, 6.3 and 3.1.2).
#include <algorithm>

#include "nvme/controller/registry_parts.h"
#include "nvme/format/discovery_format.h"

namespace cairn::nvme {

namespace {

ConnectReply refuse(Status status, const char* why, ConnectInvalid where = {}) {
  ConnectReply reply;
  reply.status = status;
  reply.dw0 = where.encode();
  reply.refused = why;
  return reply;
}

// A wrong field of the command's entry, or of its data, told by where it is.
ConnectReply refuse_entry(size_t offset, const char* why) {
  return refuse(final_status(StatusCode::kConnectInvalidParameters), why,
                {.offset = static_cast<uint16_t>(offset)});
}
ConnectReply refuse_data(size_t offset, const char* why) {
  return refuse(final_status(StatusCode::kConnectInvalidParameters), why,
                {.offset = static_cast<uint16_t>(offset), .in_data = true});
}

constexpr auto kQueueSize = "it asks for a queue of a size that there is not";
constexpr auto kQueueId = "it asks for a queue that it may not have";
constexpr auto kOtherHost = "it asks for a queue of another host's controller";

bool is_size_valid(const ConnectCommand& command, uint16_t entries_max) {
  return command.queue_size != 0 && command.queue_size < entries_max;
}

}  // namespace

ConnectReply Connector::accept(const ConnectRequest& request, Controller& controller) {
  const auto command = fabrics_cast<ConnectCommand>(request.sqe);
  const bool alone = (command.attributes & ConnectAttributes::kDeleteIoQueues) != 0;
  controller.add_queue(command.queue_id, request.core, *request.link, alone);
  ConnectReply reply;
  reply.authenticated = !authentication_.demand(controller, command.queue_id, request.peer);
  reply.dw0 = ConnectResult{.controller_id = controller.id(), .authenticate = !reply.authenticated}
                  .encode();
  reply.controller = &controller;
  reply.queue_id = command.queue_id;
  reply.queue_entries = static_cast<uint16_t>(command.queue_size + 1);
  reply.flow_control = (command.attributes & ConnectAttributes::kNoFlowControl) == 0;
  reply.host = controller.host();
  reply.discovery = controller.is_discovery();
  return reply;
}

ConnectReply Connector::connect(const ConnectRequest& request) {
  const auto command = fabrics_cast<ConnectCommand>(request.sqe);
  if (command.record_format != 0) {
    return refuse(final_status(StatusCode::kConnectIncompatibleFormat),
                  "its Connect is of another format");
  }
  const Result<std::string_view> nqn = request.data.subsystem_nqn.get();
  if (!nqn) {
    return refuse_data(offsetof(ConnectData, subsystem_nqn), "it names no subsystem");
  }
  // Hosts that give no name (SPDK's tools, unless told otherwise) are "", which is on no list.
  const Result<std::string_view> named = request.data.host_nqn.get();
  if (!named && !request.data.host_nqn.is_empty()) {
    return refuse_data(offsetof(ConnectData, host_nqn), "its host NQN does not end");
  }
  const std::string_view host_nqn = named.value_or("");
  if (!tls_.agrees(request, *nqn, host_nqn)) {
    return refuse(final_status(StatusCode::kConnectInvalidHost), "");
  }
  Subsystem* subsystem = *nqn == kDiscoveryNqn ? &table_.discovery() : table_.find(*nqn);
  const PortOptions* port = find_port(request.local, table_.ports());
  if (subsystem != nullptr && !subsystem->is_discovery() && port != nullptr &&
      !port->serves(*nqn)) {
    subsystem = nullptr;  // not known here
  }
  if (subsystem == nullptr) {
    // DNR makes hosts forget us for good; they should come again when we have read what we serve.
    if (loading_)
      return refuse(StatusCode::kConnectControllerBusy, "drives are still being opened");
    return refuse_data(offsetof(ConnectData, subsystem_nqn), "no such subsystem is served here");
  }
  if (!subsystem->allows(host_nqn)) {
    ++subsystem->refused_hosts;
    ConnectReply reply =
        refuse(final_status(StatusCode::kConnectInvalidHost), "it is not on the list of hosts");
    reply.not_listed = true;
    return reply;
  }
  return command.queue_id == 0 ? connect_admin(request, *subsystem, host_nqn)
                               : connect_io(request, *subsystem, host_nqn);
}

ConnectReply Connector::connect_admin(const ConnectRequest& request, Subsystem& subsystem,
                                      std::string_view host_nqn) {
  const auto command = fabrics_cast<ConnectCommand>(request.sqe);
  const uint16_t entries_max = std::max(subsystem.options().queue_entries_max, kAdminQueueSizeMin);
  if (!is_size_valid(command, entries_max)) {
    return refuse_entry(offsetof(ConnectCommand, queue_size), kQueueSize);
  }
  if (request.data.controller_id != kAnyController) {
    return refuse_data(offsetof(ConnectData, controller_id), "it asks for a certain controller");
  }
  Controller* controller = subsystem.add_controller(
      {.kind = subsystem.is_discovery() ? ControllerKind::kDiscovery : ControllerKind::kIo,
       .host_nqn = std::string(host_nqn),
       .host = request.data.host_id,
       .local = request.local,
       .peer = request.peer,
       .keep_alive_ms = command.keep_alive_ms});
  if (controller == nullptr) {
    return refuse(StatusCode::kConnectControllerBusy,
                  "the subsystem has as many controllers as it may have");
  }
  return accept(request, *controller);
}

ConnectReply Connector::connect_io(const ConnectRequest& request, Subsystem& subsystem,
                                   std::string_view host_nqn) {
  const auto command = fabrics_cast<ConnectCommand>(request.sqe);
  if (subsystem.is_discovery()) return refuse_entry(offsetof(ConnectCommand, queue_id), kQueueId);
  Controller* controller = subsystem.find_controller(request.data.controller_id);
  if (controller == nullptr || controller->is_ending() || controller->is_pci()) {
    // The host's controller ended a moment ago, perhaps. It may try again with a new one.
    return refuse(StatusCode::kConnectInvalidParameters, "its controller has ended",
                  {.offset = offsetof(ConnectData, controller_id), .in_data = true});
  }
  if (controller->host_nqn() != host_nqn) {
    return refuse_data(offsetof(ConnectData, host_nqn), kOtherHost);
  }
  if (controller->host() != request.data.host_id) {
    return refuse_data(offsetof(ConnectData, host_id), kOtherHost);
  }
  if (!controller->properties.is_ready() || controller->properties.is_shut_down()) {
    return refuse(StatusCode::kCommandSequenceError, "its controller is not enabled");
  }
  if (command.queue_id > controller->features.queues_granted()) {
    return refuse_entry(offsetof(ConnectCommand, queue_id), kQueueId);
  }
  if (!is_size_valid(command, subsystem.options().queue_entries_max)) {
    return refuse_entry(offsetof(ConnectCommand, queue_size), kQueueSize);
  }
  if (controller->has_queue(command.queue_id)) {
    return refuse(final_status(StatusCode::kCommandSequenceError), "it has this queue already");
  }
  ConnectReply reply = accept(request, *controller);
  reply.namespaces = &subsystem.on_core(request.core);
  reply.host_nqn = controller->host_nqn();
  reply.era = controller->era();
  reply.knows_incarnations = controller->features.knows_incarnations();
  return reply;
}

}  // namespace cairn::nvme
