// SPDX-License-Identifier: Apache-2.0
#include "kv/chain/service.h"

#include <utility>

#include "kv/ring/view_format.h"

namespace cairn::kv::chain {

using task::CancelToken;
using task::Task;

namespace {

// Who has a key is the tenant of that name, whatever it says.
std::string tenant_of(const rpc::KnownClient& client) { return client.name.substr(0, kTenantMax); }

}  // namespace

std::optional<rpc::Method> Service::find(uint16_t method) const {
  switch (static_cast<Call>(method)) {
    case Call::kGet:
      return rpc::Method{.verb = "get", .needs = rpc::Role::kReader};
    case Call::kWrite:
      return rpc::Method{.verb = "write", .needs = rpc::Role::kWriter};
    case Call::kForward:
      return rpc::Method{.verb = "forward", .needs = rpc::Role::kWriter};
    case Call::kCopy:
      return rpc::Method{.verb = "copy", .needs = rpc::Role::kWriter};
    case Call::kFetch:
      return rpc::Method{.verb = "fetch", .needs = rpc::Role::kWriter};
    case Call::kNames:
      return rpc::Method{.verb = "name keys", .needs = rpc::Role::kWriter};
    case Call::kView:
      return rpc::Method{.verb = "view", .needs = rpc::Role::kReader};
  }
  return std::nullopt;
}

Task<Result<std::string>> Service::call(uint16_t method, std::string body, rpc::Caller caller,
                                        CancelToken token) {
  switch (static_cast<Call>(method)) {
    case Call::kGet: {
      Result<GetRequest> request = decode_get_request(as_bytes(body));
      if (!request) co_return fail(request.error());
      if (caller.client != nullptr) request->sender.tenant = tenant_of(*caller.client);
      const GetReply reply = co_await replica_.get(std::move(*request), token);
      co_return encode(reply);
    }
    case Call::kWrite: {
      Result<WriteRequest> request = decode_write_request(as_bytes(body));
      if (!request) co_return fail(request.error());
      if (caller.client != nullptr) request->tenant = tenant_of(*caller.client);
      const WriteReply reply = co_await replica_.write(std::move(*request), token);
      co_return encode(reply);
    }
    case Call::kForward: {
      Result<ForwardRequest> request = decode_forward_request(as_bytes(body));
      if (!request) co_return fail(request.error());
      const PassReply reply = co_await replica_.forward(std::move(*request), token);
      co_return encode(reply);
    }
    case Call::kCopy: {
      Result<CopyRequest> request = decode_copy_request(as_bytes(body));
      if (!request) co_return fail(request.error());
      const PassReply reply = co_await replica_.copy(std::move(*request), token);
      co_return encode(reply);
    }
    case Call::kFetch: {
      Result<FetchRequest> request = decode_fetch_request(as_bytes(body));
      if (!request) co_return fail(request.error());
      const FetchReply reply = co_await replica_.fetch(std::move(*request));
      co_return encode(reply);
    }
    case Call::kNames: {
      const Result<NamesRequest> request = decode_names_request(as_bytes(body));
      if (!request) co_return fail(request.error());
      const NamesReply reply = co_await replica_.names(*request);
      co_return encode(reply);
    }
    case Call::kView:
      if (replica_.view() == nullptr) co_return fail(Errc::kNotFound, "there is no view yet");
      co_return ring::encode(*replica_.view());
  }
  co_return fail(Errc::kUnsupported, "no such call of chains");
}

}  // namespace cairn::kv::chain
