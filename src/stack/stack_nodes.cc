// SPDX-License-Identifier: Apache-2.0
#include "stack/stack_nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "drive/blank.h"
#include "service/common/trial_drive.h"
#include "stack/services.h"
#include "task/when_all.h"

namespace cairn::drive {

namespace {

// What the options of a layer that name files get with them.
std::expected<void, StackError> read_files(const Stack& layer, const Service& service,
                                           ServiceParts& parts) {
  for (const ServiceOption& option : service.options) {
    if (option.kind != ServiceOption::Kind::kFile) continue;
    const std::string& path = parts.options.text(option.key);
    if (path == kNoFile) continue;
    std::expected<FileContent, std::string> content = parts.files.read_file(path);
    if (content) {
      parts.contents.emplace(option.key, *content);
      continue;
    }
    const auto given = std::ranges::find(layer.options, option.key, &Stack::Option::key);
    const size_t place = given == layer.options.end() ? layer.place : given->place;
    return std::unexpected(StackError{place, std::move(content.error())});
  }
  return {};
}

// Opens what is missing below one layer, or what has to be opened anew, and puts it into the stack.
class LateNodes final : public LateDrives {
 public:
  LateNodes(env::Env& env, Leaves& leaves, task::Semaphore& turn, StackNode& node)
      : env_(env), leaves_(leaves), turn_(turn), node_(node) {}

  task::Task<Result<std::unique_ptr<Drive>>> open(size_t index, task::CancelToken token) override {
    const Result<void> mine = co_await turn_.acquire(1, token);
    if (!mine) co_return fail(mine.error());
    const task::Units turn(turn_, 1);
    StackOpener opener(env_, leaves_, &turn_);
    opener.keep_all();
    StackOpener::Node opened = co_await opener.open(node_.below[index]->text);
    co_await opener.close_rest(nullptr);
    if (!opened) {
      node_.below[index]->problem = opened.error().text;
      co_return fail(Errc::kUnreachable, "it still cannot be opened");
    }
    node_.below[index] = std::move(*opened);
    co_return std::make_unique<Joint>(env_, node_.below[index]->open);
  }

  task::Task<Result<void>> reopen(Drive& drive, task::CancelToken token) override {
    const Result<void> mine = co_await turn_.acquire(1, token);
    if (!mine) co_return fail(mine.error());
    const task::Units turn(turn_, 1);
    auto* joint = dynamic_cast<Joint*>(&drive);
    const std::optional<size_t> index = index_of(drive);
    if (joint == nullptr || !index) co_return fail(Errc::kNotFound, "no drive below this one");
    const Result<void> held = co_await joint->hold(token);
    if (!held) co_return held;
    joint->lead_to(nullptr);
    const Result<void> done = co_await exchange(*index);
    if (done) {
      joint->lead_to(&node_.below[*index]->open);
      closed_.erase(&drive);
    } else {
      closed_[&drive] = *index;
    }
    joint->release();
    co_return done;
  }

 private:
  std::optional<size_t> index_of(const Drive& drive) const {
    if (const auto at = closed_.find(&drive); at != closed_.end()) return at->second;
    for (size_t i = 0; i < node_.below.size(); ++i) {
      if (node_.below[i]->open.joint == &drive) return i;
    }
    return std::nullopt;
  }

  // Closes what is there, if it is, and opens the same.
  task::Task<Result<void>> exchange(size_t index) {
    auto missing = std::make_unique<StackNode>();
    missing->text = node_.below[index]->text;
    StackOpener opener(env_, leaves_, &turn_);
    opener.have.push_back(std::exchange(node_.below[index], std::move(missing)));
    co_await opener.close_rest(nullptr);
    StackOpener::Node opened = co_await opener.open(node_.below[index]->text);
    co_await opener.close_rest(nullptr);
    if (!opened) {
      node_.below[index]->problem = opened.error().text;
      co_return fail(Errc::kUnreachable, "it cannot be opened again");
    }
    node_.below[index] = std::move(*opened);
    co_return Result<void>();
  }

  env::Env& env_;
  Leaves& leaves_;
  task::Semaphore& turn_;
  StackNode& node_;
  std::map<const Drive*, size_t> closed_;  // joints that lead nowhere, and where they led
};

}  // namespace

bool is_filter(const Stack& stack) { return !stack.is_leaf && find_service(stack.name)->is_filter; }

StackNode& without_filters(StackNode& node) {
  StackNode* bare = &node;
  while (is_filter(bare->text) && !bare->below.empty()) bare = bare->below[0].get();
  return *bare;
}

std::unique_ptr<StackNode> StackOpener::take(const Stack& stack) {
  const auto at = std::ranges::find_if(have, [&](const auto& one) { return one->text == stack; });
  if (at == have.end()) return nullptr;
  std::unique_ptr<StackNode> node = std::move(*at);
  have.erase(at);
  return node;
}

StackOpener StackOpener::on_trial() const {
  StackOpener trial(env_, leaves_, nullptr);
  trial.failed_ = failed_;
  trial.may_format_ = may_format_;
  for (const auto& node : have) {
    auto copy = std::make_unique<StackNode>();
    copy->text = node->text;
    copy->open.drive = std::make_unique<TrialDrive>(*without_filters(*node).open.drive);
    copy->is_kept = true;
    trial.have.push_back(std::move(copy));
  }
  return trial;
}

task::Task<StackOpener::Node> StackOpener::open(const Stack& stack) {
  if (std::unique_ptr<StackNode> node = take(stack)) co_return node;
  if (stack.is_leaf) {
    Node leaf = co_await open_leaf(stack);
    co_return leaf;
  }
  Node service = co_await open_service(stack);
  co_return service;
}

task::Task<StackOpener::Node> StackOpener::open_leaf(const Stack& stack) {
  if (const auto before = failed_.find(stack.name); before != failed_.end()) {
    co_return std::unexpected(StackError{stack.place, before->second});
  }
  task::Task<Leaves::Leaf> opening =
      stack.is_shared ? leaves_.open_shared(env_, stack.name) : leaves_.open(env_, stack.name);
  Leaves::Leaf leaf = co_await std::move(opening);
  if (!leaf) co_return std::unexpected(StackError{stack.place, std::move(leaf.error())});
  auto node = std::make_unique<StackNode>();
  node->text = stack;
  node->open.drive = std::move(*leaf);
  co_return node;
}

task::Task<StackOpener::Node> StackOpener::open_service(const Stack& stack) {
  const Service& service = *find_service(stack.name);
  std::vector<task::Task<Node>> opening;
  opening.reserve(stack.below.size());
  for (const Stack& below : stack.below) opening.push_back(open(below));
  std::vector<Node> opened = co_await task::when_all(std::move(opening));

  auto node = std::make_unique<StackNode>();
  node->text = stack;
  const StackError* lost = nullptr;
  std::vector<std::unique_ptr<Drive>> joints;
  for (size_t i = 0; i < opened.size(); ++i) {
    if (opened[i]) {
      node->below.push_back(std::move(*opened[i]));
      joints.push_back(std::make_unique<Joint>(env_, node->below.back()->open));
      continue;
    }
    if (lost == nullptr) lost = &opened[i].error();
    auto missing = std::make_unique<StackNode>();
    missing->text = stack.below[i];
    missing->problem = opened[i].error().text;
    node->below.push_back(std::move(missing));
    joints.push_back(nullptr);
  }
  StackError failed;
  if (lost != nullptr && !service.survives_loss) {
    failed = *lost;
  } else {
    if (service.survives_loss && turn_ != nullptr) {
      node->late = std::make_unique<LateNodes>(env_, leaves_, *turn_, *node);
    }
    ServiceParts parts{.env = env_,
                       .below = joints,
                       .options = *read_options(stack),
                       .contents = {},
                       .files = leaves_,
                       .late = node->late.get(),
                       .may_format = may_format_};
    if (auto read = read_files(stack, service, parts); !read) {
      failed = std::move(read.error());
    } else {
      Result<std::unique_ptr<Drive>> drive = co_await service.open(std::move(parts));
      if (drive) {
        node->open.drive = std::move(*drive);
        co_return node;
      }
      std::string why = co_await why_not(*node, drive.error());
      failed = {stack.place, std::move(why)};
      if (lost != nullptr) failed.text += fmt::format("; below it: {}", lost->text);
    }
  }
  joints.clear();
  co_await take_apart(std::move(node));
  co_return std::unexpected(std::move(failed));
}

// Of a drive that is not blank it says which one that is and what it holds.
task::Task<std::string> StackOpener::why_not(const StackNode& node, Error error) {
  const auto number = static_cast<size_t>(error.detail());
  if (!is_not_blank(error) || number == 0 || number > node.below.size() ||
      node.below[number - 1]->open.drive == nullptr) {
    co_return fmt::format("{} cannot be opened: {}", node.text.name, error.text());
  }
  const StackNode& below = *node.below[number - 1];
  const Result<std::optional<Remains>> found = co_await find_remains(env_, *below.open.drive);
  const std::string what =
      found && *found ? fmt::format("{} at byte {}", (*found)->what, (*found)->byte) : "data";
  co_return fmt::format(
      "{} cannot be opened: {} holds something else, {}, which would be lost; --format takes it "
      "nevertheless",
      node.text.name, below.text.text(), what);
}

task::Task<void> StackOpener::take_apart(std::unique_ptr<StackNode> node) {
  if (node->is_kept || (node->text.is_leaf && node->open.drive != nullptr)) {
    have.push_back(std::move(node));
    co_return;
  }
  if (node->open.drive != nullptr) {
    co_await node->open.drive->close();
    node->open.drive.reset();
  }
  for (std::unique_ptr<StackNode>& below : node->below) co_await take_apart(std::move(below));
}

task::Task<void> StackOpener::close_rest(StackNodes* retired) {
  StackNodes rest = std::move(have);
  have.clear();
  while (!rest.empty()) {
    std::unique_ptr<StackNode> node = std::move(rest.back());
    rest.pop_back();
    if (node->open.has_lent && retired != nullptr) {
      retired->push_back(std::move(node));
      continue;
    }
    if (node->open.drive != nullptr) {
      co_await node->open.drive->close();
      const Drive* closed = node->open.drive.get();
      node->open.drive.reset();
      if (node->text.is_leaf) leaves_.gone(closed);
    }
    for (std::unique_ptr<StackNode>& below : node->below) rest.push_back(std::move(below));
  }
}

void StackOpener::list_missing(const Stack& stack, bool may_fail,
                               std::map<std::string, size_t>& counted,
                               std::vector<std::pair<const Stack*, bool>>& missing) const {
  if (stack.is_leaf) {
    size_t& left = counted[stack.name];
    if (left > 0) {
      --left;
    } else {
      missing.emplace_back(&stack, may_fail);
    }
    return;
  }
  const bool survives = find_service(stack.name)->survives_loss;
  for (const Stack& below : stack.below) {
    list_missing(below, may_fail || survives, counted, missing);
  }
}

task::Task<std::expected<void, StackError>> StackOpener::open_leaves(
    const Stack& stack, std::map<std::string, size_t>& counted) {
  std::vector<std::pair<const Stack*, bool>> missing;
  list_missing(stack, false, counted, missing);
  std::vector<task::Task<Node>> opening;
  opening.reserve(missing.size());
  for (const auto& [leaf, may_fail] : missing) opening.push_back(open_leaf(*leaf));
  std::vector<Node> opened = co_await task::when_all(std::move(opening));
  std::expected<void, StackError> outcome;
  for (size_t i = 0; i < opened.size(); ++i) {
    if (opened[i]) {
      have.push_back(std::move(*opened[i]));
    } else if (missing[i].second) {
      failed_[missing[i].first->name] = opened[i].error().text;
    } else if (outcome) {
      outcome = std::unexpected(opened[i].error());
    }
  }
  co_return outcome;
}

}  // namespace cairn::drive
