// SPDX-License-Identifier: Apache-2.0
#include "server/events/conditions.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "drive/health.h"

namespace cairn::server {

using drive::Health;

namespace {

// Names have no line ends, so that no two subjects have one key.
std::string key_of(const Condition& condition) {
  return fmt::format("{}\n{}\n{}\n{}", condition.code, condition.kind, condition.subject,
                     condition.place);
}

std::string spaced(std::string code) {
  std::ranges::replace(code, '_', ' ');
  return code;
}

}  // namespace

void Conditions::follow(Known& known, Condition& now) const {
  if (!now.left) return;
  // A loss may become larger before it is mended.
  if (*now.left > known.most) {
    known.most = *now.left;
    known.pace = drive::JobPace(env_.now(), 0);
  }
  const uint64_t done = known.most - *now.left;
  known.pace.look(done, env_.now());
  if (known.most > 0 && !now.percent) now.percent = done * 100 / known.most;
  if (!now.time_left) now.time_left = known.pace.time_for(*now.left);
}

Health Conditions::health_of(const Condition& about) const {
  Health worst = Health::kOk;
  for (const KnownCondition& each : now_) {
    const bool is_same = each.now.kind == about.kind && each.now.subject == about.subject;
    if (is_same) worst = std::max(worst, each.now.health);
  }
  return worst;
}

void Conditions::tell(const Condition& about, Event::State state) const {
  if (log_ == nullptr || about.is_told) return;
  const bool is_over = state == Event::State::kOver;
  log_->tell({.severity = is_over ? Health::kOk : about.health,
              .kind = about.kind,
              .subject = about.subject,
              .health = health_of(about),
              .code = about.code,
              .state = state,
              .place = about.place,
              .what = is_over ? fmt::format("{} is over", spaced(about.code)) : about.what,
              .action = is_over ? "" : about.action});
}

void Conditions::tell_of_whole(Health before) const {
  const Health worst = this->worst();
  if (log_ == nullptr || whole_.empty() || worst == before) return;
  log_->tell({.severity = worst,
              .kind = kind_,
              .subject = whole_,
              .health = worst,
              .code = "health",
              .state = worst == Health::kOk    ? Event::State::kOver
                       : before == Health::kOk ? Event::State::kBegan
                                               : Event::State::kChanged,
              .what = worst == Health::kOk
                          ? "all is as it should be"
                          : fmt::format("{} {}: {}", now_.front().now.kind,
                                        now_.front().now.subject, now_.front().now.what),
              .action = worst == Health::kOk ? "" : now_.front().now.action});
}

const std::vector<KnownCondition>& Conditions::take_in(std::vector<Condition> all) {
  const Health before = worst();
  for (auto& [key, known] : known_) known.is_there = false;
  now_.clear();
  std::vector<KnownCondition> found;
  std::vector<std::pair<Condition, Event::State>> news;
  for (Condition& each : all) {
    const auto [at, is_new] = known_.try_emplace(
        key_of(each), Known{.last = each, .since = env_.now(), .pace = {env_.now(), 0}});
    Known& known = at->second;
    if (!is_new && known.is_there) continue;  // it was said twice
    if (is_new) news.emplace_back(each, Event::State::kBegan);
    if (!is_new && known.last.health != each.health)
      news.emplace_back(each, Event::State::kChanged);
    known.is_there = true;
    follow(known, each);
    known.last = each;
    found.push_back({std::move(each), known.since});
  }
  for (const Health health : {Health::kFailing, Health::kDegraded, Health::kOk}) {
    for (KnownCondition& each : found) {
      if (each.now.health == health) now_.push_back(std::move(each));
    }
  }
  for (const auto& [about, state] : news) tell(about, state);
  for (const auto& [key, known] : known_) {
    if (!known.is_there) tell(known.last, Event::State::kOver);
  }
  std::erase_if(known_, [](const auto& each) { return !each.second.is_there; });
  tell_of_whole(before);
  return now_;
}

void Conditions::forget() {
  known_.clear();
  now_.clear();
}

Json condition_json(env::Env& env, const KnownCondition& condition) {
  const Condition& now = condition.now;
  const Duration age = env.now() - condition.since;
  Json json = {{"health", drive::name(now.health)},
               {"code", now.code},
               {"kind", now.kind},
               {"subject", now.subject},
               {"what", now.what},
               {"since", time_text({env.wall_now().ns - age.ns})},
               {"since_s", static_cast<uint64_t>(age / 1_s)}};
  if (now.percent) json["percent"] = *now.percent;
  if (now.time_left) json["left_s"] = static_cast<uint64_t>(*now.time_left / 1_s);
  if (!now.action.empty()) json["action"] = now.action;
  return json;
}

}  // namespace cairn::server
