// SPDX-License-Identifier: Apache-2.0
#include "apps/drive/open_stack.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "apps/box/drive_option.h"
#include "apps/key_file.h"
#include "apps/nvme/connect.h"
#include "apps/nvme/place.h"
#include "apps/words.h"
#include "drive/services.h"
#include "fabric/host/remote_drive.h"
#include "rest/rest_drive.h"

namespace cairn::apps {

namespace {

// Where a drive behind HTTP is, its host looked up.
Attempt<rest::Place> find_http(std::string_view text) {
  std::expected<rest::Place, std::string> place = rest::Place::parse(text);
  if (!place) {
    return refuse(fmt::format("{} is no place: {}; write http://HOST:PORT/PATH?size=1G",
                              in_quotes(text), place.error()));
  }
  if (place->name.empty()) return std::move(*place);
  const auto address = system_resolver()(place->name);
  const auto parsed = address
                          ? env::Address::parse(fmt::format("{}:{}", *address, place->port))
                          : Result<env::Address>(fail(Errc::kNotFound, "it cannot be looked up"));
  if (!parsed) {
    return refuse(fmt::format(
        "the host name {} cannot be looked up ({}): check its spelling, or write an IP address",
        in_quotes(place->name), address ? *address : address.error()));
  }
  place->address = *parsed;
  return std::move(*place);
}

}  // namespace

StackPlan::StackPlan()
    : sources_([this](std::string_view text) -> std::expected<drive::Spec, std::string> {
        return specs_.at(std::string(text));
      }) {}

Attempt<std::unique_ptr<StackPlan>> StackPlan::prepare(std::string_view text) {
  std::expected<drive::Stack, drive::StackError> stack = drive::Stack::parse(text);
  if (!stack) return refuse(stack.error().show(text));
  if (auto checked = drive::check_stack(*stack); !checked) {
    return refuse(checked.error().show(text));
  }
  std::unique_ptr<StackPlan> plan(new StackPlan());
  if (Attempt<void> prepared = plan->prepare_leaves(*stack, text); !prepared) {
    return std::unexpected(prepared.error());
  }
  plan->stack_ = std::move(*stack);
  return plan;
}

Attempt<void> StackPlan::prepare_leaves(const drive::Stack& layer, std::string_view text) {
  if (!layer.is_leaf) {
    for (const drive::Stack& below : layer.below) {
      if (Attempt<void> prepared = prepare_leaves(below, text); !prepared) return prepared;
    }
    return prepare_files(layer, text);
  }
  const auto wrong = [&](const Problem& problem) {
    return refuse(drive::StackError{layer.place, problem.text}.show(text));
  };
  if (rest::is_place(layer.name)) {
    Attempt<rest::Place> place = find_http(layer.name);
    if (!place) return wrong(place.error());
    places_.emplace(layer.name, std::move(*place));
    return {};
  }
  if (layer.name.find("://") != std::string::npos) {
    Attempt<fabric::Uri> uri = find_place(layer.name, Needs::kNamespace);
    if (!uri) return wrong(uri.error());
    uris_.emplace(layer.name, std::move(*uri));
    return {};
  }
  Attempt<drive::Spec> spec = parse_drive(layer.name);
  if (!spec) return wrong(spec.error());
  specs_.emplace(layer.name, std::move(*spec));
  return {};
}

Attempt<void> StackPlan::prepare_files(const drive::Stack& layer, std::string_view text) {
  const drive::Service& service = *drive::find_service(layer.name);
  for (const drive::Stack::Option& option : layer.options) {
    const auto known = std::ranges::find(service.options, option.key, &drive::ServiceOption::key);
    if (known->kind != drive::ServiceOption::Kind::kFile || option.value == drive::kNoFile)
      continue;
    const Attempt<drive::FileContent> content = read_service_file(option.value);
    if (!content) return refuse(drive::StackError{option.place, content.error().text}.show(text));
    files_.insert_or_assign(option.value, *content);
  }
  return {};
}

std::expected<drive::FileContent, std::string> StackPlan::read_file(const std::string& path) {
  if (const auto known = files_.find(path); known != files_.end()) return known->second;
  const Attempt<drive::FileContent> content = read_service_file(path);
  if (!content) return std::unexpected(content.error().text);
  return *content;
}

task::Task<drive::Leaves::Leaf> StackPlan::open(env::Env& env, std::string text) {
  if (const auto place = places_.find(text); place != places_.end()) {
    Leaf leaf = co_await rest::RestDrive::open(env, place->second);
    co_return leaf;
  }
  const auto uri = uris_.find(text);
  if (uri == uris_.end()) {
    Leaf leaf = co_await sources_.open(env, text);
    co_return leaf;
  }
  Attempt<std::unique_ptr<fabric::RemoteDrive>> drive = co_await open_drive(env, uri->second);
  if (!drive) co_return std::unexpected(drive.error().text);
  co_return std::move(*drive);
}

task::Task<Attempt<std::unique_ptr<drive::Drive>>> StackPlan::open(env::Env& env) {
  drive::Leaves& leaves = *this;
  drive::Opened drive = co_await drive::open_stack(env, stack_, leaves);
  if (drive) co_return std::move(*drive);
  co_return refuse(drive.error().show(stack_.text()));
}

}  // namespace cairn::apps
