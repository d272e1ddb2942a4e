// SPDX-License-Identifier: Apache-2.0
// Controller: one host's association with a subsystem, its queues, and its life from the admin
// queue's Connect until the last queue is gone. On the control core.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "env/env.h"
#include "nvme/controller/attachment.h"
#include "nvme/controller/controller_kind.h"
#include "nvme/controller/error_log.h"
#include "nvme/controller/events.h"
#include "nvme/controller/features.h"
#include "nvme/controller/properties.h"
#include "nvme/controller/queue_auth.h"
#include "nvme/controller/registry.h"
#include "nvme/format/limits.h"
#include "nvme/reservation/reservation_notices.h"
#include "task/gate.h"
#include "task/task.h"
#include "task/timer.h"

namespace cairn::nvme {

class Subsystem;

class Controller {
 public:
  struct Options {
    uint16_t id = 0;
    ControllerKind kind = ControllerKind::kIo;
    std::string host_nqn;
    HostId host{};
    env::Address local;
    env::Address peer;
    uint32_t keep_alive_ms = 0;
    uint16_t queues_max = 1;
    uint16_t queue_entries_max = 128;
    uint16_t vectors = 1;  // kPci: interrupt vectors
    uint64_t era = 0;      // of the subsystem, as ToldIncarnation's
  };
  struct Queue {
    Queue(CoreId on, QueueLink& to, bool alone) : core(on), link(to), may_disconnect(alone) {}
    CoreId core;
    QueueLink& link;
    bool may_disconnect;
    std::unique_ptr<QueueAuth> auth;  // null: it need not authenticate
    task::Gate uses;                  // calls on the link
  };
  Controller(env::Env& env, Subsystem& subsystem, const Options& options);
  Controller(const Controller&) = delete;
  Controller& operator=(const Controller&) = delete;

  Subsystem& subsystem() { return subsystem_; }
  uint16_t id() const { return options_.id; }
  uint64_t era() const { return options_.era; }
  // Who it is for, when that was not known before it was made.
  void set_host(const HostId& host) { features.set_default_host(host); }
  ControllerKind kind() const { return options_.kind; }
  bool is_discovery() const { return kind() == ControllerKind::kDiscovery; }
  // It has an attachment.
  bool is_pci() const { return kind() == ControllerKind::kPci; }
  const std::string& host_nqn() const { return options_.host_nqn; }
  const HostId& host() const { return features.host(); }
  const env::Address& local() const { return options_.local; }
  const env::Address& peer() const { return options_.peer; }

  Properties properties;
  Features features;
  Events events;
  ErrorLog errors;
  std::set<uint32_t> changed_namespaces;  // since page 04h was read
  ReservationNotices notices;
  uint8_t aborts_in_flight = 0;
  std::unique_ptr<Attachment> attachment;  // of kPci only

  // What the host offered to be told of, as bits of OAES.
  static uint32_t events_offered(ControllerKind kind);

  // Queues. add_queue: the id is free.
  bool has_queue(uint16_t id) const { return queues_.contains(id); }
  bool has_io_queues() const;
  size_t queue_count() const { return queues_.size(); }
  void add_queue(uint16_t id, CoreId core, QueueLink& link, bool may_disconnect);
  // Whether the host said that it may end this queue alone.
  bool may_disconnect(uint16_t id) const;
  // Takes the queue out and waits until nobody uses its link. True: it was the controller's last,
  // and the caller ends the controller.
  task::Task<bool> remove_queue(uint16_t id, QueueLink& link);
  // Takes an I/O queue out and waits until nobody uses its link. The admin queue stays.
  task::Task<void> remove_io_queue(uint16_t id);
  // Whether commands of this queue are executed: it has authenticated, or need not.
  bool is_open(uint16_t id) const;
  // Whether there is a key for it.
  bool may_authenticate(uint16_t id) const;
  void set_auth(uint16_t id, std::unique_ptr<QueueAuth> auth);
  // While held, a queue that leaves waits, and stays as it is. Null: it is not there, or leaving.
  Queue* hold(uint16_t id);
  static void release(Queue& queue) { queue.uses.leave(); }
  // Lets the core of a held queue know whether its commands may be executed.
  task::Task<void> open_queue(Queue& queue, bool open);
  // Ends the connection of the queue with this authentication soon, if it is still there.
  void disconnect_queue(const QueueAuth& auth, const char* why);
  // Asks the queue's transport to stop a command. False: there is no such queue or command.
  task::Task<bool> abort(uint16_t queue_id, uint16_t cid);

  // Asks every queue to stop its commands on a namespace, and waits until they have ended.
  task::Task<void> abort_namespace(uint32_t nsid);

  // Starts the timer anew, with the value the feature has now.
  void restart_keep_alive();
  // A command came on the admin queue.
  void note_traffic() { traffic_ = true; }

  // CC.EN was cleared: I/O queues are disconnected, events forgotten, features back at defaults.
  void reset();
  // The same of a controller that is attached; its transport has ended every command. Done when
  // nobody uses the links of its I/O queues any more.
  task::Task<void> reset_attached();
  // Disconnects every queue. The controller stays until their transports have said so.
  void end(const char* why);
  bool is_ending() const { return ending_; }

  void raise(EventKind kind);

  // Holds the controller while one of its commands runs.
  task::Gate gate;

 private:
  struct KeepAliveTimer : task::Timer {
    using Timer::Timer;
    Controller* self = nullptr;
  };
  void forget();
  static void on_keep_alive(task::Timer& timer);
  task::Task<void> check_keep_alive();
  task::Task<void> disconnect(Queue& queue, const char* why);
  task::Task<void> abort_namespace_of(Queue& queue, uint32_t nsid);
  task::Task<bool> take_traffic(Queue& queue);
  Duration keep_alive_limit() const;

  env::Env& env_;
  Subsystem& subsystem_;
  Options options_;
  std::map<uint16_t, std::unique_ptr<Queue>> queues_;
  size_t leaving_ = 0;  // queues taken out whose link is still in use
  KeepAliveTimer timer_;
  bool traffic_ = false;
  bool ending_ = false;
};

}  // namespace cairn::nvme
