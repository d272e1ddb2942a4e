// SPDX-License-Identifier: Apache-2.0
#include "kv/chain/node.h"

#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "kv/chain/message_format.h"
#include "task/gate.h"
#include "task/sync.h"

namespace cairn::kv::chain {

using task::CancelToken;
using task::Task;

namespace {

constexpr std::string_view kIdentityKey = "m:member";

class IdentityChange final : public Change {
 public:
  IdentityChange(uint64_t drawn, bool is_empty)
      : Change(Needs::kValues), drawn_(drawn), is_empty_(is_empty) {}

  Result<void> decide(std::span<const std::optional<Entry>> now, std::span<Edit> edits) override {
    if (now[0]) {
      const Result<uint64_t> known = decode_member_id(as_bytes(now[0]->value));
      if (!known) return fail(known.error());
      id = *known;
      return {};
    }
    if (!is_empty_) return fail(Errc::kExists, "the store has keys that are not a cluster's");
    id = drawn_;
    edits[0] = {.kind = Edit::Kind::kPut, .value = encode_member_id(id), .expires = {}};
    return {};
  }
  uint64_t id = 0;

 private:
  const uint64_t drawn_;
  const bool is_empty_;
};

ring::Member member_of(ring::MemberId self, const NodeOptions& options) {
  return {.id = self,
          .incarnation = {},
          .address = options.address.text(),
          .name = options.name,
          .resp = options.resp,
          .location = options.location,
          .drives = options.drives};
}

}  // namespace

Task<Result<ring::MemberId>> identity(env::Env& env, Keyspace& store) {
  uint64_t drawn = 0;
  while (drawn == 0) env.fill_secret(std::as_writable_bytes(std::span(&drawn, 1)));
  IdentityChange change(drawn, store.size() == 0);
  const std::string_view key = kIdentityKey;
  const Result<void> done = co_await store.transact({&key, 1}, change);
  if (!done) co_return fail(done.error());
  co_return ring::MemberId(change.id);
}

Node::Node(env::Env& env, Keyspace& keys, meta::Store& store, ring::MemberId self,
           const NodeOptions& options)
    : self_(self),
      options_(options),
      peers_(env, options.security),
      replica_(env, keys, peers_, self, options.replica),
      membership_(env, store, member_of(self, options), options.membership,
                  [this](std::shared_ptr<const ring::View> view, ring::Incarnation mine) {
                    replica_.set_view(std::move(view), mine);
                  }),
      controller_(env, store, options.controller),
      service_(replica_),
      server_(env, service_, options_.server) {
  replica_.set_may_serve([this] { return membership_.is_held(); });
  replica_.set_on_copied([this](std::vector<std::pair<uint64_t, ring::Epoch>> copied) {
    membership_.set_copied(std::move(copied));
  });
}

bool Node::has_left() const {
  const ring::View* view = replica_.view();
  return view != nullptr && view->member(self_) == nullptr;
}

Result<void> Node::listen() {
  if (is_listening_) return {};
  const Result<env::Address> at = server_.listen(options_.address);
  if (!at) return fail(at.error());
  is_listening_ = true;
  return {};
}

Task<Result<void>> Node::run(CancelToken token) {
  const Result<void> result = listen();
  if (result) {
    task::CancelSource stop(token);
    task::Gate gate;
    gate.spawn(membership_.run(stop.token()));
    gate.spawn(controller_.run(stop.token()));
    task::Event never;
    [[maybe_unused]] const Result<void> stopped = co_await never.wait(token);
    stop.request();
    co_await gate.close();
  }
  co_await server_.close();
  co_await replica_.close();
  co_await peers_.close();
  co_return result;
}

}  // namespace cairn::kv::chain
