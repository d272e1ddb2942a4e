// SPDX-License-Identifier: Apache-2.0
#include "server/serve/drives.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/words.h"
#include "drive/size_text.h"
#include "server/control/health_json.h"
#include "server/open/open.h"

namespace cairn::server {

namespace {

// The end of a subsystem's name, of letters that a drive's may have.
std::string tail_of(std::string_view nqn) {
  std::string tail(nqn.substr(nqn.rfind(':') + 1));
  for (char& c : tail) {
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!is_letter && !(c >= '0' && c <= '9') && c != '.' && c != '-') c = '_';
  }
  return tail;
}

std::vector<std::string> names_of(const ServedDrives& drives) {
  std::vector<std::string> names;
  names.reserve(drives.size());
  for (const auto& drive : drives) names.push_back(drive->name);
  return names;
}

Event event_of(const drive::HealthChange& change) {
  const drive::HealthReason& reason = change.reason;
  const bool can_be_retried = reason.code == "not_open" && !change.is_over;
  Event event{.severity = change.severity,
              .kind = "drive",
              .subject = change.drive,
              .health = change.now,
              .code = reason.code,
              .state = change.is_new ? Event::State::kBegan : Event::State::kChanged,
              .place = reason.below.empty() ? reason.path : reason.below_path,
              .what = change.what};
  if (change.is_over) event.state = Event::State::kOver;
  event.action = fmt::format("cairn drive {} {}", can_be_retried ? "retry" : "show", change.drive);
  return event;
}

}  // namespace

Drives::Drives(env::Env& env, const ServerHooks& hooks)
    : env_(env),
      hooks_(hooks),
      shared_(env),
      watch_(env, *this,
             [this](const drive::HealthChange& change) { hooks_.tell(event_of(change)); }) {}

Attempt<ServedDrive*> Drives::find(std::string_view name) const {
  for (const auto& drive : all_) {
    if (drive->name == name || (name.empty() && all_.size() == 1)) return drive.get();
  }
  if (name.empty()) {
    return refuse(fmt::format("{} drives are served here: name one of {}", all_.size(),
                              first_few(names_of(all_))));
  }
  return refuse(fmt::format("no drive {} is served here{} (there are {})", in_quotes(name),
                            did_you_mean(name, names_of(all_)), first_few(names_of(all_))));
}

ServedDrive* Drives::find(std::string_view nqn, uint32_t nsid) const {
  const auto found = std::ranges::find_if(all_, [nqn, nsid](const auto& drive) {
    return drive->space.nsid == nsid && drive->nqn == nqn;
  });
  return found == all_.end() ? nullptr : found->get();
}

std::string Drives::free_name(std::string_view nqn, uint32_t nsid, bool is_first_subsystem) const {
  const std::string plain = fmt::format("d{}", nsid - 1);
  const std::string base = is_first_subsystem ? plain : fmt::format("{}-{}", tail_of(nqn), plain);
  std::string name = base;
  for (int i = 2;
       std::ranges::find(all_, name, [](const auto& drive) { return drive->name; }) != all_.end();
       ++i) {
    name = fmt::format("{}-{}", base, i);
  }
  return name;
}

ServedDrive& Drives::add(std::string nqn, nvme::NamespaceOptions space) {
  auto drive = std::make_unique<ServedDrive>();
  drive->name = space.name;
  drive->text = space.drive_text();
  drive->nqn = std::move(nqn);
  drive->source = std::make_unique<ServedSource>(env_.core_count());
  drive->space = std::move(space);
  drive->space.source = drive->source.get();
  if (!drive->space.stack.empty()) drive->home = next_home();
  drive->problem = "it was not opened yet";
  all_.push_back(std::move(drive));
  return *all_.back();
}

// A file that two drives changed would be nobody's.
Attempt<void> Drives::check_unused(const ServedDrive& drive) const {
  const std::string& path = drive.space.drive.path;
  for (const auto& other : all_) {
    if (path.empty() || !other->is_open || other->space.drive.path != path) continue;
    return refuse(fmt::format(
        "drive {} cannot be served: this file is served as another namespace already, as drive {}",
        in_quotes(drive.text), other->name));
  }
  return {};
}

task::Task<Attempt<void>> Drives::fill(ServedDrive& drive, std::string text, bool format) {
  Attempt<DriveArgs> args = parse_drive_args(text, LookUp::kWhenOpened);
  if (!args) co_return std::unexpected(args.error());
  const bool is_stack = args->stack != nullptr;
  if (is_stack) args->stack->share(shared_);
  if (is_stack && drive.moved != nullptr) {
    args->stack->limit_transfers(drive.moved->transfer_blocks);
  }
  if (is_stack && format) args->stack->allow_format();
  Attempt<std::unique_ptr<drive::Source>> source = co_await open_drive(env_, *args, drive.home);
  if (!source && is_stack) {
    co_return refuse(
        fmt::format("drive {} cannot be served:\n{}", in_quotes(drive.name), source.error().text));
  }
  if (!source) co_return std::unexpected(source.error());
  co_await drive.source->fill(env_, std::move(*source));
  drive.is_open = true;
  co_return Attempt<void>();
}

task::Task<Attempt<void>> Drives::open(ServedDrive& drive, std::string typed, bool format) {
  if (drive.is_open) co_return Attempt<void>();
  Attempt<void> opened = check_unused(drive);
  if (opened) opened = co_await fill(drive, typed.empty() ? drive.text : std::move(typed), format);
  drive.problem = opened ? "" : opened.error().text;
  co_return opened;
}

task::Task<Attempt<void>> Drives::make_stack(ServedDrive& drive) {
  if (drive.stack() != nullptr) co_return Attempt<void>();
  Attempt<std::unique_ptr<StackPlan>> plan = StackPlan::prepare(drive.text, LookUp::kWhenOpened);
  if (!plan) co_return std::unexpected(plan.error());
  (*plan)->share(shared_);
  drive.home = next_home();
  const Attempt<void> made =
      co_await drive.source->become_stack(env_, drive.home, std::move(*plan));
  if (made) co_return made;
  co_return refuse(
      fmt::format("drive {} stays as it is: {}", drive.name, last_line(made.error().text)));
}

task::Task<void> Drives::make_single(ServedDrive& drive) {
  if (!drive.source->is_single_below() || !drive.stack()->plan().stack().is_leaf) co_return;
  co_await drive.users->close();
  co_await drive.source->become_single(env_);
  drive.users.emplace();
}

task::Task<void> Drives::remove(ServedDrive& drive) {
  co_await drive.source->close(env_);
  const size_t removed =
      std::erase_if(all_, [&](const auto& each) { return each.get() == &drive; });
  CHECK(removed == 1, "a drive is removed once");
}

task::Task<void> Drives::close() {
  co_await watch_.close();
  for (const auto& drive : all_) {
    co_await drive->users->close();
    co_await drive->source->close(env_);
  }
  all_.clear();
}

task::Task<void> Drives::look_now() {
  co_await watch_.look();
  watch_.start();
}

task::Task<std::vector<drive::DriveHealth>> Drives::look() {
  std::vector<drive::DriveHealth> known;
  std::vector<const StackSource*> stacks;
  std::vector<std::string> names;
  std::vector<std::unique_ptr<DriveUse>> uses;
  for (const auto& drive : all_) {
    if (!drive->problem.empty()) {
      known.push_back(
          {drive->name,
           not_open(drive->problem, fmt::format("it is tried again by itself, and at once with "
                                                "'cairn drive retry {}'",
                                                drive->name))});
    } else if (drive->stack() != nullptr) {
      auto use = std::make_unique<DriveUse>(*drive);
      if (!*use) continue;
      uses.push_back(std::move(use));
      stacks.push_back(drive->stack());
      names.push_back(drive->name);
    } else if (watch_.find(drive->name) != nullptr) {
      // A single drive that could not be opened, and now is, says nothing more of itself.
      known.push_back({drive->name, drive::StackHealth()});
    }
  }
  std::vector<StackSource::Health> now = co_await StackSource::health_of(env_, std::move(stacks));
  for (size_t i = 0; i < now.size(); ++i) known.push_back({names[i], std::move(now[i])});
  co_return known;
}

}  // namespace cairn::server
