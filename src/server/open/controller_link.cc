// SPDX-License-Identifier: Apache-2.0
#include "server/open/controller_link.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/uuid.h"
#include "base/words.h"
#include "fabric/host/controller.h"
#include "fabric/host/namespace_info.h"
#include "server/open/explain.h"

namespace cairn::server {

namespace {

// What a user is shown of a long list.
constexpr size_t kShownMax = 16;

std::string shown(const std::vector<uint32_t>& nsids) {
  const std::span<const uint32_t> first(nsids.data(), std::min(nsids.size(), kShownMax));
  std::string text = fmt::format("{}", fmt::join(first, ", "));
  if (first.size() < nsids.size()) {
    text += fmt::format(" and {} more", nsids.size() - first.size());
  }
  return text;
}

// The subsystem may be missing, or just the namespace: asks.
task::Task<Problem> explain_missing(env::Env& env, const fabric::Uri& uri) {
  Attempt<std::unique_ptr<ControllerLink>> link = co_await ControllerLink::open(env, uri);
  if (!link) co_return link.error();
  Problem problem = co_await missing_namespace(**link, uri);
  co_await (*link)->close();
  co_return problem;
}

}  // namespace

task::Task<Attempt<std::unique_ptr<fabric::RemoteDrive>>> open_drive(env::Env& env,
                                                                     fabric::Uri uri) {
  Result<std::unique_ptr<fabric::RemoteDrive>> drive =
      co_await fabric::RemoteDrive::open(env, uri, env.stop_token());
  if (drive) co_return std::move(*drive);
  if (drive.error() == Errc::kNotFound) {
    const Problem problem = co_await explain_missing(env, uri);
    co_return std::unexpected(problem);
  }
  co_return std::unexpected(server::cannot_connect(drive.error(), uri, uri.paths.front()));
}

task::Task<Attempt<std::unique_ptr<ControllerLink>>> ControllerLink::open(env::Env& env,
                                                                          const fabric::Uri& uri,
                                                                          size_t path) {
  fabric::HostSession::Options options{
      .address = uri.paths[path], .nqn = uri.nqn, .host = uri.options};
  options.host.queues = 1;
  fabric::name_host(env, options.host);
  for (;;) {
    std::unique_ptr<ControllerLink> link(new ControllerLink());
    fabric::HostSession::User& user = *link;
    link->session_ = std::make_unique<fabric::HostSession>(env, options, user);
    const Result<void> opened = co_await link->session_->open(env.stop_token());
    if (opened) co_return link;
    co_await link->close();
    if (!link->session_->wants_flow_control()) {
      co_return std::unexpected(server::cannot_connect(opened.error(), uri, options.address));
    }
    options.flow_control = true;
  }
}

task::Task<Attempt<uint32_t>> nsid_of(ControllerLink& link, const fabric::Uri& uri) {
  const Result<uint32_t> nsid = co_await fabric::find_nsid(
      link.session(), {.nsid = uri.nsid, .uuid = uri.uuid}, link.token());
  if (nsid) co_return *nsid;
  if (nsid.error() != Errc::kNotFound) {
    co_return std::unexpected(server::cannot_do("looking for the namespace", nsid.error()));
  }
  const Problem problem = co_await missing_namespace(link, uri);
  co_return std::unexpected(problem);
}

task::Task<Problem> missing_namespace(ControllerLink& link, const fabric::Uri& uri) {
  const Result<std::vector<uint32_t>> there =
      co_await fabric::active_namespaces(link.session(), link.token());
  const std::string which = uri.uuid == Uuid{}
                                ? fmt::to_string(uri.nsid)
                                : fmt::format("with the UUID {}", uuid_text(uri.uuid));
  const std::string what = fmt::format("{} has no namespace {}", in_quotes(uri.nqn), which);
  if (!there || there->empty()) co_return Problem{what + " for this host, nor any other"};
  co_return Problem{
      fmt::format("{}; it has {}: write ?nsid={}", what, shown(*there), there->front())};
}

}  // namespace cairn::server
