// SPDX-License-Identifier: Apache-2.0
#include "server/open/open_stack.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "fabric/host/remote_drive.h"
#include "rest/rest_drive.h"
#include "server/common/advice.h"
#include "server/common/drive_option.h"
#include "server/common/holder_retry.h"
#include "server/open/controller_link.h"
#include "server/open/http_endpoint.h"
#include "server/open/key_file.h"
#include "server/open/off_core.h"
#include "server/open/open_volume.h"
#include "server/open/target_uri.h"
#include "service/common/joint.h"
#include "stack/services.h"

namespace cairn::server {

namespace {

// Without a path for so long, a leg fails what it was asked, and others serve instead of it. Who
// has no other leg waits longer (place.h).
constexpr Duration kLegLossTimeout = 5_s;

// As it is from any folder.
std::string absolute(const std::string& path) {
  std::error_code error;
  const auto whole = std::filesystem::absolute(path, error).lexically_normal();
  return error ? path : whole.string();
}

bool names_file(const drive::Service& service, const drive::Stack::Option& option) {
  const auto known = std::ranges::find(service.options, option.key, &drive::ServiceOption::key);
  return known->kind == drive::ServiceOption::Kind::kFile && option.value != drive::kNoFile;
}

std::string without_size(drive::Spec spec) {
  if (spec.kind == drive::Spec::Kind::kFile) spec.size = 0;
  return spec.text();
}

bool is_remote(const std::string& leaf) { return leaf.find("://") != std::string::npos; }

struct OwnLayer {
  drive::OpenLayer own;
};

// A drive that says of itself that it takes no larger requests.
class ShorterTransfers final : private OwnLayer, public drive::Joint {
 public:
  ShorterTransfers(env::Env& env, std::unique_ptr<drive::Drive> drive, uint32_t max)
      : OwnLayer{{.drive = std::move(drive), .is_counted = false}}, Joint(env, own), max_(max) {}
  const drive::Geometry& geometry() const override {
    shape_ = Joint::geometry();
    shape_.transfer_blocks = std::min(shape_.transfer_blocks, max_);
    return shape_;
  }
  task::Task<void> close() override { return own.drive->close(); }

 private:
  const uint32_t max_;
  mutable drive::Geometry shape_;
};

// Whether it has the right form, without looking anything up.
Attempt<void> check_remote(const std::string& leaf) {
  return rest::is_place(leaf) ? check_http(leaf) : check_target_uri(leaf, Needs::kNamespace);
}

}  // namespace

Attempt<std::unique_ptr<StackPlan>> StackPlan::prepare(std::string_view text, LookUp when) {
  std::expected<drive::Stack, drive::StackError> stack = drive::Stack::parse(text);
  if (!stack) return refuse(stack.error().show(text));
  if (auto checked = drive::check_stack(*stack); !checked) {
    return refuse(checked.error().show(text));
  }
  std::unique_ptr<StackPlan> plan(new StackPlan());
  plan->text_ = text;
  if (Attempt<void> prepared = plan->prepare_leaves(*stack, false, when); !prepared) {
    return std::unexpected(prepared.error());
  }
  plan->stack_ = std::move(*stack);
  return plan;
}

Attempt<void> StackPlan::prepare_leaves(const drive::Stack& layer, bool is_leg, LookUp when) {
  if (!layer.is_leaf) {
    const bool are_legs = is_leg || drive::find_service(layer.name)->survives_loss;
    for (const drive::Stack& below : layer.below) {
      if (Attempt<void> prepared = prepare_leaves(below, are_legs, when); !prepared) {
        return prepared;
      }
    }
    // read_file() reads the others.
    return when == LookUp::kNow ? prepare_files(layer) : Attempt<void>();
  }
  const auto wrong = [&](const Problem& problem) {
    return refuse(drive::StackError{layer.place, problem.text}.show(text_));
  };
  if (is_remote(layer.name) && when == LookUp::kWhenOpened) {
    if (const Attempt<void> sound = check_remote(layer.name); !sound) return wrong(sound.error());
    sought_.emplace(layer.name, Sought{.is_leg = is_leg});
    return {};
  }
  if (is_remote(layer.name)) {
    Attempt<Remote> remote = find_remote(layer.name, is_leg);
    if (!remote) return wrong(remote.error());
    keep(layer.name, std::move(*remote));
    return {};
  }
  if (is_volume(layer.name)) {
    const Attempt<VolumeUri> volume = VolumeUri::parse(layer.name);
    return volume ? Attempt<void>() : wrong(volume.error());
  }
  Attempt<drive::Spec> spec = parse_drive(layer.name);
  if (!spec) return wrong(spec.error());
  specs_.emplace(without_size(*spec), *spec);
  specs_.emplace(layer.name, std::move(*spec));
  return {};
}

Attempt<StackPlan::Remote> StackPlan::find_remote(const std::string& leaf, bool is_leg) {
  if (rest::is_place(leaf)) {
    Attempt<rest::Endpoint> found = find_http(leaf);
    if (!found) return std::unexpected(found.error());
    return std::move(*found);
  }
  Attempt<std::string> text = resolve_names(leaf, system_resolver());
  if (!text) return std::unexpected(text.error());
  Attempt<fabric::Uri> uri = find_target_uri(*text, Needs::kNamespace);
  if (!uri) return std::unexpected(uri.error());
  if (is_leg && text->find("loss_timeout=") == std::string::npos) {
    uri->options.loss_timeout = kLegLossTimeout;
  }
  return RemoteUri{.uri = std::move(*uri), .text = std::move(*text)};
}

void StackPlan::keep(const std::string& leaf, Remote remote) {
  if (auto* const http = std::get_if<rest::Endpoint>(&remote)) {
    http_.emplace(rest::text_with_address(leaf, *http), *http);
    http_.emplace(leaf, std::move(*http));
    return;
  }
  auto& found = std::get<RemoteUri>(remote);
  remote_uris_.emplace(found.text, found);
  remote_uris_.emplace(leaf, std::move(found));
}

task::Task<void> StackPlan::look_up(env::Env& env) {
  if (sought_.empty()) co_return;
  const std::map<std::string, Sought> sought = sought_;
  std::map<std::string, Attempt<Remote>> all = co_await off_core(env, [&sought] {
    std::map<std::string, Attempt<Remote>> found;
    for (const auto& [leaf, how] : sought) found.emplace(leaf, find_remote(leaf, how.is_leg));
    return found;
  });
  for (auto& [leaf, remote] : all) {
    if (remote) {
      keep(leaf, std::move(*remote));
      sought_.erase(leaf);
    } else {
      sought_[leaf].problem = std::move(remote.error().text);
    }
  }
}

// The layers above go on knowing it as typed.
task::Task<Attempt<void>> StackPlan::find_late(env::Env& env, std::string leaf) {
  Sought& sought = sought_.at(leaf);
  if (!sought.problem.empty()) co_return refuse(std::exchange(sought.problem, {}));
  const bool is_leg = sought.is_leg;
  Attempt<Remote> remote =
      co_await off_core(env, [&leaf, is_leg] { return find_remote(leaf, is_leg); });
  if (!remote) co_return std::unexpected(remote.error());
  keep(leaf, std::move(*remote));
  sought_.erase(leaf);
  found_late_.insert_or_assign(made_whole({.name = leaf, .is_leaf = true}, false).name, leaf);
  co_return Attempt<void>();
}

Attempt<void> StackPlan::prepare_files(const drive::Stack& layer) {
  const drive::Service& service = *drive::find_service(layer.name);
  for (const drive::Stack::Option& option : layer.options) {
    if (!names_file(service, option)) continue;
    const Attempt<drive::FileContent> content = read_service_file(option.value);
    if (!content) return refuse(drive::StackError{option.place, content.error().text}.show(text_));
    files_.insert_or_assign(absolute(option.value), *content);
  }
  return {};
}

std::expected<drive::FileContent, std::string> StackPlan::read_file(const std::string& path) {
  if (const auto known = files_.extract(path)) return known.mapped();
  const Attempt<drive::FileContent> content = read_service_file(path);
  if (!content) return std::unexpected(content.error().text);
  return *content;
}

const fabric::Uri* StackPlan::place_of(const std::string& leaf) const {
  const auto found = remote_uris_.find(leaf);
  return found == remote_uris_.end() ? nullptr : &found->second.uri;
}

std::string StackPlan::whole_text() const { return made_whole(stack_, true).text(); }
std::string StackPlan::grown_text() const { return whole_stack().text(); }

drive::Stack StackPlan::made_whole(const drive::Stack& layer, bool with_sizes) const {
  drive::Stack whole = layer;
  if (!layer.is_leaf) {
    for (drive::Stack& below : whole.below) below = made_whole(below, with_sizes);
    const drive::Service& service = *drive::find_service(layer.name);
    for (drive::Stack::Option& option : whole.options) {
      if (names_file(service, option)) option.value = absolute(option.value);
    }
  } else if (const auto found = remote_uris_.find(layer.name); found != remote_uris_.end()) {
    whole.name = found->second.text;
  } else if (const auto http = http_.find(layer.name); http != http_.end()) {
    whole.name = rest::text_with_address(layer.name, http->second);
  } else if (const auto spec = specs_.find(layer.name); spec != specs_.end()) {
    whole.name = with_sizes ? spec->second.text() : without_size(spec->second);
  }
  return whole;
}

drive::Stack StackPlan::as_opened(drive::Stack layer) const {
  for (drive::Stack& below : layer.below) below = as_opened(std::move(below));
  const auto late = layer.is_leaf ? found_late_.find(layer.name) : found_late_.end();
  if (late != found_late_.end()) layer.name = late->second;
  return layer;
}

task::Task<drive::Leaves::Leaf> StackPlan::open(env::Env& env, std::string text) {
  if (sought_.contains(text)) {
    const Attempt<void> found = co_await find_late(env, text);
    if (!found) co_return std::unexpected(found.error().text);
  }
  if (const auto found = http_.find(text); found != http_.end()) {
    Leaf leaf = co_await rest::RestDrive::open(env, found->second);
    co_return leaf;
  }
  if (const auto found = remote_uris_.find(text); found != remote_uris_.end()) {
    Attempt<std::unique_ptr<fabric::RemoteDrive>> drive =
        co_await open_drive(env, found->second.uri);
    if (!drive) co_return std::unexpected(drive.error().text);
    if (transfer_blocks_ == 0) co_return std::move(*drive);
    co_return std::make_unique<ShorterTransfers>(env, std::move(*drive), transfer_blocks_);
  }
  if (is_volume(text)) {
    Attempt<VolumeUri> volume = VolumeUri::parse(text);
    if (!volume) co_return std::unexpected(volume.error().text);
    Attempt<std::unique_ptr<drive::Drive>> drive = co_await open_volume(env, std::move(*volume));
    if (!drive) co_return std::unexpected(drive.error().text);
    co_return std::move(*drive);
  }
  if (borrowed_ != nullptr) co_return open_borrowed(env, specs_.at(text));
  Leaf leaf = co_await open_source(env, specs_.at(text), nullptr);
  co_return leaf;
}

drive::Leaves::Leaf StackPlan::open_borrowed(env::Env& env, const drive::Spec& spec) {
  Result<std::unique_ptr<drive::Drive>> drive = std::exchange(borrowed_, nullptr)->open(env);
  if (!drive) return std::unexpected(cannot_serve(spec, drive.error()).text);
  borrowed_drive_ = drive->get();
  home_ = &env;
  return std::move(*drive);
}

void StackPlan::gone(const drive::Drive* drive) {
  sources_.erase(drive);
  if (drive != borrowed_drive_) return;
  borrowed_drive_ = nullptr;
  lender_->returned(*home_);
}

task::Task<drive::Leaves::Leaf> StackPlan::open_shared(env::Env& env, std::string text) {
  if (shared_ == nullptr) {
    own_shared_ = std::make_unique<drive::SharedSources>(env);
    shared_ = own_shared_.get();
  }
  Leaf leaf = co_await open_source(env, specs_.at(text), shared_);
  co_return leaf;
}

task::Task<drive::Leaves::Leaf> StackPlan::open_source(env::Env& env, const drive::Spec& spec,
                                                       drive::SharedSources* shared) {
  Result<std::unique_ptr<drive::Source>> source = fail(Errc::kClosed, "not tried");
  HolderRetry retry(env);
  for (bool again = true; again;) {
    if (shared == nullptr) {
      source = drive::Source::make(env, spec);
    } else {
      source = co_await shared->make(env, spec);
    }
    again = co_await retry.after(source);
  }
  if (!source) co_return std::unexpected(cannot_serve(spec, source.error()).text);
  Result<std::unique_ptr<drive::Drive>> drive = (*source)->open(env);
  if (!drive) co_return std::unexpected(cannot_serve(spec, drive.error()).text);
  sources_[drive->get()] = std::move(*source);
  co_return std::move(*drive);
}

task::Task<Attempt<std::unique_ptr<drive::LiveStack>>> StackPlan::open(env::Env& env) {
  co_await look_up(env);
  drive::Leaves& leaves = *this;
  drive::LiveOpened live = co_await drive::open_live_stack(env, whole_stack(), leaves);
  may_format_ = false;
  if (live) co_return std::move(*live);
  co_return refuse(live.error().show(text_));
}

void StackPlan::learn(StackPlan& other) {
  for (auto& [text, spec] : other.specs_) specs_.insert_or_assign(text, spec);
  for (auto& [text, found] : other.remote_uris_) remote_uris_.insert_or_assign(text, found);
  for (auto& [text, found] : other.http_) http_.insert_or_assign(text, found);
  for (auto& [path, content] : other.files_) files_.insert_or_assign(path, content);
}

task::Task<Attempt<void>> StackPlan::edit(drive::LiveStack& live, std::unique_ptr<StackPlan> to) {
  learn(*to);
  may_format_ = to->may_format_;
  const drive::LiveStack::Edited edited = co_await live.edit(as_opened(to->whole_stack()));
  may_format_ = false;
  if (!edited) co_return refuse(edited.error().show(to->text_));
  text_ = std::move(to->text_);
  stack_ = std::move(to->stack_);
  co_return Attempt<void>();
}

// Asks the mover, and keeps the plan of what it gave.
class StackPlan::Handing final : public drive::Handover {
 public:
  Handing(env::Env& env, StackPlan& plan, StackMover& mover)
      : env_(env), plan_(plan), mover_(mover) {}

  task::Task<std::expected<drive::Stack, drive::StackError>> give() override {
    Attempt<std::unique_ptr<StackPlan>> to = co_await mover_.give(env_);
    if (!to) co_return std::unexpected(drive::StackError{0, to.error().text});
    given = std::move(*to);
    plan_.learn(*given);
    co_return given->whole_stack();
  }
  task::Task<bool> take_back() override { return mover_.take_back(env_); }

  std::unique_ptr<StackPlan> given;

 private:
  env::Env& env_;
  StackPlan& plan_;
  StackMover& mover_;
};

task::Task<Attempt<Duration>> StackPlan::move(env::Env& env, drive::LiveStack& live,
                                              StackMover& mover) {
  Handing handing(env, *this, mover);
  const drive::LiveStack::Moved moved = co_await live.move(handing);
  if (!moved) co_return refuse(moved.error().text);
  text_ = std::move(handing.given->text_);
  stack_ = std::move(handing.given->stack_);
  co_return *moved;
}

namespace {

std::string find_leaf(const drive::Stack& layer, const auto& is_wanted) {
  if (layer.is_leaf) return is_wanted(layer.name) ? layer.name : "";
  for (const drive::Stack& below : layer.below) {
    if (std::string found = find_leaf(below, is_wanted); !found.empty()) return found;
  }
  return "";
}

}  // namespace

std::string StackPlan::leaf_in_memory() const {
  return find_leaf(stack_, [this](const std::string& text) {
    const auto spec = specs_.find(text);
    return spec != specs_.end() && spec->second.path.empty();
  });
}

}  // namespace cairn::server
