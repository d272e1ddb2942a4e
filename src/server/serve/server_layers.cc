// SPDX-License-Identifier: Apache-2.0
// The layers of drives: looked at, told something, exchanged, and moved to a box and back.
#include <fmt/format.h>

#include <utility>

#include "drive/size_text.h"
#include "server/control/health_json.h"
#include "server/serve/server.h"

namespace cairn::server {

namespace {

// Its layers were moved, and it is the way to them.
bool is_in_box(const ServedDrive& drive) {
  return drive.moved != nullptr && drive.text == drive.moved->uri.text();
}

// The box was asked to open the layers, and does not say whether it has.
Problem lost_in_box(const ServedDrive& drive, const std::string& why) {
  return {fmt::format(
      "{}. The box may have opened the layers of {}, so nobody is served until it says that it has "
      "not: 'cairn drive move {} --back' asks it at {}. If that box has ended for good, end this "
      "'cairn serve' and begin anew with 'cairn serve '{}={}''",
      why, drive.name, drive.name, drive.moved->control, drive.name, drive.moved->layers)};
}

// Its text for another process.
Attempt<std::string> layers_to_move(const ServedDrive& drive) {
  Attempt<std::unique_ptr<StackPlan>> single;
  if (drive.stack() == nullptr) {
    single = StackPlan::prepare(drive.text, LookUp::kWhenOpened);
    if (!single) return std::unexpected(single.error());
  }
  const StackPlan& plan = drive.stack() == nullptr ? **single : drive.stack()->plan();
  const std::string leaf = plan.leaf_in_memory();
  if (leaf.empty()) return plan.grown_text();
  return refuse(
      fmt::format("{} stays here: the blocks of {} are in the memory of this process. Mirror it to "
                  "a drive elsewhere, with 'cairn drive edit', before it can move",
                  drive.name, leaf));
}

}  // namespace

Attempt<void> Server::check_changeable(const ServedDrive& drive) const {
  if (Attempt<void> free = check_free(drive); !free) return free;
  if (!drive.problem.empty()) {
    return refuse(fmt::format("{} is not open: {}; 'cairn drive retry {}' tries again", drive.name,
                              last_line(drive.problem), drive.name));
  }
  return {};
}

task::Task<std::optional<drive::LayerInfo>> Server::layers(std::string name) {
  const Attempt<ServedDrive*> drive = find(name);
  if (!drive || (*drive)->stack() == nullptr) co_return std::nullopt;
  const DriveUse use(**drive);
  if (!use) co_return std::nullopt;
  drive::LayerInfo top = co_await (*drive)->stack()->layers(env_);
  co_return top;
}

task::Task<Attempt<std::string>> Server::tell_drive(std::string name, std::string layer,
                                                    std::vector<std::string> args) {
  const Attempt<ServedDrive*> drive = find(name);
  if (!drive) co_return std::unexpected(drive.error());
  if (Attempt<void> may = check_changeable(**drive); !may) co_return std::unexpected(may.error());
  if ((*drive)->stack() == nullptr) {
    co_return refuse(fmt::format(
        "{} is a single drive, {}, and takes no commands: services do, and 'cairn drive "
        "edit {} STACK' puts them above it",
        (*drive)->name, drive::with_size_texts((*drive)->text), (*drive)->name));
  }
  const DriveUse use(**drive);
  if (!use) co_return refuse(fmt::format("{} is being changed: try again", (*drive)->name));
  drive::LiveStack::Told told =
      co_await (*drive)->stack()->tell(env_, std::move(layer), std::move(args));
  if (!told) co_return refuse(std::move(told.error()));
  co_return std::move(*told);
}

task::Task<Attempt<std::string>> Server::edit_drive(std::string name,
                                                    std::unique_ptr<StackPlan> to) {
  const Attempt<Turn> turn = co_await take_turn_of(std::move(name));
  if (!turn) co_return std::unexpected(turn.error());
  ServedDrive& drive = *turn->drive;
  if (Attempt<void> may = check_changeable(drive); !may) co_return std::unexpected(may.error());
  const std::string text = to->grown_text();
  if (is_in_box(drive) && text.find(drive.text) == text.npos) {
    co_return refuse(
        fmt::format("the layers of {0} run in the box at {1}, which has what they stand on open: "
                    "bring them back first, with 'cairn drive move {0} --back', or put {2} into "
                    "the new stack",
                    drive.name, drive.moved->control, drive.text));
  }
  if (const Attempt<void> made = co_await drives_.make_stack(drive); !made) {
    co_return std::unexpected(made.error());
  }
  const Attempt<void> edited = co_await drive.stack()->edit(env_, std::move(to));
  co_await drives_.make_single(drive);
  if (!edited) co_return std::unexpected(edited.error());
  set_text(drive, text);
  const Attempt<void> kept = keep(fmt::format("drive {} is {} now", drive.name, text));
  if (!kept) co_return std::unexpected(kept.error());
  co_return text;
}

// What is kept says where the layers go before they leave: whatever moment power fails at, they
// are not opened here while they may be open there.
task::Task<Attempt<Duration>> Server::move_to_box(ServedDrive& drive, BoxPlace& place) {
  const SubsystemChanges before = changes_[drive.nqn];
  const nvme::NamespaceOptions space = drive.space;
  const std::string text = drive.text;
  set_place(drive, place);
  Attempt<Duration> waited = refuse("");
  if (const Attempt<void> kept = save(); kept) {
    MoveToBox mover(place);
    waited = co_await drive.stack()->move(env_, mover);
  } else {
    waited = refuse(fmt::format("{} stays here: {}", drive.name, kept.error().text));
  }
  if (waited || place.may_be_open) {
    set_place(drive, place);  // with its number there
    co_return waited;
  }
  changes_[drive.nqn] = before;
  drive.space = space;
  drive.text = text;
  if (const Attempt<void> kept = save(); !kept) {
    co_return refuse(fmt::format("{}; and after a restart it is looked for there: {}",
                                 waited.error().text, kept.error().text));
  }
  co_return waited;
}

task::Task<Attempt<Duration>> Server::move_drive(std::string name, std::string box,
                                                 std::string via) {
  const Attempt<Turn> turn = co_await take_turn_of(std::move(name));
  if (!turn) co_return std::unexpected(turn.error());
  ServedDrive& drive = *turn->drive;
  if (Attempt<void> may = check_changeable(drive); !may) co_return std::unexpected(may.error());
  if (is_in_box(drive)) {
    co_return refuse(
        fmt::format("the layers of {} are in a box already: bring them back first, "
                    "with 'cairn drive move {} --back'",
                    drive.name, drive.name));
  }
  const Attempt<std::string> layers = layers_to_move(drive);
  if (!layers) co_return std::unexpected(layers.error());
  Attempt<BoxPlace> found =
      co_await find_place_in_box(env_, std::move(box), std::move(via), *layers);
  if (!found) co_return std::unexpected(found.error());
  auto place = std::make_unique<BoxPlace>(std::move(*found));
  place->transfer_blocks = info(drive)->geometry.transfer_blocks;
  if (const Attempt<void> made = co_await drives_.make_stack(drive); !made) {
    co_return std::unexpected(made.error());
  }
  const Attempt<Duration> waited = co_await move_to_box(drive, *place);
  co_await drives_.make_single(drive);
  const bool is_lost = !waited && place->may_be_open;
  if (waited || is_lost) drive.moved = std::move(place);
  if (is_lost) co_return std::unexpected(lost_in_box(drive, waited.error().text));
  if (!waited) co_return waited;
  const Attempt<void> kept =
      keep(fmt::format("the layers of drive {} are at {}", drive.name, drive.text));
  if (!kept) co_return std::unexpected(kept.error());
  co_return waited;
}

task::Task<Attempt<Duration>> Server::move_back(ServedDrive& drive) {
  if (Attempt<void> may = check_changeable(drive); !may) co_return std::unexpected(may.error());
  if (!is_in_box(drive)) {
    co_return refuse(
        fmt::format("{} was edited since its layers went to a box: edit it to {} first", drive.name,
                    drive.moved->uri.text()));
  }
  MoveFromBox mover(*drive.moved);
  const Attempt<Duration> waited = co_await drive.stack()->move(env_, mover);
  if (waited) {
    set_back(drive);
    co_return waited;
  }
  // Its clients would believe what they wrote and did not flush to be there still.
  co_return refuse(
      fmt::format("{}. If the box is gone for good, end this 'cairn serve' and begin anew with "
                  "'cairn serve '{}={}'', so that clients learn that what was not flushed may be "
                  "lost",
                  waited.error().text, drive.name, drive.moved->layers));
}

// Nobody is served, so nobody believes that anything is there that was not flushed.
task::Task<Attempt<Duration>> Server::open_back(ServedDrive& drive) {
  const Time begin = env_.now();
  MoveFromBox mover(*drive.moved);
  const Attempt<std::unique_ptr<StackPlan>> plan = co_await mover.give(env_);
  if (!plan) co_return std::unexpected(plan.error());
  set_back(drive);
  Attempt<void> opened = co_await open_drive(drive, "", false);
  if (opened) opened = co_await doors_.opened(drive);
  if (opened) co_return env_.now() - begin;
  co_return refuse(
      fmt::format("the layers of {} are here again, and do not open: {}; 'cairn drive retry {}' "
                  "tries again",
                  drive.name, opened.error().text, drive.name));
}

task::Task<Attempt<Duration>> Server::bring_back(std::string name) {
  const Attempt<Turn> turn = co_await take_turn_of(std::move(name));
  if (!turn) co_return std::unexpected(turn.error());
  ServedDrive& drive = *turn->drive;
  if (drive.moved == nullptr) {
    co_return refuse(
        fmt::format("the layers of {} are here: move them to a box with --to PATH", drive.name));
  }
  Attempt<Duration> waited = refuse("");
  if (drive.problem.empty()) {
    waited = co_await move_back(drive);
  } else {
    waited = co_await open_back(drive);
  }
  if (drive.moved != nullptr) co_return waited;
  const Attempt<void> kept = keep(fmt::format("the layers of drive {} are here", drive.name));
  if (waited && !kept) co_return std::unexpected(kept.error());
  co_return waited;
}

}  // namespace cairn::server
