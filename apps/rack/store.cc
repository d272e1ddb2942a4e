// SPDX-License-Identifier: Apache-2.0
#include "apps/rack/store.h"

#include <fmt/format.h>

#include <utility>

#include "apps/box/patience.h"
#include "apps/words.h"
#include "meta/etcd/etcd_store.h"
#include "meta/remote_store.h"
#include "rocks/rocks_store.h"

namespace cairn::apps {

namespace {

const char* advice(const Error& error) {
  if (error == Errc::kExists) {
    return "another process has it open: have that one serve it with 'cairn rack serve', and name "
           "meta://ADDRESS here";
  }
  if (error == Errc::kNotFound) return "make the folder that it is to be in";
  if (error == Errc::kCorrupt) return "restore it from a copy, or name another folder";
  return "name a folder that this user may write to";
}

}  // namespace

task::Task<Attempt<std::unique_ptr<meta::Store>>> open_store(env::Env& env, StoreUri uri) {
  if (uri.kind == StoreUri::Kind::kServed) {
    co_return std::make_unique<meta::RemoteStore>(env, meta::LinesOptions{.servers = uri.servers});
  }
  if (uri.kind == StoreUri::Kind::kEtcd) {
    co_return std::make_unique<meta::EtcdStore>(env, meta::LinesOptions{.servers = uri.servers});
  }
  Result<std::unique_ptr<meta::Store>> store = fail(Errc::kClosed, "not tried");
  Patience patience(env);
  for (bool again = true; again;) {
    store = co_await rocks::open_rocks_store(env, {.folder = uri.folder});
    again = co_await patience.after(store);
  }
  if (!store) {
    co_return refuse(fmt::format("the metadata in {} cannot be opened: {}: {}",
                                 in_quotes(uri.folder), store.error().text(),
                                 advice(store.error())));
  }
  co_return std::move(*store);
}

}  // namespace cairn::apps
