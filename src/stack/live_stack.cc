// SPDX-License-Identifier: Apache-2.0
#include "stack/live_stack.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/rng.h"
#include "service/common/content_changer.h"
#include "stack/services.h"
#include "stack/stack_edit.h"
#include "stack/stack_nodes.h"

namespace cairn::drive {

namespace {

LayerInfo info_of(StackNode& node, std::string path, Time now) {
  LayerInfo info{.path = std::move(path),
                 .name = node.text.name,
                 .is_leaf = node.text.is_leaf,
                 .options = node.text.options,
                 .problem = node.problem};
  if (node.open.drive != nullptr) {
    info.geometry = node.open.drive->geometry();
    info.figures = node.open.figures.at(now);
    for (const Fact& fact : node.open.drive->facts()) {
      info.facts.emplace_back(std::string(fact.name), fact.value);
    }
  }
  for (size_t i = 0; i < node.below.size(); ++i) {
    info.below.push_back(info_of(*node.below[i], fmt::format("{}.{}", info.path, i), now));
  }
  return info;
}

// How well a layer is, all below it included; adds what it says.
Health look_at(const StackNode& node, const std::string& path, StackHealth& into) {
  Health worst = Health::kOk;
  const bool is_there = node.open.drive != nullptr;
  if (!is_there) worst = Health::kFailing;
  const auto concerns = is_there ? node.open.drive->concerns() : std::vector<Concern>();
  for (const Concern& one : concerns) {
    HealthReason reason{.health = one.health,
                        .code = std::string(one.code),
                        .path = path,
                        .layer = node.text.name,
                        .what = one.what};
    if (one.below && *one.below < node.below.size()) {
      const StackNode& below = *node.below[*one.below];
      reason.below = below.text.text();
      reason.below_path = fmt::format("{}.{}", path, *one.below);
      if (!below.problem.empty()) reason.what += fmt::format(" ({})", below.problem);
    }
    worst = std::max(worst, one.health);
    into.reasons.push_back(std::move(reason));
  }
  const auto jobs = is_there ? node.open.drive->jobs() : std::vector<Job>();
  for (const Job& job : jobs) {
    into.jobs.push_back({.name = std::string(job.name),
                         .path = path,
                         .layer = node.text.name,
                         .done = job.done,
                         .total = job.total});
  }
  Health below = Health::kOk;
  size_t failing = 0;
  for (size_t i = 0; i < node.below.size(); ++i) {
    const Health one = look_at(*node.below[i], fmt::format("{}.{}", path, i), into);
    below = std::max(below, one);
    if (one == Health::kFailing) ++failing;
  }
  // What is built to lose drives says itself when it has lost too many.
  const bool survives = !node.text.is_leaf && find_service(node.text.name)->survives_loss;
  if (survives && failing < node.below.size()) below = std::min(below, Health::kDegraded);
  return std::max(worst, below);
}

struct Found {
  StackNode* node = nullptr;
  std::string path;
};

// Every layer that is meant, with its path.
void collect(StackNode& node, std::string path, std::string_view meant, std::vector<Found>& found) {
  if (path == meant || node.text.name == meant) found.push_back({&node, path});
  for (size_t i = 0; i < node.below.size(); ++i) {
    collect(*node.below[i], fmt::format("{}.{}", path, i), meant, found);
  }
}

// The layers above one, from the top down. False: it is not in this part of the stack.
bool find_above(const StackNode& from, const StackNode& layer,
                std::vector<const StackNode*>& above) {
  if (&from == &layer) return true;
  above.push_back(&from);
  for (const std::unique_ptr<StackNode>& one : from.below) {
    if (find_above(*one, layer, above)) return true;
  }
  above.pop_back();
  return false;
}

// Why a layer may not be told this: others would go on with what they keep of its old contents.
// Empty: it may.
std::string why_untold(const StackNode& root, const StackNode& layer,
                       const std::vector<std::string>& args) {
  const auto* changer = dynamic_cast<const ContentChanger*>(&without_joint(*layer.open.drive));
  if (changer == nullptr || !changer->changes_contents(args)) return "";
  std::vector<const StackNode*> above;
  find_above(root, layer, above);
  std::string keepers;
  for (const StackNode* one : above) {
    if (is_filter(one->text)) continue;
    keepers += fmt::format("{}{}", keepers.empty() ? "" : ", ", one->text.name);
  }
  if (keepers.empty()) return "";
  return fmt::format(
      "{} changes what {} holds under {}, which would go on with what was there before: end this, "
      "serve '{}' alone, say it there, and then serve the whole again",
      args[0], layer.text.name, keepers, layer.text.text());
}

}  // namespace

LiveStack::LiveStack(env::Env& env, Leaves& leaves, std::unique_ptr<task::Semaphore> turn,
                     std::unique_ptr<StackNode> root)
    : Joint(env, root->open),
      env_(env),
      leaves_(leaves),
      turn_(std::move(turn)),
      root_(std::move(root)),
      known_(Joint::incarnation()),
      told_(known_) {}

Incarnation LiveStack::incarnation() const {
  if (layers_.available() == 0) return told_;  // they are being exchanged
  const Incarnation now = Joint::incarnation();
  told_.local_opening = now.local_opening;
  if (now.opening == 0 || now == known_) return told_;
  if (now.medium != known_.medium) told_.medium = now.medium;
  told_.opening = mix64(told_.opening ^ now.opening) | 1;
  known_ = now;
  return told_;
}

task::Task<LayerInfo> LiveStack::layers() {
  const Result<void> turn = co_await layers_.acquire();
  const task::Units units(layers_, turn ? 1 : 0);
  if (root_ == nullptr) co_return LayerInfo{.problem = "the stack is closed"};
  co_return info_of(*root_, "0", env_.now());
}

std::optional<StackHealth> LiveStack::health() const {
  if (layers_.available() == 0 || root_ == nullptr) return std::nullopt;
  StackHealth health;
  health.health = look_at(*root_, "0", health);
  return health;
}

StackNode* LiveStack::find(std::string_view layer, std::string& problem) {
  std::vector<Found> found;
  collect(*root_, "0", layer, found);
  if (found.size() == 1) return found[0].node;
  if (found.empty()) {
    problem = fmt::format(
        "there is no layer '{}': name one by its service, or by its path, 0 for "
        "the one on top and 0.1 for the second below that",
        layer);
    return nullptr;
  }
  problem = fmt::format("{} layers are called '{}': name one by its path,", found.size(), layer);
  for (const Found& one : found) problem += fmt::format(" {}", one.path);
  return nullptr;
}

task::Task<LiveStack::Told> LiveStack::tell(std::string layer, std::vector<std::string> args) {
  const Result<void> turn = co_await turn_->acquire();
  const task::Units units(*turn_, turn ? 1 : 0);
  std::string problem = "the stack is closed";
  StackNode* node = root_ == nullptr ? nullptr : find(layer, problem);
  if (node == nullptr) co_return std::unexpected(std::move(problem));
  if (node->open.drive == nullptr) {
    co_return std::unexpected(fmt::format("the layer is not there: {}", node->problem));
  }
  if (std::string why = why_untold(*root_, *node, args); !why.empty()) {
    co_return std::unexpected(std::move(why));
  }
  Told told = co_await node->open.drive->tell(std::move(args));
  co_return told;
}

Result<std::unique_ptr<Drive>> LiveStack::open_view(std::string_view name) {
  Result<std::unique_ptr<Drive>> view = Joint::open_view(name);
  StackNode* node = root_.get();
  while (!view && view.error() == Errc::kNotFound && !node->text.is_leaf &&
         find_service(node->text.name)->is_filter) {
    node = node->below[0].get();
    if (node->open.joint == nullptr) break;
    view = node->open.joint->open_view(name);
  }
  return view;
}

task::Task<LiveStack::Edited> LiveStack::edit(Stack stack, task::CancelToken token) {
  if (auto checked = check_stack(stack); !checked) co_return std::unexpected(checked.error());
  mark_shared_leaves(stack);
  const Result<void> turn = co_await turn_->acquire(1, token);
  if (!turn) co_return std::unexpected(StackError{0, turn.error().text()});
  const task::Units units(*turn_, 1);
  StackEdit change(*this, std::move(stack));
  Edited edited = co_await change.run(token);
  co_return edited;
}

task::Task<LiveStack::Moved> LiveStack::move(Handover& handover, task::CancelToken token) {
  const Result<void> turn = co_await turn_->acquire(1, token);
  if (!turn) co_return std::unexpected(StackError{0, turn.error().text()});
  const task::Units units(*turn_, 1);
  StackEdit change(*this, handover);
  const Edited moved = co_await change.run(token);
  if (!moved) co_return std::unexpected(moved.error());
  co_return change.waited();
}

task::Task<LiveStack::Edited> LiveStack::edit(std::string text, task::CancelToken token) {
  std::expected<Stack, StackError> stack = Stack::parse(text);
  if (!stack) co_return std::unexpected(stack.error());
  Edited edited = co_await edit(std::move(*stack), token);
  co_return edited;
}

task::Task<void> LiveStack::close() {
  const Result<void> turn = co_await turn_->acquire();
  const Result<void> tree = co_await layers_.acquire();
  CHECK(turn && tree, "nobody ends this wait");
  const task::Units turn_units(*turn_, 1);
  const task::Units tree_units(layers_, 1);
  const Result<void> held = co_await hold({});
  CHECK(held, "nobody ends this wait");
  lead_to(nullptr);
  StackOpener closer(env_, leaves_, nullptr);
  closer.have = std::move(retired_);
  closer.have.push_back(std::move(root_));
  co_await closer.close_rest(nullptr);
  release();
}

task::Task<LiveOpened> open_live_stack(env::Env& env, Stack stack, Leaves& leaves) {
  if (auto checked = check_stack(stack); !checked) co_return std::unexpected(checked.error());
  mark_shared_leaves(stack);
  auto turn = std::make_unique<task::Semaphore>(1);
  StackOpener opener(env, leaves, turn.get());
  StackOpener::Node root = co_await opener.open(stack);
  co_await opener.close_rest(nullptr);
  if (!root) co_return std::unexpected(root.error());
  co_return std::make_unique<LiveStack>(env, leaves, std::move(turn), std::move(*root));
}

}  // namespace cairn::drive
