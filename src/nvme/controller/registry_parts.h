// SPDX-License-Identifier: Apache-2.0
// What the registry is made of: a class for each of its jobs. Each knows only those before it that
// it is given. All live on the control core.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/units.h"
#include "env/env.h"
#include "nvme/auth/auth_limiter.h"
#include "nvme/auth/tls_policy.h"
#include "nvme/controller/answer.h"
#include "nvme/controller/controller.h"
#include "nvme/controller/log_pages.h"
#include "nvme/controller/queue_auth.h"
#include "nvme/controller/registry.h"
#include "nvme/controller/subsystem.h"
#include "nvme/format/command_format.h"
#include "nvme/format/feature_format.h"
#include "task/deadline.h"
#include "task/sync.h"
#include "task/task.h"

namespace cairn::nvme {

// What one box serves: its subsystems, the discovery service and the ports.
class SubsystemTable {
 public:
  using Map = std::map<std::string, std::unique_ptr<Subsystem>, std::less<>>;

  explicit SubsystemTable(env::Env& env);

  env::Env& env() { return env_; }
  const Map& all() const { return subsystems_; }
  Subsystem& discovery() { return discovery_; }
  // Null: no such subsystem; the discovery service has its own name.
  Subsystem* find(std::string_view nqn) const;

  // kExists, kInvalid. Hosts that may see it hear of it.
  Result<void> add(const SubsystemOptions& options, DriveFailureHook hook);
  // Out of the table; hosts hear of it. Null: there is none. The caller closes it.
  std::unique_ptr<Subsystem> take(std::string_view nqn);
  // The same of any, when the box closes and nobody needs to hear.
  std::unique_ptr<Subsystem> take_any();
  // Registry::add_namespace, one at a time.
  task::Task<Result<uint32_t>> add_namespace(std::string nqn, NamespaceOptions options);

  void add_port(const PortOptions& options);
  const std::vector<PortOptions>& ports() const { return ports_; }

  // The discovery log of some hosts changed: those that may see `subsystem`, or all.
  void discovery_changed(const Subsystem* subsystem = nullptr);
  // What discovery tells this controller's host.
  DiscoveryFacts discovery_for(const Controller& controller) const;

 private:
  // Whether another namespace of this box has one of these ids, or is on this file.
  Result<void> check_unused(const NamespaceOptions& options) const;

  env::Env& env_;
  Map subsystems_;
  Subsystem discovery_;
  std::vector<PortOptions> ports_;
  uint64_t generation_ = 1;  // GENCTR
};

// Hosts that failed to prove who they are, at TLS or in authentication. The more often one fails,
// the longer its next attempt waits; and somebody is told.
class Strangers {
 public:
  explicit Strangers(env::Env& env) : env_(env) {}

  // Null: nobody is told.
  void on_failure(AuthenticationHook hook) { hook_ = std::move(hook); }
  void note(const AuthenticationFailure& failure) const {
    if (hook_) hook_(failure);
  }

  void failed(const AuthLimiter::Who& who) { limiter_.failed(who, env_.now()); }
  void succeeded(const AuthLimiter::Who& who) { limiter_.succeeded(who); }
  // Waits until an attempt may be answered. kLimit: that is too late for it, which was noted;
  // kCancelled, kTimedOut: by the token.
  task::Task<Result<void>> take_turn(AuthenticationFailure who, Duration wait_max,
                                     task::CancelToken token) {
    const Result<Time> turn =
        limiter_.take_turn({.peer = who.peer, .host_nqn = who.host_nqn}, env_.now(), wait_max);
    if (!turn) {
      who.why = turn.error().what();
      note(who);
      co_return fail(turn.error());
    }
    const Result<void> slept = co_await task::sleep_until(env_, *turn, token);
    co_return slept;
  }

 private:
  env::Env& env_;
  AuthLimiter limiter_;
  AuthenticationHook hook_;
};

// Which key a TLS handshake is about, and whether Connect then names the same host and subsystem
// (NVMe/TCP 1.1, 3.6.1).
class TlsAdmission {
 public:
  TlsAdmission(SubsystemTable& table, Strangers& strangers)
      : table_(table), strangers_(strangers) {}

  // As Registry::choose_tls_key.
  task::Task<Result<TlsPsk>> choose_key(const TlsOffer& offer, task::CancelToken token);
  // How a handshake went on, unless choose_key() refused it.
  void succeeded(const env::Address& peer, std::string_view host_nqn);
  void failed(const TlsFailure& failure);
  // A host that has proven who it is may not go on as somebody else, nor elsewhere. A failure is
  // noted. True of a plain connection.
  bool agrees(const ConnectRequest& request, std::string_view nqn, std::string_view host_nqn);
  AuthTotals totals() const { return totals_; }

 private:
  Result<TlsPsk> find_key(const TlsIdentity& identity, const env::Address& local) const;

  SubsystemTable& table_;
  Strangers& strangers_;
  AuthTotals totals_;
};

// Authentication of queues (NVMe Base 2.0, 8.13): who has to, the messages in their commands, and
// what success and failure lead to.
class Authentication {
 public:
  Authentication(env::Env& env, Strangers& strangers) : env_(env), strangers_(strangers) {}

  // A queue was connected. True: it has to authenticate before anything else, and in time.
  bool demand(Controller& controller, uint16_t queue_id, const env::Address& peer);
  // An Authentication Send or Receive of a queue.
  task::Task<Answer> execute(Controller& controller, uint16_t queue_id, const Sqe& sqe,
                             MutableBytes data, task::CancelToken token);

 private:
  task::Task<Answer> take(Controller& controller, Controller::Queue& queue, Bytes message,
                          task::CancelToken token);
  task::Task<void> settle(Controller& controller, Controller::Queue& queue);
  void note_failure(Controller& controller, QueueAuth& auth, const char* why);

  env::Env& env_;
  Strangers& strangers_;
};

// A host asks for a queue (NVMe Base 2.0, 6.3 and 3.1.2), of a controller that it has or of a new
// one.
class Connector {
 public:
  Connector(SubsystemTable& table, TlsAdmission& tls, Authentication& authentication)
      : table_(table), tls_(tls), authentication_(authentication) {}

  // While loading, hosts that name an unknown subsystem are told to come again, not to give up.
  void set_loading(bool loading) { loading_ = loading; }
  ConnectReply connect(const ConnectRequest& request);

 private:
  ConnectReply accept(const ConnectRequest& request, Controller& controller);
  ConnectReply connect_admin(const ConnectRequest& request, Subsystem& subsystem,
                             std::string_view host_nqn);
  ConnectReply connect_io(const ConnectRequest& request, Subsystem& subsystem,
                          std::string_view host_nqn);

  SubsystemTable& table_;
  TlsAdmission& tls_;
  Authentication& authentication_;
  bool loading_ = false;
};

// Commands of controllers that are attached. They make and delete queues in the host's memory (NVMe
// Base 2.0, 5.4 to 5.8): judged here, carried out by the transport on its core.
class QueueCommands {
 public:
  explicit QueueCommands(env::Env& env) : env_(env) {}

  // One at a time of each controller. Other commands are refused.
  task::Task<Answer> execute(Controller& controller, const Sqe& sqe);
  // Features of interrupts were set: the transport uses them from then on.
  task::Task<void> tell_interrupts(Controller& controller, const SetFeaturesFields& fields);

 private:
  task::Task<Answer> create_completion_queue(Controller& controller, const Sqe& sqe);
  task::Task<Answer> create_submission_queue(Controller& controller, const Sqe& sqe);
  task::Task<Answer> delete_completion_queue(Controller& controller, const Sqe& sqe);
  task::Task<Answer> delete_submission_queue(Controller& controller, const Sqe& sqe);
  task::Task<Answer> use_doorbell_buffers(Controller& controller, const Sqe& sqe);

  env::Env& env_;
};

// Commands of the admin queue, and Fabrics commands of all queues after Connect (NVMe Base 2.0, 5
// and 6).
class AdminCommands {
 public:
  AdminCommands(SubsystemTable& table, Authentication& authentication)
      : table_(table),
        authentication_(authentication),
        queues_(table.env()),
        started_(table.env().now()) {}

  void on_vendor_command(VendorHook hook) { vendor_hook_ = std::move(hook); }

  // Success, or why a command is not executed, which its data has nothing to do with but its size.
  static Status judge(const Controller& controller, uint16_t queue_id, const Sqe& sqe,
                      size_t data_size);
  // May wait long, until the token ends it. The caller holds the controller's gate.
  task::Task<Answer> execute(Controller& controller, uint16_t queue_id, const Sqe& sqe,
                             MutableBytes data, task::CancelToken token);
  // The completion; a refusal is kept in the error log.
  static Cqe conclude(Controller& controller, uint16_t queue_id, const Sqe& sqe, Answer answer);

 private:
  static Answer execute_fabrics(Controller& controller, const Sqe& sqe);
  static Answer execute_fabrics_of_io(const Controller& controller, uint16_t queue_id,
                                      const Sqe& sqe);
  static Answer identify(Controller& controller, const Sqe& sqe, MutableBytes data);
  task::Task<Answer> get_log(Controller& controller, const Sqe& sqe, MutableBytes data);
  task::Task<LogBytes> make_log(Controller& controller, const Sqe& sqe);
  static Answer get_features(Controller& controller, const Sqe& sqe, MutableBytes data);
  task::Task<Answer> set_features(Controller& controller, const Sqe& sqe, Bytes data);
  static task::Task<Answer> abort(Controller& controller, const Sqe& sqe);
  task::Task<Answer> execute_vendor(Controller& controller, Bytes data);
  static task::Task<Answer> wait_for_event(Controller& controller, uint16_t cid,
                                           task::CancelToken token);

  SubsystemTable& table_;
  Authentication& authentication_;
  QueueCommands queues_;
  const Time started_;
  VendorHook vendor_hook_;
};

// All of them, and what comes between them.
class Registry::State {
 public:
  explicit State(env::Env& env)
      : table(env),
        strangers(env),
        tls(table, strangers),
        authentication(env, strangers),
        connector(table, tls, authentication),
        admin(table, authentication) {}

  SubsystemTable table;
  Strangers strangers;
  TlsAdmission tls;
  Authentication authentication;
  Connector connector;
  AdminCommands admin;
  DriveFailureHook failure_hook;
  RefusedHostHook refused_host_hook;
  task::Semaphore changes{1};  // changes of the configuration are made one at a time
};

}  // namespace cairn::nvme
