// SPDX-License-Identifier: Apache-2.0
// What the registry is made of, for the files that implement it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "nvme/auth/auth_limiter.h"
#include "nvme/controller/answer.h"
#include "nvme/controller/controller.h"
#include "nvme/controller/log_pages.h"
#include "nvme/controller/registry.h"
#include "nvme/controller/subsystem.h"
#include "task/sync.h"

namespace cairn::nvme {

class Registry::State {
 public:
  explicit State(env::Env& env);

  // Null: no such subsystem; the discovery service has its own name.
  Subsystem* find(std::string_view nqn);
  // The discovery log of some hosts changed: those that may see `subsystem`, or all.
  void discovery_changed(const Subsystem* subsystem = nullptr);
  // Whether another namespace of this box has one of these ids, or is on this file.
  Result<void> check_unused(const NamespaceOptions& options);

  // Registry::add_namespace, in its turn.
  task::Task<Result<uint32_t>> add_namespace(std::string nqn, NamespaceOptions options);

  // connect.cc
  ConnectReply connect(const ConnectRequest& request);

  // tls_admission.cc
  Result<TlsPsk> find_tls_key(const TlsIdentity& identity, const env::Address& local);
  bool agrees_with_tls(const ConnectRequest& request, std::string_view nqn,
                       std::string_view host_nqn);

  // admin.cc
  // Success, or why a command is not executed, which its data has nothing to do with but its size.
  static Status judge(const Controller& controller, uint16_t queue_id, const Sqe& sqe,
                      size_t data_size);
  task::Task<Answer> execute(Controller& controller, uint16_t queue_id, const Sqe& sqe,
                             MutableBytes data, task::CancelToken token);
  // The completion; a refusal is kept in the error log.
  static Cqe conclude(Controller& controller, uint16_t queue_id, const Sqe& sqe, Answer answer);

  // attach.cc
  Result<Attached> attach(const AttachRequest& request);

  // authentication.cc
  bool demand_authentication(Controller& controller, uint16_t queue_id, const env::Address& peer);
  // Tells whoever listens that somebody was not let in.
  void note_stranger(const AuthenticationFailure& failure) const {
    if (authentication_hook) authentication_hook(failure);
  }

  env::Env& env;
  Time started;
  std::map<std::string, std::unique_ptr<Subsystem>, std::less<>> subsystems;
  Subsystem discovery;
  std::vector<PortOptions> ports;
  uint64_t generation = 1;  // GENCTR
  bool loading = false;
  DriveFailureHook failure_hook;
  AuthenticationHook authentication_hook;
  RefusedHostHook refused_host_hook;
  VendorHook vendor_hook;
  AuthLimiter limiter;
  AuthTotals tls_totals;
  task::Semaphore changes{1};  // changes of the configuration are made one at a time

 private:
  ConnectReply accept(const ConnectRequest& request, Controller& controller);
  ConnectReply connect_admin(const ConnectRequest& request, Subsystem& subsystem,
                             std::string_view host_nqn);
  ConnectReply connect_io(const ConnectRequest& request, Subsystem& subsystem,
                          std::string_view host_nqn);
  task::Task<Answer> authenticate(Controller& controller, uint16_t queue_id, const Sqe& sqe,
                                  MutableBytes data, task::CancelToken token);
  task::Task<Answer> take_authentication(Controller& controller, Controller::Queue& queue,
                                         Bytes message, task::CancelToken token);
  // Waits until an attempt may be answered. kLimit: that is too late for it.
  task::Task<Result<void>> take_turn(Controller& controller, const QueueAuth& auth,
                                     Duration wait_max, task::CancelToken token);
  task::Task<void> settle(Controller& controller, Controller::Queue& queue);
  void note_failure(Controller& controller, QueueAuth& auth, const char* why);
  Answer execute_fabrics(Controller& controller, const Sqe& sqe);
  Answer execute_fabrics_of_io(const Controller& controller, uint16_t queue_id, const Sqe& sqe);
  Answer identify(Controller& controller, const Sqe& sqe, MutableBytes data);
  task::Task<Answer> get_log(Controller& controller, const Sqe& sqe, MutableBytes data);
  task::Task<LogBytes> make_log(Controller& controller, const Sqe& sqe);
  LogBytes make_discovery_log(Controller& controller);
  Answer get_features(Controller& controller, const Sqe& sqe, MutableBytes data);
  task::Task<Answer> set_features(Controller& controller, const Sqe& sqe, Bytes data);
  task::Task<Answer> abort(Controller& controller, const Sqe& sqe);
  task::Task<Answer> execute_vendor(Controller& controller, Bytes data);
  // admin_queues.cc: commands that only a controller has that is attached.
  task::Task<Answer> execute_queues(Controller& controller, const Sqe& sqe);
  task::Task<Answer> create_completion_queue(Controller& controller, const Sqe& sqe);
  task::Task<Answer> create_submission_queue(Controller& controller, const Sqe& sqe);
  task::Task<Answer> delete_completion_queue(Controller& controller, const Sqe& sqe);
  task::Task<Answer> delete_submission_queue(Controller& controller, const Sqe& sqe);
  task::Task<Answer> use_doorbell_buffers(Controller& controller, const Sqe& sqe);
  task::Task<void> tell_interrupts(Controller& controller, const SetFeaturesFields& fields);
  task::Task<Answer> wait_for_event(Controller& controller, uint16_t cid, task::CancelToken token);
};

}  // namespace cairn::nvme
