// SPDX-License-Identifier: Apache-2.0
#include "view/controller.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/check.h"

namespace cairn::view {

namespace {

// Of any clock, so that sums and differences are times too: 73 years.
bool is_sound_time(Time time) {
  return time.ns > -(int64_t{1} << 61) && time.ns < int64_t{1} << 61;
}

}  // namespace

Duration Controller::Offset::note(Time sent, Time arrived) {
  const int64_t offset = arrived.ns - sent.ns;
  if (arrived >= until) {
    before = std::exchange(now, std::nullopt);
    until = arrived + kPeriod;
  }
  now = now ? std::min(*now, offset) : offset;
  return {before ? std::min(*now, *before) : *now};
}

Controller::Controller(uint64_t incarnation, std::vector<BoxSpec> boxes)
    : incarnation_(incarnation) {
  CHECK(boxes.size() <= kBoxesMax);
  for (BoxSpec& box : boxes) {
    CHECK(!find_box(box.name));
    boxes_.emplace_back(BoxId(static_cast<uint16_t>(boxes_.size())), std::move(box));
  }
}

std::optional<BoxId> Controller::find_box(std::string_view name) const {
  for (size_t i = 0; i < boxes_.size(); ++i) {
    if (boxes_[i].spec().name == name) return BoxId(static_cast<uint16_t>(i));
  }
  return std::nullopt;
}

bool Controller::is_admitted(const SessionInfo& session) const {
  if (!tickets_) return true;
  const auto found = tickets_->find(session.ticket);
  return found != tickets_->end() && found->second == session.volume;
}

Result<std::map<SessionId, Controller::Session>> Controller::check_sessions(
    const AttachRequest& request) const {
  if (request.sessions.size() > kSessionsMax) {
    return fail(Errc::kInvalid, "an agent has 1024 sessions at most");
  }
  std::map<SessionId, Session> sessions;
  for (const SessionInfo& info : request.sessions) {
    if (!is_sound_name(info.volume)) {
      return fail(Errc::kInvalid, "the name of a volume has 1 to 64 visible characters");
    }
    if (!is_admitted(info)) {
      return fail(Errc::kDenied, "only who has a volume open tells of its requests");
    }
    const std::optional<BoxId> box = find_box(info.box);
    if (!box) return fail(Errc::kNotFound, "the controller knows no box of that name");
    if (info.port >= boxes_[box->value()].spec().ports) {
      return fail(Errc::kNotFound, "the box has no such port", info.port);
    }
    if (!sessions.try_emplace(info.id, Session{.info = info, .box = *box}).second) {
      return fail(Errc::kInvalid, "two sessions of an agent have one number");
    }
  }
  return sessions;
}

Result<AttachReply> Controller::attach(const std::string& client, const AttachRequest& request,
                                       Time now) {
  advance(now);
  if (!is_sound_name(client)) {
    return fail(Errc::kInvalid, "the name of a client has 1 to 64 visible characters");
  }
  Result<std::map<SessionId, Session>> sessions = check_sessions(request);
  if (!sessions) return fail(sessions.error());
  const auto known = clients_.find(client);
  if (known == clients_.end() && clients_.size() >= kClientsMax) {
    return fail(Errc::kLimit, "1024 clients are attached already");
  }
  if (known == clients_.end() || known->second.incarnation != request.incarnation) {
    // What an older agent of that name said stays in the window as somebody else's.
    Client fresh;
    fresh.key = ClientKey(next_key_++);
    fresh.incarnation = request.incarnation;
    fresh.counts.name = client;
    clients_.insert_or_assign(client, std::move(fresh));
  }
  Client& of = clients_.at(client);
  of.sessions = std::move(*sessions);
  of.heard = now;
  AttachReply reply{.controller = incarnation_, .number = of.number, .boxes = {}, .sessions = {}};
  for (const BoxModel& box : boxes_) {
    BoxView& view = reply.boxes.emplace_back();
    view.name = box.spec().name;
    view.ports = box.spec().ports;
    for (const DriveSpec& drive : box.spec().drives) view.drives.push_back(drive.name);
  }
  for (const auto& [id, session] : of.sessions) {
    reply.sessions.push_back({.id = id, .box = session.box});
  }
  return reply;
}

Result<ReportReply> Controller::report(const std::string& client, const ReportRequest& request,
                                       Time now) {
  advance(now);
  const auto found = clients_.find(client);
  if (found == clients_.end() || request.controller != incarnation_ ||
      found->second.incarnation != request.incarnation) {
    return fail(Errc::kNotFound, "the agent is not attached");
  }
  Client& of = found->second;
  of.heard = now;
  if (request.vectors.size() > kBatchMax) {
    return fail(Errc::kInvalid, "a batch has 128 vectors at most");
  }
  if (!is_sound_time(request.sent)) return fail(Errc::kInvalid, "there is no such time");
  if (of.number != 0 && request.number == of.number) return of.reply;
  if (request.number != of.number + 1) {
    return fail(Errc::kInvalid, "a batch is missing, or was counted long ago");
  }
  of.number = request.number;
  of.reply = count(client, of, request, now);
  return of.reply;
}

ReportReply Controller::count(const std::string& name, Client& client, const ReportRequest& request,
                              Time now) {
  ReportReply reply{.number = request.number, .changed = {}};
  const Duration offset = client.offset.note(request.sent, now);
  std::map<ComponentId, uint32_t> own;
  for (const IoVector& vector : request.vectors) {
    const auto session = client.sessions.find(vector.session);
    if (session == client.sessions.end() || !is_admitted(session->second.info) ||
        !is_sound_time(vector.completed)) {
      ++reply.refused;
      continue;
    }
    BoxModel& box = boxes_[session->second.box.value()];
    const Origin origin{.key = client.key, .client = name, .session = session->second.info};
    const Time stamp = std::clamp(vector.completed + offset, Time{}, now);
    switch (box.add(origin, vector, stamp, now)) {
      case BoxModel::Verdict::kLate:
        ++reply.late;
        break;
      case BoxModel::Verdict::kRefused:
        ++reply.refused;
        break;
      case BoxModel::Verdict::kCounted:
        ++client.counts.counted;
        for (const ComponentId id :
             path_of(session->second.box, session->second.info.port, vector.drive)) {
          ++own[id];
        }
        break;
    }
  }
  for (const auto& [id, times] : own) {
    const uint64_t counter = boxes_[id.box.value()].recency(id);
    reply.changed.push_back({.id = id, .counter = counter, .own = times});
  }
  client.counts.late += reply.late;
  client.counts.refused += reply.refused;
  client.counts.dropped = request.dropped;
  return reply;
}

View Controller::view(Time now, std::string_view volume) {
  advance(now);
  View view{.controller = incarnation_,
            .at = now,
            .boxes = {},
            .components = {},
            .flows = {},
            .offenders = offenders_};
  for (const BoxModel& box : boxes_) {
    BoxView& of = view.boxes.emplace_back();
    of.name = box.spec().name;
    of.ports = box.spec().ports;
    for (const DriveSpec& drive : box.spec().drives) of.drives.push_back(drive.name);
    box.append_components(now, view.components);
    box.append_flows(now, view.flows);
  }
  if (!volume.empty()) {
    std::erase_if(view.flows, [&](const FlowView& flow) { return flow.volume != volume; });
    std::set<ComponentId> passed;
    for (const FlowView& flow : view.flows) {
      for (const ComponentId id : path_of(flow.box, flow.port, flow.drive)) passed.insert(id);
    }
    std::erase_if(view.components,
                  [&](const ComponentView& each) { return !passed.contains(each.id); });
  }
  return view;
}

SyncReply Controller::sync(const SyncRequest& request, Time now) {
  advance(now);
  SyncReply reply{.controller = incarnation_, .at = now, .components = {}};
  for (const ComponentId id : request.components) {
    const size_t box = id.box.value();
    if (box < boxes_.size() && boxes_[box].has(id)) {
      reply.components.push_back(boxes_[box].component(id, now));
    }
  }
  return reply;
}

std::vector<ClientView> Controller::directory(Time now) const {
  std::vector<ClientView> all;
  for (const auto& [name, client] : clients_) {
    ClientView view = client.counts;
    view.sessions = static_cast<uint32_t>(client.sessions.size());
    view.silent_for = now - client.heard;
    all.push_back(std::move(view));
  }
  return all;
}

std::vector<std::string> Controller::users_of(ComponentId id) const {
  std::vector<std::string> names;
  const size_t box = id.box.value();
  if (box >= boxes_.size()) return names;
  for (const auto& [name, client] : clients_) {
    if (boxes_[box].uses(client.key, id)) names.push_back(name);
  }
  return names;
}

Result<Controller::WatcherId> Controller::watch(const WatchRequest& request) {
  if (request.watches.size() > kWatchesMax) {
    return fail(Errc::kInvalid, "a client watches 1024 drives at most");
  }
  std::vector<Watched> all;
  for (const Watch& watch : request.watches) {
    if (watch.drive.kind != Kind::kDrive || watch.below == 0 || watch.below > 900) {
      return fail(Errc::kInvalid, "drives are watched, for 1 to 900 thousandths of headroom");
    }
    const size_t box = watch.drive.box.value();
    if (box >= boxes_.size() || !boxes_[box].has(watch.drive)) {
      return fail(Errc::kNotFound, "there is no such drive");
    }
    all.push_back({.watch = watch});
  }
  const WatcherId id(next_watcher_++);
  watchers_.emplace(id, std::move(all));
  look_at_watches();
  return id;
}

void Controller::look_at_watches() {
  for (auto& [id, all] : watchers_) {
    for (Watched& watched : all) {
      const ComponentId drive = watched.watch.drive;
      const BoxModel& box = boxes_[drive.box.value()];
      const uint64_t most = box.spec().drives[drive.index].profile.bytes_per_s;
      const uint64_t headroom = box.drive(drive.index).headroom;
      // Back above is further up than below, so that one near the threshold is not told for ever.
      const uint64_t threshold = most / 1000 * (watched.watch.below + (watched.is_below ? 50 : 0));
      if ((headroom < threshold) == watched.is_below) continue;
      watched.is_below = !watched.is_below;
      ++watched.crossings;
    }
  }
}

bool Controller::has_events(WatcherId id) const {
  const auto found = watchers_.find(id);
  return found != watchers_.end() && std::ranges::any_of(found->second, [](const Watched& each) {
           return each.told != each.crossings;
         });
}

std::vector<Event> Controller::take_events(WatcherId id, Time now) {
  std::vector<Event> events;
  const auto found = watchers_.find(id);
  if (found == watchers_.end()) return events;
  for (Watched& watched : found->second) {
    if (watched.told == watched.crossings) continue;
    watched.told = watched.crossings;
    const ComponentId drive = watched.watch.drive;
    events.push_back({.watch = watched.watch,
                      .is_below = watched.is_below,
                      .crossings = watched.crossings,
                      .now = boxes_[drive.box.value()].component(drive, now)});
  }
  return events;
}

void Controller::advance(Time now) {
  if (now < next_epoch_) return;
  next_epoch_ = now + kEpoch;
  for (BoxModel& box : boxes_) box.advance(now);
  look_at_watches();
  std::erase_if(clients_, [&](const auto& each) { return now - each.second.heard > kForgetAfter; });
}

std::vector<DriveUse> Controller::uses(Time now) const {
  std::vector<DriveUse> all;
  for (const BoxModel& box : boxes_) box.append_uses(now, all);
  return all;
}

const DriveView* Controller::drive(std::string_view box, uint16_t index) const {
  const std::optional<BoxId> id = find_box(box);
  if (!id || index >= boxes_[id->value()].spec().drives.size()) return nullptr;
  return &boxes_[id->value()].drive(index);
}

}  // namespace cairn::view
