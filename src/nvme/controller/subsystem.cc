// SPDX-License-Identifier: Apache-2.0
#include "nvme/controller/subsystem.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "env/call.h"
#include "nvme/controller/every_core.h"
#include "nvme/reservation/reservation_state_format.h"

namespace cairn::nvme {

namespace {

IoTotals totals_of(const IoCounters& counters, uint32_t block_size) {
  const uint64_t sectors = block_size / 512;
  return {.reads = counters.reads,
          .writes = counters.writes,
          .sectors_read = counters.blocks_read * sectors,
          .sectors_written = counters.blocks_written * sectors,
          .media_errors = counters.media_errors};
}

struct OpenHow {
  drive::Source& source;
  uint32_t nsid;
  AnaState ana_state;
  bool read_only;
  const std::string& owner;
  const ReservationView& reservation;
  CoreId control;
  const DriveHooks* hooks;
};

Result<drive::Geometry> open_there(env::Env& there, CoreNamespaces& spaces, const OpenHow& how) {
  Result<std::unique_ptr<drive::Drive>> drive = how.source.open(there);
  if (!drive) return fail(drive.error());
  const drive::Geometry geometry = (*drive)->geometry();
  Result<CoreNamespace*> space = spaces.add(how.nsid, std::move(*drive));
  if (!space) return fail(space.error());
  (*space)->ana_state = how.ana_state;
  (*space)->read_only = how.read_only;
  (*space)->owner = how.owner;
  (*space)->reservation = how.reservation;
  (*space)->control = how.control;
  (*space)->hooks = how.hooks;
  (*space)->env = &there;
  return geometry;
}

task::Task<Result<void>> flush_there(CoreNamespaces& spaces, uint32_t nsid,
                                     task::CancelToken token) {
  CoreNamespace* space = spaces.find(nsid);
  if (space == nullptr || !space->gate.enter()) co_return Result<void>{};
  Result<void> flushed = co_await space->drive->flush(token);
  space->gate.leave();
  co_return flushed;
}

task::Task<IoTotals> remove_there(CoreNamespaces& spaces, uint32_t nsid) {
  CoreNamespace* space = spaces.find(nsid);
  if (space == nullptr) co_return IoTotals{};
  const uint32_t block_size = space->drive->geometry().block_size;
  Result<IoCounters> counters = co_await spaces.remove(nsid);
  co_return counters ? totals_of(*counters, block_size) : IoTotals{};
}

task::Task<Result<void>> resize_there(CoreNamespaces& spaces, uint32_t nsid, uint64_t bytes) {
  CoreNamespace* space = spaces.find(nsid);
  if (space == nullptr || !space->gate.enter()) co_return fail(Errc::kNotFound, "namespace");
  const uint64_t blocks = bytes / space->drive->geometry().block_size;
  Result<void> resized = co_await space->drive->resize(blocks);
  space->gate.leave();
  co_return resized;
}

IoTotals totals_there(CoreNamespaces& spaces, std::optional<uint32_t> nsid) {
  IoTotals totals;
  spaces.for_each([&](const CoreNamespace& space) {
    if (nsid && *nsid != space.nsid) return;
    totals.add(totals_of(space.counters, space.drive->geometry().block_size));
  });
  return totals;
}

}  // namespace

Subsystem::Subsystem(env::Env& env, SubsystemOptions options, Kind kind)
    : env_(env), options_(std::move(options)), kind_(kind) {
  for (uint32_t core = 0; core < env.core_count(); ++core) {
    cores_.push_back(std::make_unique<CoreNamespaces>());
  }
}

Subsystem::~Subsystem() {
  CHECK(controllers_.empty() && namespaces_.empty(), "a subsystem is closed before it goes");
}

bool Subsystem::allows(std::string_view host_nqn) const {
  return options_.allow_any_host ||
         std::ranges::find(options_.hosts, host_nqn) != options_.hosts.end();
}

void Subsystem::set_hosts(bool any, std::vector<std::string> hosts) {
  options_.allow_any_host = any;
  options_.hosts = std::move(hosts);
  for (const auto& [id, controller] : controllers_) {
    // Who attaches is no host of a fabric, and was chosen by whoever serves here.
    if (controller->is_pci() || allows(controller->host_nqn())) continue;
    controller->end("the host is not allowed any more");
  }
}

Namespace* Subsystem::find(uint32_t nsid) {
  const auto found = namespaces_.find(nsid);
  return found == namespaces_.end() ? nullptr : &found->second;
}

Namespace* Subsystem::find_for(std::string_view host_nqn, uint32_t nsid) {
  Namespace* space = find(nsid);
  return space != nullptr && space->options.is_for(host_nqn) ? space : nullptr;
}

uint64_t Subsystem::capacity_for(std::string_view host_nqn) const {
  uint64_t bytes = 0;
  for (const auto& [nsid, space] : namespaces_) {
    if (space.options.is_for(host_nqn)) bytes += space.geometry.bytes();
  }
  return bytes;
}

task::Task<Result<void>> Subsystem::add(NamespaceOptions options) {
  const uint32_t nsid = options.nsid;
  Reservations reservations;
  reservations.set_can_persist(options_.keep_reservations);
  if (options_.keep_reservations && !options.reservations.empty()) {
    Result<Reservations::Saved> saved = decode_reservations(options.reservations, options.nguid);
    if (!saved) co_return fail(saved.error());
    reservations.restore(*saved);
  }
  options.reservations.clear();
  const ReservationView view = reservations.view();
  std::unique_ptr<drive::Source> own_source;
  if (options.source == nullptr) {
    Result<std::unique_ptr<drive::Source>> made = drive::Source::make(env_, options.drive);
    if (!made) co_return fail(made.error());
    own_source = std::move(*made);
  }
  auto hooks = std::make_unique<const DriveHooks>(DriveHooks{
      .failed =
          [this, nsid](const Error& error) {
            if (failure_hook_) failure_hook_({.nqn = options_.nqn, .nsid = nsid, .error = error});
          },
      .changed = [this, nsid](drive::Incarnation now) { return drive_changed(nsid, now); }});
  const OpenHow how{.source = own_source ? *own_source : *options.source,
                    .nsid = nsid,
                    .ana_state = ana_state(options.ana_group),
                    .read_only = options.read_only,
                    .owner = options.owner,
                    .reservation = view,
                    .control = env_.core(),
                    .hooks = hooks.get()};
  auto opened = co_await on_every_core(env_, [this, &how](env::Env& there) {
    return open_there(there, on_core(there.core()), how);
  });
  for (const Result<drive::Geometry>& each : opened) {
    if (each) continue;
    co_await on_every_core(
        env_, [this, nsid](env::Env& there) { return remove_there(on_core(there.core()), nsid); });
    co_return fail(each.error());
  }
  note_ana_members(options.ana_group);
  // A drive that changed before may not have told every core.
  const ToldIncarnation told = on_core(env_.core()).find(nsid)->told;
  co_await tell_cores(nsid, told);
  const auto added = namespaces_.emplace(nsid, Namespace{.options = std::move(options),
                                                         .geometry = *opened[env_.core().value()],
                                                         .told = told,
                                                         .own_source = std::move(own_source),
                                                         .reservations = std::move(reservations),
                                                         .hooks = std::move(hooks)});
  tell_namespace_changed(added.first->second.options);
  co_return Result<void>{};
}

task::Task<void> Subsystem::tell_cores(uint32_t nsid, ToldIncarnation told) {
  co_await on_every_core(env_, [this, nsid, told](env::Env& there) {
    if (CoreNamespace* space = on_core(there.core()).find(nsid)) space->told = told;
  });
}

// Hosts that were told the former incarnation are answered nothing more: their connections end, and
// they ask again.
task::Task<void> Subsystem::drive_changed(uint32_t nsid, drive::Incarnation now) {
  Namespace* space = find(nsid);
  // Two cores may notice.
  if (space == nullptr || space->told.incarnation == now) co_return;
  space->told = {.incarnation = now, .era = ++era_};
  env_.trace().record("target.drive_changed", nsid);
  tell_namespace_changed(space->options);
  co_await tell_cores(nsid, space->told);
}

task::Task<Result<void>> Subsystem::remove(uint32_t nsid) {
  auto node = namespaces_.extract(nsid);
  if (node.empty()) co_return fail(Errc::kNotFound, "there is no such namespace");
  const std::vector<IoTotals> counted = co_await on_every_core(
      env_, [this, nsid](env::Env& there) { return remove_there(on_core(there.core()), nsid); });
  for (const IoTotals& each : counted) retired_.add(each);
  note_ana_members(node.mapped().options.ana_group);
  tell_namespace_changed(node.mapped().options);
  co_return Result<void>{};
}

task::Task<Result<void>> Subsystem::resize(uint32_t nsid, uint64_t bytes) {
  Namespace* space = find(nsid);
  if (space == nullptr) co_return fail(Errc::kNotFound, "there is no such namespace");
  if (bytes == 0 || !is_aligned(bytes, space->geometry.block_size)) {
    co_return fail(Errc::kInvalid, "the size is not a multiple of the block size");
  }
  // Here first: a drive that cannot do it, cannot do it anywhere.
  Result<void> resized = co_await resize_there(on_core(env_.core()), nsid, bytes);
  if (!resized) co_return resized;
  const auto resize_everywhere = [this, nsid](uint64_t to) {
    return on_every_core(env_, [this, nsid, to](env::Env& there) {
      return resize_there(on_core(there.core()), nsid, to);
    });
  };
  std::vector<Result<void>> done = co_await resize_everywhere(bytes);
  const auto failed = std::ranges::find_if(done, [](const auto& each) { return !each; });
  if (failed != done.end()) {
    const std::vector<Result<void>> undone = co_await resize_everywhere(space->geometry.bytes());
    for (const Result<void>& each : undone) {
      if (!each) {
        co_return fail(Errc::kIo,
                       "a core cannot resize the drive, and another not undo it: remove the "
                       "namespace and add it again");
      }
    }
    co_return *failed;
  }
  space->geometry.blocks = bytes / space->geometry.block_size;
  if (space->options.drive.size != 0) space->options.drive.size = bytes;
  tell_namespace_changed(space->options);
  co_return Result<void>{};
}

task::Task<void> Subsystem::set_ana_state(uint32_t group, AnaState state) {
  ana_groups_[group] = {.state = state, .change_count = ++ana_changes_};
  std::vector<uint32_t> members;
  for (const auto& [nsid, space] : namespaces_) {
    if (space.options.ana_group == group) members.push_back(nsid);
  }
  co_await on_every_core(env_, [this, &members, state](env::Env& there) {
    for (const uint32_t nsid : members) {
      if (CoreNamespace* space = on_core(there.core()).find(nsid)) space->ana_state = state;
    }
  });
  for (const auto& [id, controller] : controllers_) controller->raise(EventKind::kAna);
}

void Subsystem::note_ana_members(uint32_t group) {
  ana_groups_[group].change_count = ++ana_changes_;
}

AnaState Subsystem::ana_state(uint32_t group) const {
  const auto found = ana_groups_.find(group);
  return found == ana_groups_.end() ? AnaState::kOptimized : found->second.state;
}

// Through this core's drives: what they have in common with the other cores' is the medium, and it
// is the medium that has a cache.
task::Task<std::vector<DriveFailure>> Subsystem::flush(task::CancelToken token) {
  std::vector<DriveFailure> failed;
  std::vector<uint32_t> nsids;
  nsids.reserve(namespaces_.size());
  for (const auto& [nsid, space] : namespaces_) nsids.push_back(nsid);
  for (const uint32_t nsid : nsids) {
    Result<void> flushed = co_await flush_there(on_core(env_.core()), nsid, token);
    if (!flushed) failed.push_back({options_.nqn, nsid, flushed.error()});
  }
  co_return failed;
}

task::Task<IoTotals> Subsystem::totals(std::optional<uint32_t> nsid) {
  const std::vector<IoTotals> counted = co_await on_every_core(
      env_, [this, nsid](env::Env& there) { return totals_there(on_core(there.core()), nsid); });
  IoTotals totals = nsid ? IoTotals{} : retired_;
  for (const IoTotals& each : counted) totals.add(each);
  co_return totals;
}

void Subsystem::tell_namespace_changed(const NamespaceOptions& options) {
  for (const auto& [id, controller] : controllers_) {
    if (!options.is_for(controller->host_nqn())) continue;
    controller->changed_namespaces.insert(options.nsid);
    controller->raise(EventKind::kNamespaces);
  }
}

Controller* Subsystem::find_controller(uint16_t id) {
  const auto found = controllers_.find(id);
  return found == controllers_.end() ? nullptr : found->second.get();
}

// Ascending, so that a queue that comes late for a controller that ended meets no other in its
// place.
std::optional<uint16_t> Subsystem::free_controller_id() {
  if (closing_ || controllers_.size() >= options_.controllers_max) return std::nullopt;
  const uint32_t count = options_.controller_id_max - options_.controller_id_min + 1u;
  for (uint32_t i = 0; i < count; ++i) {
    last_controller_id_ = last_controller_id_ < options_.controller_id_min ||
                                  last_controller_id_ >= options_.controller_id_max
                              ? options_.controller_id_min
                              : static_cast<uint16_t>(last_controller_id_ + 1);
    if (!controllers_.contains(last_controller_id_)) return last_controller_id_;
  }
  return std::nullopt;
}

Controller* Subsystem::add_controller(Controller::Options options) {
  const std::optional<uint16_t> id = free_controller_id();
  if (!id) return nullptr;
  options.id = *id;
  options.queues_max = options_.queues_max;
  options.queue_entries_max = options_.queue_entries_max;
  options.era = era_;
  auto controller = std::make_unique<Controller>(env_, *this, options);
  return controllers_.emplace(*id, std::move(controller)).first->second.get();
}

task::Task<void> Subsystem::remove_controller(Controller& controller) {
  co_await controller.gate.close();
  controllers_.erase(controller.id());
  if (controllers_.empty()) no_controllers_.set();
}

task::Task<void> Subsystem::disconnect_all(const char* why) {
  closing_ = true;
  for (const auto& [id, controller] : controllers_) controller->end(why);
  while (!controllers_.empty()) {
    no_controllers_.reset();
    const Result<void> emptied = co_await no_controllers_.wait();
    CHECK(emptied.has_value());
  }
}

task::Task<void> Subsystem::close() {
  while (!namespaces_.empty()) {
    Result<void> removed = co_await remove(namespaces_.begin()->first);
    CHECK(removed.has_value());
  }
}

}  // namespace cairn::nvme
