// SPDX-License-Identifier: Apache-2.0
#include "stack/health_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "task/deadline.h"

namespace cairn::drive {

namespace {

// A concern with the same code about the same drive is the same one, whatever its words.
bool is_same(const HealthReason& a, const HealthReason& b) {
  return a.code == b.code && a.path == b.path && a.below_path == b.below_path;
}

const HealthReason* find_same(const HealthReason& one, const std::vector<HealthReason>& among) {
  const auto at = std::ranges::find_if(among, [&](const auto& each) { return is_same(each, one); });
  return at == among.end() ? nullptr : &*at;
}

// "mirror (layer 0), leg 0.1 nvme-tcp://...".
std::string place_of(const HealthReason& reason) {
  std::string text;
  if (!reason.layer.empty()) text = fmt::format("{} (layer {})", reason.layer, reason.path);
  if (!reason.below.empty()) {
    text += fmt::format(", drive {} (layer {})", reason.below, reason.below_path);
  }
  return text.empty() ? text : text + ": ";
}

std::string spaced(std::string code) {
  std::ranges::replace(code, '_', ' ');
  return code;
}

}  // namespace

std::string_view name(Health health) {
  switch (health) {
    case Health::kOk:
      return "ok";
    case Health::kDegraded:
      return "degraded";
    case Health::kFailing:
      return "failing";
  }
  return "";
}

std::string text(WallTime time) {
  using std::chrono::floor;
  using std::chrono::seconds;
  const std::chrono::sys_time<std::chrono::nanoseconds> at{std::chrono::nanoseconds(time.ns)};
  const auto day = floor<std::chrono::days>(at);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(floor<seconds>(at - day));
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     clock.hours().count(), clock.minutes().count(), clock.seconds().count());
}

void HealthWatch::start() {
  if (runs_ || closing_.requested()) return;
  runs_ = true;
  gate_.spawn(run());
}

task::Task<void> HealthWatch::run() {
  for (;;) {
    const Result<void> slept = co_await task::sleep_for(env_, kEvery, closing_.token());
    if (!slept) break;
    co_await look();
    if (drives_ == 0) break;
  }
  runs_ = false;
}

task::Task<void> HealthWatch::look() {
  const Result<void> turn = co_await turn_.acquire(1, closing_.token());
  if (!turn) co_return;
  const task::Units mine(turn_, 1);
  const std::vector<DriveHealth> all = co_await owner_.look();
  drives_ = all.size();
  std::erase_if(known_, [&](const auto& known) {
    return std::ranges::find(all, known.first, &DriveHealth::name) == all.end();
  });
  for (const DriveHealth& one : all) {
    if (one.now) take_in(one.name, *one.now);
  }
}

task::Task<void> HealthWatch::close() {
  closing_.request();
  co_await gate_.close();
}

const WatchedDrive* HealthWatch::find(std::string_view drive) const {
  const auto at = known_.find(drive);
  return at == known_.end() ? nullptr : &at->second.drive;
}

void HealthWatch::take_in(const std::string& drive, const StackHealth& now) {
  Known& known = known_[drive];
  tell_changes(drive, known.drive.now, now);
  std::map<std::string, JobPace> paces;
  std::vector<WatchedJob> jobs;
  for (const HealthJob& job : now.jobs) {
    const std::string key = fmt::format("{} {}", job.path, job.name);
    const auto before = known.paces.find(key);
    JobPace pace = before == known.paces.end() ? JobPace(env_.now(), job.done) : before->second;
    pace.look(job.done, env_.now());
    WatchedJob watched{.job = job};
    watched.percent = job.total == 0 ? 100 : job.done * 100 / job.total;
    watched.left = pace.time_for(job.total - std::min(job.done, job.total));
    jobs.push_back(std::move(watched));
    paces.emplace(key, pace);
  }
  known.paces = std::move(paces);
  known.drive = {now, std::move(jobs)};
}

void HealthWatch::tell_changes(const std::string& drive, const StackHealth& before,
                               const StackHealth& now) {
  if (!tell_) return;
  for (const HealthReason& one : now.reasons) {
    const HealthReason* known = find_same(one, before.reasons);
    if (known != nullptr && known->health == one.health) continue;
    tell_({.drive = drive,
           .severity = std::min(one.health, now.health),
           .now = now.health,
           .is_new = known == nullptr,
           .reason = one,
           .what = fmt::format("{}{}: {}", place_of(one), spaced(one.code), one.what)});
  }
  for (const HealthReason& one : before.reasons) {
    if (one.health == Health::kOk || find_same(one, now.reasons) != nullptr) continue;
    tell_({.drive = drive,
           .severity = Health::kOk,
           .now = now.health,
           .is_over = true,
           .reason = one,
           .what = fmt::format("{}{} is over", place_of(one), spaced(one.code))});
  }
}

}  // namespace cairn::drive
