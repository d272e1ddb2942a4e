// SPDX-License-Identifier: Apache-2.0
// The drives of a server: opened at the start, or when they can be, and looked at since.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "base/words.h"
#include "drive/size_text.h"
#include "server/control/health_json.h"
#include "server/serve/server.h"
#include "task/deadline.h"

namespace cairn::server {

namespace {

constexpr Duration kReopenFirst = 5_s;
constexpr Duration kReopenMax = 60_s;

}  // namespace

task::Task<Attempt<std::unique_ptr<drive::Source>>> DriveServer::open_source(DriveArgs& words,
                                                                             CoreId home) {
  const bool is_stack = words.stack != nullptr;
  if (is_stack) words.stack->share(shared_);
  Attempt<std::unique_ptr<drive::Source>> source = co_await open_drive(env_, words, home);
  if (source || !is_stack) co_return source;
  co_return refuse(
      fmt::format("drive {} cannot be served:\n{}", in_quotes(words.name), source.error().text));
}

task::Task<Attempt<void>> DriveServer::add_export(const ServedDrive& drive) {
  const Result<void> added = co_await nbd_.add(
      {.name = drive.name,
       .description = drive.text,
       .read_only = options_.read_only,
       .has_other_writers = !options_.nvme.empty() || !options_.vfio.empty() || drive.vhost,
       .source = drive.source.get()});
  if (added) co_return Attempt<void>();
  co_return refuse(
      fmt::format("drive {} cannot be served: {}", in_quotes(drive.name), added.error().text()));
}

// Stacks are spread over the cores. A drive that does not open has a place all the same.
task::Task<Attempt<void>> DriveServer::open_drives() {
  uint32_t stacks = 0;
  size_t failed = 0;
  std::optional<Problem> first;
  for (DriveArgs& words : options_.drives) {
    const bool is_stack = words.stack != nullptr;
    ServedDrive drive{.name = words.name, .text = words.text};
    drive.home = CoreId(is_stack ? stacks++ % env_.core_count() : 0);
    for (const GuestSocket& socket : options_.vhost) {
      if (socket.drive == drive.name) drive.vhost = socket;
    }
    Attempt<std::unique_ptr<drive::Source>> source = co_await open_source(words, drive.home);
    if (source) {
      drive.source = std::move(*source);
      if (is_stack) drive.stack = static_cast<StackSource*>(drive.source.get());
    } else {
      ++failed;
      if (!first) first = source.error();
      drive.problem = source.error().text;
      auto pending = std::make_unique<PendingSource>(env_.core_count());
      drive.pending = pending.get();
      drive.source = std::move(pending);
    }
    drives_.push_back(std::move(drive));
    const Attempt<void> added = co_await add_export(drives_.back());
    if (!added) co_return added;
    if (!is_stack) note_size(drives_.back(), words.spec);
  }
  if (failed == drives_.size()) co_return std::unexpected(*first);
  co_return Attempt<void>();
}

// Says so when a file has another size than its text: it keeps its own.
void DriveServer::note_size(const ServedDrive& drive, const drive::Spec& spec) {
  if (!options_.log || spec.kind != drive::Spec::Kind::kFile || spec.size == 0) return;
  const Result<uint64_t> size = nbd_.size(drive.name);
  if (!size || *size <= spec.size) return;
  options_.log(config::LogLevel::kInfo,
               fmt::format("drive {} has {}, and its line says size={}: it keeps what its file has",
                           drive.name, drive::size_text(*size), drive::size_text(spec.size)));
}

bool DriveServer::has_failed() const {
  return std::ranges::any_of(drives_, [](const auto& each) { return !each.problem.empty(); });
}

task::Task<Attempt<void>> DriveServer::reopen(std::string name) {
  const Result<void> mine = co_await changing_.acquire(1, closing_.token());
  if (!mine) co_return refuse("drives are not served any more");
  const task::Units held(changing_, 1);
  const Attempt<ServedDrive*> found = find(name);
  if (!found) co_return std::unexpected(found.error());
  ServedDrive& drive = **found;
  if (drive.problem.empty()) co_return Attempt<void>();
  Attempt<DriveArgs> words = parse_drive_args(drive.text, LookUp::kWhenOpened);
  if (!words) co_return std::unexpected(words.error());
  words->name = drive.name;
  const bool is_stack = words->stack != nullptr;
  Attempt<std::unique_ptr<drive::Source>> source = co_await open_source(*words, drive.home);
  if (!source) {
    drive.problem = source.error().text;
    co_return std::unexpected(source.error());
  }
  drive::Source* const opened = source->get();
  co_await drive.pending->fill(env_, std::move(*source));
  if (is_stack) drive.stack = static_cast<StackSource*>(opened);
  drive.problem.clear();
  Attempt<void> served;
  if (drive.vhost) served = co_await serve_vhost(drive, *drive.vhost);
  if (box_ != nullptr) co_await box_->reopen_given();
  co_await watch_.look();
  co_return served;
}

task::Task<void> DriveServer::reopen_all() {
  Duration pause = kReopenFirst;
  while (has_failed()) {
    const Result<void> slept = co_await task::sleep_for(env_, pause, closing_.token());
    if (!slept) break;
    for (size_t i = 0; i < drives_.size() && !closing_.requested(); ++i) {
      if (drives_[i].problem.empty()) continue;
      const Attempt<void> opened = co_await reopen(drives_[i].name);
      (void)opened;  // the drive's health says why not
    }
    pause = std::min(pause * 2, kReopenMax);
  }
}

task::Task<std::vector<drive::DriveHealth>> DriveServer::look() {
  std::vector<drive::DriveHealth> all;
  std::vector<const StackSource*> stacks;
  std::vector<std::string> names;
  for (const ServedDrive& drive : drives_) {
    if (!drive.problem.empty()) {
      all.push_back(
          {drive.name, not_open(drive.problem,
                                fmt::format("it is tried again by itself, and at once with 'cairn "
                                            "drive retry {}'",
                                            drive.name))});
    } else if (drive.stack != nullptr) {
      stacks.push_back(drive.stack);
      names.push_back(drive.name);
    }
  }
  std::vector<StackSource::Health> now = co_await StackSource::health_of(env_, std::move(stacks));
  for (size_t i = 0; i < now.size(); ++i) all.push_back({names[i], std::move(now[i])});
  co_return all;
}

}  // namespace cairn::server
