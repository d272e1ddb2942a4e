// SPDX-License-Identifier: Apache-2.0
// Registry: the control side of everything one box serves. Subsystems, their namespaces and hosts,
// the controllers that hosts have connected, and the discovery service. Knows no transport.
//
// It lives on one core, the control core, and all calls are made there; transports on other cores
// come through env::call_on. What the data path needs is copied to each core (CoreNamespaces) and
// changed by messages, so that an I/O command touches nothing but its own core.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "drive/source.h"
#include "env/env.h"
#include "nvme/auth/auth_policy.h"
#include "nvme/auth/tls_policy.h"
#include "nvme/controller/answer.h"
#include "nvme/controller/core_namespace.h"
#include "nvme/controller/io_queue.h"
#include "nvme/controller/io_totals.h"
#include "nvme/format/command_format.h"
#include "nvme/format/fabrics_format.h"
#include "nvme/reservation/reservation_view.h"
#include "task/task.h"

namespace cairn::nvme {

// A connected queue as the registry reaches it. Implemented by transports; every call is made on
// the queue's own core. It lives until disconnected() has returned for it.
class QueueLink {
 public:
  // Ends the connection; `why` is a literal for the log.
  virtual void disconnect(const char* why) = 0;
  // Asks the command with this id to stop. False: there is none.
  virtual bool abort(uint16_t cid) = 0;
  // Whether a command came since the last call (keep-alive by traffic).
  virtual bool take_traffic() = 0;
  // Asks every command on this namespace to stop; done when those that were in flight have ended
  // (Preempt and Abort). A transport that leaves it out lets them finish in their own time.
  virtual task::Task<void> abort_namespace(uint32_t /*nsid*/) { co_return; }
  // Whether commands of an I/O queue may be executed: it has authenticated, or has failed to.
  virtual void set_authenticated(bool /*authenticated*/) {}

 protected:
  ~QueueLink() = default;
};

struct ConnectRequest {
  Sqe sqe;  // a Connect
  ConnectData data;
  env::Address local;  // where the host reached us
  env::Address peer;
  CoreId core;
  QueueLink* link = nullptr;
  const TlsIdentity* tls = nullptr;  // proven by the connection; null: it is plain
};

class Controller;

struct ConnectReply {
  Status status;                     // with dw0 as Connect's answer says
  uint32_t dw0 = 0;                  // ConnectResult or ConnectInvalid
  Controller* controller = nullptr;  // on success; valid until disconnected()
  uint16_t queue_id = 0;
  uint16_t queue_entries = 0;  // one-based
  bool flow_control = true;    // false: SQHD is FFFFh and C2HData may carry SUCCESS
  // I/O queues: what the queue's core executes commands with.
  CoreNamespaces* namespaces = nullptr;
  HostId host{};
  std::string host_nqn;
  uint64_t era = 0;
  bool knows_incarnations = false;
  IoLimits limits;
  bool authenticated = true;  // false: nothing but authentication until set_authenticated()
  bool discovery = false;     // it is a controller that anybody may have
  const char* refused = "";   // why, for our own log; empty: it was let in, or that was told
  bool not_listed = false;    // as RefusedHost says
};

class PciQueues;

// Who asks for a controller whose queues are in the host's memory.
struct AttachRequest {
  std::string nqn;
  std::string host_nqn;         // empty: made from the subsystem's
  HostId host{};                // all zero: made from the subsystem's name and the controller's id
  uint16_t vectors = 1;         // interrupt vectors that its completion queues may name
  CoreId core;                  // where the transport lives, with all its queues
  QueueLink* link = nullptr;    // of the admin queue; its disconnect() asks to detach
  PciQueues* queues = nullptr;  // attachment.h
};

struct Attached {
  Controller* controller = nullptr;      // until disconnected()
  CoreNamespaces* namespaces = nullptr;  // of the transport's core
  uint16_t queues_max = 0;               // I/O queues
  uint16_t queue_entries_max = 0;        // MQES, one-based
  IoLimits limits;
};

// Where reservations are kept that survive a restart (PTPL). Implemented by whoever has a place.
class ReservationStore {
 public:
  // Replaces what was stored for this namespace; durable when done. Called on the control core, one
  // at a time per subsystem. The bytes are lent until then (reservation_state_format.h). An error
  // fails the command, which then has changed nothing.
  virtual task::Task<Result<void>> save(std::string_view nqn, uint32_t nsid, Bytes state) = 0;

 protected:
  ~ReservationStore() = default;
};

struct SubsystemOptions {
  std::string nqn;
  std::string serial;  // 20 characters; empty: made from the NQN
  std::string model = "Cairn flash box";
  std::vector<std::string> hosts;  // NQNs that may connect; empty with allow_any_host
  bool allow_any_host = true;
  uint16_t queues_max = 128;         // I/O queues of one controller
  uint16_t queue_entries_max = 128;  // MQES, one-based
  uint16_t controllers_max = 1024;
  // CNTLIDs given out: boxes that serve one subsystem together take ranges that do not overlap.
  uint16_t controller_id_min = 1;
  uint16_t controller_id_max = kControllerIdMax;
  // PTPL is honoured: reservations go to `reservation_store` before their command completes.
  bool keep_reservations = false;
  ReservationStore* reservation_store = nullptr;  // outlives the subsystem
};

struct NamespaceOptions {
  uint32_t nsid = 0;  // 0: the lowest free
  std::string name;   // what people call its drive, which the registry makes nothing of
  drive::Spec drive;  // opened by the registry, unless there is a source
  // Open already, and lent until the namespace is removed; `stack` says for people what it is.
  drive::Source* source = nullptr;
  std::string stack;
  std::array<uint8_t, 16> nguid{};  // all zero: made from NQN, nsid and which drive it is
  std::array<uint8_t, 16> uuid{};   // likewise
  uint32_t ana_group = 1;
  bool read_only = false;
  // The NQN of the one host for which it is there; empty: for all that may connect.
  std::string owner;
  // What a ReservationStore was given for it before the restart; empty: nothing. Bytes that are
  // damaged or of another namespace make add_namespace fail (kCorrupt, kMismatch, kUnsupported).
  std::vector<std::byte> reservations;

  bool is_for(std::string_view host_nqn) const { return owner.empty() || owner == host_nqn; }
  std::string drive_text() const { return stack.empty() ? drive.text() : stack; }
};

// What a configuration tool shows of a namespace.
struct NamespaceInfo {
  NamespaceOptions options;
  drive::Geometry geometry;
  AnaState ana_state = AnaState::kOptimized;
  // Null: the drive is not modelled. Good until the caller waits for something.
  const drive::ModelledMedium* modelled = nullptr;
};

// The same of a host that is connected.
struct ControllerInfo {
  uint16_t id = 0;
  std::string host_nqn;
  env::Address peer;   // of its admin queue
  env::Address local;  // and where that came in
  size_t queues = 0;   // the admin queue included
  uint32_t keep_alive_ms = 0;
};

// What became of a drive's request or flush.
struct DriveFailure {
  std::string nqn;
  uint32_t nsid = 0;
  Error error;
};
using DriveFailureHook = std::function<void(const DriveFailure&)>;

// A host that failed to authenticate, or at TLS. What is known of it is for our own log: `why` says
// more than the host is told.
struct AuthenticationFailure {
  std::string nqn;       // empty: it did not come so far
  std::string host_nqn;  // as it calls itself; likewise
  env::Address peer;
  const char* why = "";
};
// A Connect that was refused, for our own log.
struct RefusedHost {
  std::string nqn;       // that it asked for
  std::string host_nqn;  // as it calls itself; empty: it gives no name
  env::Address peer;
  const char* why = "";
  bool not_listed = false;  // its name is not on the subsystem's list of hosts
};
using RefusedHostHook = std::function<void(const RefusedHost&)>;
using AuthenticationHook = std::function<void(const AuthenticationFailure&)>;

// An admin command whose meaning is ours alone (NVMe Base 2.0, figure 87: C0h and above). It brings
// data with it, and its answer is a status and dwords 0 and 1.
struct VendorCommand {
  std::string nqn;       // of the subsystem
  std::string host_nqn;  // as it was let in
  std::vector<std::byte> data;
};
using VendorHook = std::function<task::Task<Answer>(VendorCommand)>;

// Transactions of a subsystem's queues, by how they ended.
struct AuthTotals {
  uint64_t succeeded = 0;
  uint64_t failed = 0;
};

// An address that hosts are told of by discovery.
struct PortOptions {
  uint16_t port_id = 1;
  env::Address listen;                  // 0.0.0.0 and [::] mean: as the asking host reached us
  env::Address advertise;               // port 0: `listen`
  std::vector<std::string> subsystems;  // NQNs reached through it; none: all
  bool tls = false;                     // nobody is heard without

  bool serves(std::string_view nqn) const {
    return subsystems.empty() || std::ranges::find(subsystems, nqn) != subsystems.end();
  }
};

class Registry {
 public:
  // Called on the control core; namespaces are opened on every core of `env`'s world.
  explicit Registry(env::Env& env);
  ~Registry();

  // kExists, kInvalid (an NQN that is none).
  Result<void> add_subsystem(const SubsystemOptions& options);
  // Disconnects its controllers and closes its drives. kNotFound.
  task::Task<Result<void>> remove_subsystem(std::string_view nqn);
  // Opens the drive on every core, then tells every host. Gives the nsid. Errors as Source::make,
  // kExists (the nsid, or the drive's file, is in use), kNotFound (the subsystem), kLimit.
  task::Task<Result<uint32_t>> add_namespace(std::string_view nqn, const NamespaceOptions& options);
  // Waits for its commands, closes it, tells every host.
  task::Task<Result<void>> remove_namespace(std::string_view nqn, uint32_t nsid);
  task::Task<Result<void>> resize_namespace(std::string_view nqn, uint32_t nsid, uint64_t bytes);
  task::Task<Result<void>> set_ana_state(std::string_view nqn, uint32_t group, AnaState state);
  Result<void> set_hosts(std::string_view nqn, bool any, std::vector<std::string> hosts);
  // Hosts that the policy names authenticate each of their queues from now on; queues that are
  // connected stay as they are until their host authenticates again. kNotFound, kInvalid.
  Result<void> set_authentication(std::string_view nqn, AuthPolicy policy);
  // Hosts that may come through TLS, and their keys; connections stay as they are. kNotFound.
  Result<void> set_tls(std::string_view nqn, TlsKeys keys);
  // What a handshake is about: the first identity offered that is known here, with its key. After
  // failures in the same name from the same address it takes its time, offer.wait_max at most.
  // kDenied: none is, and it was noted; kLimit: too many are waiting, which is no failure and was
  // noted too; kCancelled, kTimedOut: by the token.
  task::Task<Result<TlsPsk>> choose_tls_key(const TlsOffer& offer, task::CancelToken token);
  // How a handshake went on, unless choose_tls_key() refused it.
  void tls_succeeded(const env::Address& peer, std::string_view host_nqn);
  void tls_failed(const TlsFailure& failure);
  // Handshakes of all subsystems.
  AuthTotals tls_totals() const;
  // `hook` is called here for each transaction or handshake that fails; how often is limited by
  // address.
  void on_authentication(AuthenticationHook hook);
  AuthTotals authentication_totals(std::string_view nqn) const;
  // `hook` is called here for each Connect that is refused, however many there are, unless
  // on_authentication()'s was told.
  void on_refused_host(RefusedHostHook hook);
  uint64_t refused_hosts(std::string_view nqn) const;
  // `hook` is called here when the medium of a namespace fails, not for each request when many do.
  // Set it before subsystems are added.
  void on_drive_failure(DriveFailureHook hook);
  // `hook` executes C1h, the one vendor-specific command, for hosts that came over a fabric;
  // without one there is no such command. Null ends that; what is being executed goes on.
  void on_vendor_command(VendorHook hook);
  // Everything that was written so far is durable afterwards, except where it says otherwise.
  task::Task<std::vector<DriveFailure>> flush(task::CancelToken token);

  // By name, ascending.
  std::vector<SubsystemOptions> subsystems() const;
  std::vector<NamespaceInfo> namespaces(std::string_view nqn) const;
  std::vector<ControllerInfo> controllers(std::string_view nqn) const;
  // Of one namespace. kNotFound.
  task::Task<Result<IoTotals>> totals(std::string_view nqn, uint32_t nsid) const;
  void add_port(const PortOptions& options);
  // While loading, hosts that name an unknown subsystem are told to come again, not to give up.
  void set_loading(bool loading);

  // A Connect command, of an admin or I/O queue, to a subsystem or to discovery.
  task::Task<ConnectReply> connect(const ConnectRequest& request);
  // The queue's connection is gone. When it was the admin queue, its controller goes, and with it
  // its other queues. After this the registry does not touch the link.
  task::Task<void> disconnected(Controller& controller, uint16_t queue_id, QueueLink& link);

  // Controllers without a fabric. They need not authenticate, no list of hosts concerns
  // them, they have no keep alive and refuse Fabrics commands. When their transport has ended every
  // command and reset(), it detaches by disconnected() with queue 0.
  //
  // A new one, not enabled. The request is lent for the call. kNotFound; kLimit: there is no room
  // for another.
  Result<Attached> attach(const AttachRequest& request);
  // CC.EN was set and the admin queue is in place: commands are served.
  void enable(Controller& controller);
  // CC.EN was cleared and no command is in flight. Forgets I/O queues, events and features; the
  // registry touches no link but the admin queue's afterwards.
  task::Task<void> reset(Controller& controller);
  // CC.SHN: what was acknowledged is durable when it is done, except where it says otherwise.
  task::Task<std::vector<DriveFailure>> shut_down(Controller& controller, task::CancelToken token);

  // Whether admin() would go on with a command once its data has moved, `data_size` bytes: for
  // transports that need memory for that. None: it would; else its answer.
  std::optional<Cqe> refusal(Controller& controller, const Sqe& sqe, size_t data_size,
                             uint16_t queue_id = 0);
  // A command of the admin queue, Fabrics commands after Connect included. `data` is what the host
  // sent, or the room for what it gets (the length of its data pointer). May wait long (an event
  // request): `token` ends it. Fabrics commands of an I/O queue come here too, with its id; after
  // an I/O queue's Disconnect was answered with success, its transport ends the connection.
  task::Task<Cqe> admin(Controller& controller, const Sqe& sqe, MutableBytes data,
                        task::CancelToken token, uint16_t queue_id = 0);
  // Ends the request for events with this command id, if one waits: nobody wants its answer.
  void end_event_request(Controller& controller, uint16_t cid);
  // Keeps the failure of an I/O command in the controller's error log; then its completion may say
  // so (Status::with_more). Those of admin commands are kept already.
  void log_error(Controller& controller, uint16_t queue_id, const Sqe& sqe, Status status);
  // Reservation commands of I/O queues.
  task::Task<Status> reservation(Controller& controller, const Sqe& sqe, MutableBytes data);

  // Disconnects everybody, closes every drive; then it can be destroyed.
  task::Task<void> close();

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace cairn::nvme
