// SPDX-License-Identifier: Apache-2.0
#include "server/up/up.h"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <utility>

#include "base/words.h"
#include "server/arbiter/serve.h"
#include "server/control/control_server.h"
#include "server/kv/serve.h"
#include "server/monitor/monitor.h"
#include "server/open/arbiter_uri.h"
#include "server/open/store_uri.h"
#include "server/open/take_drive.h"
#include "server/serve/control_commands.h"
#include "server/serve/server.h"
#include "server/up/up_health.h"
#include "server/up/up_keeper.h"
#include "server/up/up_part.h"
#include "server/up/up_source.h"
#include "task/deadline.h"
#include "task/either.h"
#include "task/gate.h"
#include "task/sync.h"

namespace cairn::server {

namespace {

using task::Task;

// One process, so nobody waits for a leader that died for longer than it takes to start again.
constexpr Duration kElection = 1_s;
// How long a volume is held for a process that was killed, if not all of its drives fence.
constexpr Duration kLease = 20_s;
constexpr Duration kOpenLimit = 40_s;
constexpr Duration kOpenPause = 500_ms;
constexpr Duration kLeadLimit = 20_s;
constexpr size_t kLately = 4;       // events that a status has
constexpr Duration kLook = 500_ms;  // whether something changed

class Up {
 public:
  Up(env::Env& env, UpOptions& options)
      : env_(env),
        options_(options),
        folder_(*options.folder),
        events_(env, "up", options.events, options.hooks.log) {
    options_.hooks.events = &events_.log();
  }

  Task<Attempt<void>> open() {
    Attempt<void> done = co_await find_addresses();
    if (done) done = co_await open_box();
    if (done) done = co_await open_arbiter();
    if (done) done = co_await open_pool();
    if (done) done = co_await open_doors();
    if (done) done = co_await open_control();
    co_return done;
  }
  // Until somebody wants it to end, or a part of it has.
  Task<Attempt<void>> wait() {
    task::Either ended(env_.stop_token(), ending_.token());
    task::Event never;
    [[maybe_unused]] const Result<void> stopped = co_await never.wait(ended.token());
    for (const UpPart* part : {&arbiter_, &keys_}) {
      if (part->has_ended && !part->outcome) co_return part->outcome;
    }
    co_return Attempt<void>();
  }
  // Whoever uses another part ends before it.
  Task<void> close() {
    folder_.tell_ended();
    events_.tell_ending();
    if (monitor_) co_await monitor_->close();
    watching_.request();
    co_await watch_.close();
    for (std::optional<ControlServer>* each : {&control_, &usual_control_}) {
      if (*each) co_await (*each)->close();
    }
    co_await keys_.close();
    if (health_) health_->set_server(nullptr);
    if (server_) co_await server_->close();
    if (keeper_) co_await keeper_->close();
    co_await arbiter_.close();
    if (box_) co_await box_->close();
    co_await events_.close();
    options_.hooks.events = nullptr;
  }

 private:
  const UpIdentity& identity() const { return folder_.identity(); }
  std::string arbiter_path() const { return folder_.socket_path("arbiter.sock"); }
  std::string volume_text(const char* name) const {
    // Whoever had it before was this folder's process, and has ended: the lock says so.
    return fmt::format("volume:{},arbiter=unix:{},take-over=yes", name, arbiter_path());
  }
  void say(config::LogLevel level, std::string_view line) const { options_.hooks.say(level, line); }

  Task<Attempt<void>> open_box() {
    ServerOptions box;
    box.listeners.push_back({.address = *env::Address::parse(identity().box)});
    SubsystemConfig& subsystem = box.subsystems.emplace_back();
    subsystem.options.nqn = up_box_nqn(identity());
    for (const UpDrive& drive : identity().drives) {
      subsystem.namespaces.push_back(up_space(folder_, drive));
    }
    ServerHooks hooks;
    hooks.log = options_.hooks.log;
    hooks.events = &events_.log();
    box_.emplace(env_, std::move(box), ServerChanges(), std::move(hooks));
    Attempt<void> opened = co_await box_->open();
    co_return opened;
  }

  Task<Attempt<void>> open_arbiter() {
    const Attempt<StoreUri> store = StoreUri::parse("rocks:" + folder_.meta_path());
    if (!store) co_return std::unexpected(store.error());
    arbiter_options_ = {.store = *store,
                        .name = fmt::format("up-{}-{}", identity().id, options_.pid),
                        .election_ttl = kElection,
                        .lease = kLease,
                        .log = options_.hooks.log,
                        .until = arbiter_.stop.token()};
    arbiter_options_.events.shared = &events_.log();
    arbiter_options_.has_source = [this](Monitor::Source* source) {
      arbiter_source_ = source;
      if (source_) source_->set_arbiter(source);
    };
    for (const std::string& path : {arbiter_path(), options_.usual_arbiter}) {
      if (path.empty()) continue;
      Result<env::Address> at = env::Address::parse("unix:" + path);
      if (!at) co_return refuse(fmt::format("{} cannot be a socket's path", in_quotes(path)));
      arbiter_options_.listen.push_back(std::move(*at));
      options_.has_socket(path);
    }
    arbiter_options_.on_change = [this](bool is_leading) {
      if (is_leading) arbiter_.ready();
    };
    arbiter_.gate.spawn(run_arbiter());
    task::Deadline deadline(env_, env_.now() + kLeadLimit, env_.stop_token());
    const Result<void> led = co_await arbiter_.moved.wait(deadline.token());
    if (arbiter_.has_ended && !arbiter_.outcome) co_return arbiter_.outcome;
    if (led && arbiter_.is_ready) co_return Attempt<void>();
    co_return refuse(
        fmt::format("the arbiter over {} does not lead: what is said above may tell why",
                    in_quotes(folder_.meta_path())));
  }
  Task<void> run_arbiter() {
    arbiter_.ended(co_await serve_arbiter(env_, arbiter_options_));
    ending_.request();
  }

  Task<Attempt<void>> open_pool() {
    const Attempt<ArbiterUri> uri = ArbiterUri::parse("unix:" + arbiter_path());
    if (!uri) co_return std::unexpected(uri.error());
    Attempt<std::unique_ptr<arbiter::RemoteArbiter>> arbiter = make_remote_arbiter(env_, *uri);
    if (!arbiter) co_return std::unexpected(arbiter.error());
    keeper_.emplace(env_, folder_, *box_, std::move(*arbiter), options_.hooks.log);
    health_.emplace(env_, folder_, *keeper_, events_.log());
    if (options_.usual_arbiter.empty()) {
      health_->set_arbiter_option(fmt::format(" --arbiter unix:{}", arbiter_path()));
    }
    Attempt<void> begun = co_await keeper_->begin();
    if (begun) keeper_->start();
    co_return begun;
  }

  // First of all: who cannot be reached starts nothing.
  Task<Attempt<void>> find_addresses() {
    struct Wanted {
      const std::vector<UpDoor>& doors;
      std::vector<env::Address>& found;
    };
    for (const Wanted& each :
         {Wanted{options_.nbd, doors_.nbd}, Wanted{options_.nvme, nvme_},
          Wanted{options_.resp, keys_options_.resp}, Wanted{options_.http, http_}}) {
      Attempt<FreeAddresses> free = co_await free_addresses(env_, each.doors, folder_.was_killed());
      if (!free) co_return std::unexpected(free.error());
      for (const std::string& note : free->notes) say(config::LogLevel::kWarn, note);
      each.found = std::move(free->at);
    }
    co_return Attempt<void>();
  }

  Task<Attempt<void>> open_doors() {
    for (const env::Address& at : doors_.nbd) {
      if (at.family == env::Address::Family::kLocal) options_.has_socket(at.path);
    }
    keys_options_.keyspace.stack = volume_text(kUpKeyVolume);
    keys_options_.door.version = options_.version;
    keys_options_.log = options_.hooks.log;
    keys_options_.events.shared = &events_.log();
    keys_options_.has_source = [this](Monitor::Source* source) {
      keys_source_ = source;
      if (source_) source_->set_keys(source);
    };
    keys_options_.until = keys_.stop.token();
    keys_options_.ready = [this](const std::vector<env::Address>& at) {
      resp_at_ = at;
      keys_.ready();
    };
    opening_until_ = env_.now() + kOpenLimit;
    keys_.gate.spawn(run_keys());
    Attempt<void> opened = co_await open_server();
    if (!opened) co_return opened;
    const Result<void> moved = co_await keys_.moved.wait(env_.stop_token());
    if (!moved) co_return refuse("it was told to end before it was ready");
    co_return keys_.is_ready ? Attempt<void>() : keys_.outcome;
  }

  // A process that was killed holds volumes until its lease ends, if a drive is away that does not
  // fence it.
  Task<bool> may_retry(Problem why) {
    if (env_.now() >= opening_until_ || ending_.requested()) co_return false;
    if (!has_told_) {
      say(config::LogLevel::kWarn,
          fmt::format("it is tried again for {} s: {}", kOpenLimit / 1_s, why.text));
    }
    has_told_ = true;
    const Result<void> slept = co_await task::sleep_for(env_, kOpenPause, env_.stop_token());
    co_return slept.has_value();
  }

  Task<Attempt<void>> open_server() {
    ServerOptions options;
    for (const env::Address& at : nvme_) options.listeners.push_back({.address = at});
    SubsystemConfig& subsystem = options.subsystems.emplace_back();
    subsystem.options.nqn = fmt::format("nqn.2026-11.io.cairn:up-{}", identity().id);
    nvme::NamespaceOptions space{.nsid = 1, .name = kUpVolume};
    const Attempt<void> taken = take_drive(volume_text(kUpVolume), LookUp::kWhenOpened, space);
    if (!taken) co_return taken;
    subsystem.namespaces.push_back(std::move(space));
    for (;;) {
      server_.emplace(env_, options, options_.changes, options_.hooks, doors_);
      Attempt<void> opened = co_await server_->open();
      if (opened) {
        health_->set_server(&*server_);
        co_return opened;
      }
      co_await server_->close();
      server_.reset();
      const bool again = co_await may_retry(opened.error());
      if (!again) co_return opened;
    }
  }
  Task<void> run_keys() {
    Attempt<void> outcome;
    for (bool again = true; again;) {
      outcome = co_await serve_keys(env_, keys_options_);
      again = !outcome && !keys_.is_ready && !keys_.stop.requested();
      if (again) again = co_await may_retry(outcome.error());
    }
    health_->set_serves_keys(false);
    keys_.ended(std::move(outcome));
    if (keys_.is_ready) ending_.request();
  }

  Task<Attempt<void>> open_control() {
    health_->set_serves_keys(true);
    const ControlServer::Execute execute = [this](ControlRequest request) {
      return answer(std::move(request));
    };
    control_.emplace(env_, execute);
    const std::string path = folder_.socket_path("control.sock");
    options_.has_socket(path);
    Attempt<void> listening = co_await listen_at(env_, *control_, path);
    if (!listening) co_return listening;
    if (!options_.usual_control.empty()) {
      usual_control_.emplace(env_, execute);
      options_.has_socket(options_.usual_control);
      listening = co_await listen_at(env_, *usual_control_, options_.usual_control);
      if (!listening) co_return listening;
    }
    listening = co_await open_monitor();
    if (!listening) co_return listening;
    events_.tell_begun();
    watch_.spawn(look_always());
    const Json told = tell();
    const Attempt<void> kept = folder_.tell_running({.control = path, .told = told});
    if (kept) options_.ready(told);
    co_return kept;
  }
  Task<Attempt<void>> open_monitor() {
    source_.emplace(env_, *health_, [this] { return status(); });
    source_->set_server(&*server_);
    source_->set_arbiter(arbiter_source_);
    source_->set_keys(keys_source_);
    monitor_.emplace(env_, *source_, &events_.log(), options_.http_token);
    for (const env::Address& at : http_) {
      if (at.family == env::Address::Family::kLocal) options_.has_socket(at.path);
    }
    Attempt<std::vector<env::Address>> listening = co_await monitor_->listen(http_);
    if (!listening) co_return std::unexpected(listening.error());
    http_ = std::move(*listening);
    co_return Attempt<void>();
  }
  Json status() {
    Json json = {{"schema_version", 1}};
    json.update(health_->json());
    json["uptime_s"] = server_->uptime().seconds();
    json["at"] = tell();
    json["lately"] = events_json(events_.log(), events_.log().newest(kLately))["events"];
    return json;
  }
  Task<void> look_always() {
    while (!watching_.requested()) {
      health_->look();
      [[maybe_unused]] const Result<void> slept =
          co_await task::sleep_for(env_, kLook, watching_.token());
    }
  }
  Json tell() const {
    Json told = {{"pid", options_.pid},
                 {"folder", folder_.path()},
                 {"drive", kUpVolume},
                 {"nqn", server_->options().subsystems.front().options.nqn},
                 {"nbd", Json::array()},
                 {"nvme", Json::array()},
                 {"resp", Json::array()},
                 {"http", Json::array()},
                 {"box", keeper_->uri_of(identity().drives.front())},
                 {"arbiter", "unix:" + arbiter_path()}};
    for (const env::Address& at : server_->doors().nbd()) told["nbd"].push_back(at.text());
    for (const env::Address& at : server_->nvme().listening()) told["nvme"].push_back(at.text());
    for (const env::Address& at : resp_at_) told["resp"].push_back(at.text());
    for (const env::Address& at : http_) told["http"].push_back(at.text());
    return told;
  }
  Task<Attempt<Json>> answer(ControlRequest request) {
    using Command = ControlRequest::Command;
    if (request.command == Command::kUpStatus) co_return status();
    if (request.command == Command::kEvents) {
      Attempt<Json> told = co_await answer_events(env_, events_.log(), std::move(request));
      co_return told;
    }
    if (request.command == Command::kUpDown) {
      ending_.request();
      co_return Json::object();
    }
    if (request.command == Command::kUpFail) {
      const Attempt<void> failed = co_await keeper_->fail_drive(std::move(request.drive));
      if (!failed) co_return std::unexpected(failed.error());
      co_return Json::object();
    }
    Attempt<Json> done = co_await execute(*server_, std::move(request));
    co_return done;
  }

  env::Env& env_;
  UpOptions& options_;
  UpFolder& folder_;
  ProcessEvents events_;
  DoorOptions doors_;
  std::vector<env::Address> nvme_;
  std::vector<env::Address> http_;
  ArbiterServeOptions arbiter_options_;
  KvServeOptions keys_options_;
  std::optional<Server> box_;
  UpPart arbiter_;
  std::optional<UpKeeper> keeper_;
  std::optional<Server> server_;
  UpPart keys_;
  std::optional<ControlServer> control_;
  std::optional<ControlServer> usual_control_;
  Monitor::Source* arbiter_source_ = nullptr;
  Monitor::Source* keys_source_ = nullptr;
  std::optional<UpSource> source_;
  std::optional<Monitor> monitor_;
  task::Gate watch_;
  task::CancelSource watching_;
  std::optional<UpHealth> health_;  // once there is a keeper
  std::vector<env::Address> resp_at_;
  Time opening_until_;
  bool has_told_ = false;
  task::CancelSource ending_;
};

}  // namespace

Task<Attempt<void>> serve_up(env::Env& env, UpOptions& options) {
  Up up(env, options);
  Attempt<void> outcome = co_await up.open();
  if (outcome) outcome = co_await up.wait();
  co_await up.close();
  co_return outcome;
}

}  // namespace cairn::server
