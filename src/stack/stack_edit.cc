// SPDX-License-Identifier: Apache-2.0
#include "stack/stack_edit.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "stack/services.h"

namespace cairn::drive {

namespace {

using Edited = LiveStack::Edited;

const Stack& without_filters(const Stack& stack) {
  const Stack* bare = &stack;
  while (is_filter(*bare)) bare = &bare->below[0];
  return *bare;
}

// Whether two stacks differ at most by filters: then their blocks are the same.
bool are_alike(const Stack& a, const Stack& b) {
  const Stack& one = without_filters(a);
  const Stack& other = without_filters(b);
  return one.is_leaf == other.is_leaf && one.name == other.name && one.options == other.options &&
         std::ranges::equal(one.below, other.below, are_alike);
}

bool has_lost(const StackNode& node) {
  return node.is_lost ||
         std::ranges::any_of(node.below, [](const auto& below) { return has_lost(*below); });
}

bool contains(const Stack& stack, const Stack& part) {
  return stack == part ||
         std::ranges::any_of(stack.below, [&](const Stack& one) { return contains(one, part); });
}

void count_leaves(const StackNode& node, std::map<std::string, size_t>& counted) {
  if (node.text.is_leaf && node.open.drive != nullptr) ++counted[node.text.name];
  for (const auto& below : node.below) count_leaves(*below, counted);
}

void set_texts(StackNode& node, const Stack& stack) {
  node.text = stack;
  for (size_t i = 0; i < node.below.size(); ++i) set_texts(*node.below[i], stack.below[i]);
}

void forget_kept(StackNode& node) {
  node.is_kept = false;
  for (const auto& below : node.below) forget_kept(*below);
}

// What those above could not bear; empty: nothing. `is_same`: the layers are, but elsewhere.
std::string what_is_worse(const Geometry& before, const Geometry& now, bool is_same) {
  if (now.block_size != before.block_size) {
    return fmt::format("blocks would be of {} bytes instead of {}", now.block_size,
                       before.block_size);
  }
  if (now.blocks != before.blocks) {
    return fmt::format("its size would change from {} to {} blocks", before.blocks, now.blocks);
  }
  if (now.transfer_blocks < before.transfer_blocks) {
    return fmt::format("requests would be of at most {} blocks instead of {}", now.transfer_blocks,
                       before.transfer_blocks);
  }
  if (now.atomic_blocks % before.atomic_blocks != 0) {
    return fmt::format("writes would be atomic in units of {} blocks instead of {}",
                       now.atomic_blocks, before.atomic_blocks);
  }
  if (is_same) return "";
  if (now.volatile_cache && !before.volatile_cache) {
    return "a crash could lose writes that were not flushed, and could not before";
  }
  if (now.copies < before.copies) {
    return fmt::format("there would be {} copies to read instead of {}", now.copies, before.copies);
  }
  return "";
}

// The first ones, where labels and tables are, and some of all the others.
std::vector<uint64_t> blocks_to_sample(uint64_t blocks) {
  constexpr uint64_t kFirst = 8;
  constexpr uint64_t kSpread = 24;
  std::vector<uint64_t> chosen;
  chosen.reserve(kFirst + kSpread);
  for (uint64_t i = 0; i < std::min(blocks, kFirst); ++i) chosen.push_back(i);
  for (uint64_t i = 1; i <= kSpread && blocks > kFirst; ++i) {
    const uint64_t block = (blocks - 1) / kSpread * i + (i == kSpread ? (blocks - 1) % kSpread : 0);
    if (block > chosen.back()) chosen.push_back(block);
  }
  return chosen;
}

std::unexpected<StackError> refuse(const Stack& at, std::string text) {
  return std::unexpected(StackError{at.place, std::move(text)});
}

}  // namespace

StackEdit::Change StackEdit::change_at(std::unique_ptr<StackNode>& slot, Joint& joint,
                                       const Stack& wanted) {
  return {.opener = StackOpener(live_.env_, live_.leaves_, live_.turn_.get()),
          .slot = &slot,
          .joint = &joint,
          .wanted = &wanted,
          .before = slot->text};
}

void StackEdit::find_changes(std::unique_ptr<StackNode>& slot, Joint& joint, const Stack& wanted) {
  StackNode& node = *slot;
  if (node.text == wanted && !has_lost(node)) return;
  bool stays = !wanted.is_leaf && !node.is_lost && node.open.drive != nullptr &&
               node.text.name == wanted.name && node.text.options == wanted.options &&
               node.below.size() == wanted.below.size();
  for (size_t i = 0; stays && i < wanted.below.size(); ++i) {
    const StackNode& below = *node.below[i];
    const bool is_same = below.text == wanted.below[i] && !below.is_lost;
    stays = is_same || (below.open.joint != nullptr && are_alike(below.text, wanted.below[i]));
  }
  if (!stays) {
    changes_.push_back(change_at(slot, joint, wanted));
    return;
  }
  for (size_t i = 0; i < wanted.below.size(); ++i) {
    if (Joint* below = node.below[i]->open.joint) {
      find_changes(node.below[i], *below, wanted.below[i]);
    }
  }
}

task::Task<Edited> StackEdit::run(task::CancelToken token) {
  Edited outcome;
  if (handover_ != nullptr) {
    changes_.push_back(change_at(live_.root_, live_, wanted_));
  } else {
    find_changes(live_.root_, live_, wanted_);
    outcome = co_await open_new_leaves();
  }
  const Time begin = live_.env_.now();
  if (outcome) outcome = co_await hold_all(token);
  if (outcome) {
    const Result<void> turn = co_await live_.layers_.acquire();
    const task::Units units(live_.layers_, turn ? 1 : 0);
    outcome = co_await exchange();
    forget_kept(*live_.root_);
    if (outcome) set_texts(*live_.root_, wanted_);
  }
  for (Change& change : changes_) {
    if (change.joint->is_held()) change.joint->release();
  }
  waited_ = live_.env_.now() - begin;
  for (Change& change : changes_) co_await change.opener.close_rest(&live_.retired_);
  co_return outcome;
}

task::Task<Edited> StackEdit::open_new_leaves() {
  for (Change& change : changes_) {
    std::map<std::string, size_t> open_now;
    count_leaves(**change.slot, open_now);
    Edited opened = co_await change.opener.open_leaves(*change.wanted, open_now);
    if (!opened) co_return opened;
  }
  co_return Edited();
}

task::Task<Edited> StackEdit::hold_all(task::CancelToken token) {
  for (const Change& change : changes_) {
    const Result<void> held = co_await change.joint->hold(token);
    if (!held) {
      co_return refuse(*change.wanted, fmt::format("what is in flight there has not ended: {}",
                                                   held.error().text()));
    }
  }
  co_return Edited();
}

task::Task<Edited> StackEdit::exchange() {
  Edited outcome = keep_what_stays();
  for (size_t i = 0; outcome && i < changes_.size(); ++i) outcome = co_await look_at(changes_[i]);
  if (!outcome) co_return outcome;
  co_await take_old_apart();
  if (handover_ != nullptr) outcome = co_await hand_over();
  for (size_t i = 0; outcome && i < changes_.size(); ++i) outcome = co_await try_new(changes_[i]);
  if (outcome) outcome = co_await open_new();
  if (!outcome) {
    co_await take_new_apart();
    const bool is_free = !was_asked_ || co_await take_back();
    if (is_free) {
      co_await open_old_again();
    } else {
      give_up(changes_.front(), "its layers may still be open in another process");
    }
  }
  for (Change& change : changes_) {
    *change.slot = std::move(change.opened);
    StackNode& node = **change.slot;
    change.joint->lead_to(node.open.drive == nullptr ? nullptr : &node.open);
    if (change.joint == &live_) live_.carry_over();
  }
  co_return outcome;
}

task::Task<Edited> StackEdit::hand_over() {
  Change& change = changes_.front();
  co_await change.opener.close_rest(&live_.retired_);
  was_asked_ = true;
  std::expected<Stack, StackError> given = co_await handover_->give();
  if (!given) co_return std::unexpected(std::move(given.error()));
  wanted_ = std::move(*given);
  std::map<std::string, size_t> open_now;
  Edited opened = co_await change.opener.open_leaves(wanted_, open_now);
  co_return opened;
}

task::Task<bool> StackEdit::take_back() {
  co_await changes_.front().opener.close_rest(nullptr);
  const bool is_free = co_await handover_->take_back();
  co_return is_free;
}

// What it is and holds now, all of it durable, to be compared with what takes its place.
task::Task<Edited> StackEdit::look_at(Change& change) {
  StackNode& node = **change.slot;
  change.shape = change.joint->geometry();
  if (node.open.drive == nullptr) co_return Edited();
  Drive& drive = *without_filters(node).open.drive;
  const Result<void> flushed = co_await drive.flush();
  if (!flushed) {
    change.joint->owe_failed_flush();
    co_return refuse(*change.wanted,
                     fmt::format("what is there cannot be flushed: {}", flushed.error().text()));
  }
  for (const uint64_t block : blocks_to_sample(change.shape.blocks)) {
    Sample sample{block, std::vector<std::byte>(change.shape.block_size)};
    const Result<void> read = co_await drive.read(Lba(block), sample.bytes);
    if (read) change.samples.push_back(std::move(sample));
  }
  co_return Edited();
}

namespace {

// Marks what is in the new stack too, and finds a layer that goes though a view of it is open.
const StackNode* mark_kept(StackNode& node, const Stack& wanted) {
  node.is_kept = !has_lost(node) && node.open.drive != nullptr && contains(wanted, node.text);
  if (node.is_kept) return nullptr;
  if (node.open.views > 0) return &node;
  for (const auto& below : node.below) {
    if (const StackNode* viewed = mark_kept(*below, wanted)) return viewed;
  }
  return nullptr;
}

}  // namespace

Edited StackEdit::keep_what_stays() {
  for (Change& change : changes_) {
    if (const StackNode* viewed = mark_kept(**change.slot, *change.wanted)) {
      return refuse(*change.wanted,
                    fmt::format("{} would be closed, and a view of it is open: close that first",
                                viewed->text.name));
    }
  }
  return {};
}

task::Task<void> StackEdit::take_old_apart() {
  for (Change& change : changes_) {
    change.joint->lead_to(nullptr);
    co_await change.opener.take_apart(std::move(*change.slot));
  }
}

task::Task<Edited> StackEdit::try_new(Change& change) {
  StackOpener trial = change.opener.on_trial();
  StackOpener::Node node = co_await trial.open(*change.wanted);
  Edited outcome;
  if (node) {
    outcome = co_await check_new(change, **node);
    co_await trial.take_apart(std::move(*node));
  } else {
    outcome = std::unexpected(node.error());
  }
  co_await trial.close_rest(nullptr);
  co_return outcome;
}

task::Task<Edited> StackEdit::open_new() {
  for (Change& change : changes_) {
    StackOpener::Node node = co_await change.opener.open(*change.wanted);
    if (!node) co_return std::unexpected(node.error());
    change.opened = std::move(*node);
  }
  for (Change& change : changes_) {
    Edited checked = co_await check_new(change, *change.opened);
    if (!checked) co_return checked;
  }
  co_return Edited();
}

task::Task<Edited> StackEdit::check_new(const Change& change, StackNode& opened) {
  const std::string worse =
      what_is_worse(change.shape, opened.open.drive->geometry(), handover_ != nullptr);
  if (!worse.empty()) {
    co_return refuse(*change.wanted, fmt::format("{} cannot take the place of what is there: {}",
                                                 change.wanted->name, worse));
  }
  Drive& drive = *without_filters(opened).open.drive;
  std::vector<std::byte> bytes(change.shape.block_size);
  for (const Sample& sample : change.samples) {
    const Result<void> read = co_await drive.read(Lba(sample.block), bytes);
    if (!read || bytes != sample.bytes) {
      co_return refuse(
          *change.wanted,
          fmt::format("{} cannot take the place of what is there: block {} {}", change.wanted->name,
                      sample.block, read ? "holds something else" : "cannot be read"));
    }
  }
  co_return Edited();
}

task::Task<void> StackEdit::take_new_apart() {
  for (Change& change : changes_) {
    if (change.opened != nullptr) co_await change.opener.take_apart(std::move(change.opened));
  }
}

task::Task<void> StackEdit::open_old_again() {
  for (Change& change : changes_) {
    StackOpener::Node node = co_await change.opener.open(change.before);
    if (node) {
      change.opened = std::move(*node);
      continue;
    }
    give_up(change, node.error().text);
  }
}

void StackEdit::give_up(Change& change, std::string problem) {
  change.opened = std::make_unique<StackNode>();
  change.opened->text = change.before;
  change.opened->problem = std::move(problem);
  change.opened->is_lost = true;
  // What it stood on waits below it for another edit.
  change.opened->below = std::exchange(change.opener.have, {});
}

}  // namespace cairn::drive
