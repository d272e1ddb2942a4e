// SPDX-License-Identifier: Apache-2.0
#include "examples/ledger.h"

#include <utility>

#include "base/field_coder.h"

namespace cairn::examples {

using rpc::Reply;
using task::CancelToken;
using task::Task;

namespace {

std::string encode(uint64_t number) {
  FieldWriter writer;
  writer.number(number);
  return std::move(writer.out);
}

Result<uint64_t> decode(const std::string& body) {
  FieldReader reader(as_bytes(body));
  uint64_t number = 0;
  reader.number(number);
  if (!reader.is_over()) return fail(Errc::kCorrupt, "a number makes no sense");
  return number;
}

// A refusal is an error like others here.
Result<uint64_t> number_of(const Result<Reply>& reply) {
  if (!reply) return fail(reply.error());
  if (reply->refusal) return fail(*reply->refusal, "the ledger refuses");
  return decode(reply->body);
}

rpc::MethodCall request(LedgerMethod method, std::string body = {}) {
  return {.method = static_cast<uint16_t>(method), .body = std::move(body)};
}

rpc::ClientOptions of_ledger(rpc::ClientOptions options) {
  options.session.service = "ledger";
  options.session.service_version = {.major = 1};
  return options;
}

}  // namespace

std::optional<rpc::Method> Ledger::find(uint16_t method) const {
  switch (static_cast<LedgerMethod>(method)) {
    case LedgerMethod::kAdd:
      return rpc::Method{.verb = "add", .needs = rpc::Role::kWriter};
    case LedgerMethod::kTotal:
      return rpc::Method{.verb = "look", .needs = rpc::Role::kReader};
    case LedgerMethod::kFollow:
      return rpc::Method{.verb = "follow", .needs = rpc::Role::kReader, .pushes = true};
  }
  return std::nullopt;
}

Task<Result<std::string>> Ledger::call(uint16_t method, std::string body, rpc::Caller /*caller*/,
                                       CancelToken /*token*/) {
  if (static_cast<LedgerMethod>(method) == LedgerMethod::kAdd) {
    const Result<uint64_t> amount = decode(body);
    if (!amount) co_return fail(amount.error());
    if (*amount > UINT64_MAX - total_) co_return fail(Errc::kLimit, "the ledger is full");
    total_ += *amount;
    changed_.set();
  }
  co_return encode(total_);
}

Task<Result<void>> Ledger::subscribe(uint16_t /*method*/, std::string /*body*/,
                                     rpc::Caller /*caller*/, rpc::Pushes& pushes,
                                     CancelToken token) {
  Result<void> result = co_await pushes.push(encode(total_), token);
  for (uint64_t told = total_; result;) {
    if (told == total_) {
      changed_.reset();
      result = co_await changed_.wait(token);
      continue;
    }
    // While a slow subscriber had no room, the total went on: it is told the newest.
    told = total_;
    result = co_await pushes.push(encode(told), token);
  }
  co_return result;
}

LedgerClient::LedgerClient(env::Env& env, rpc::ClientOptions options)
    : client_(env, of_ledger(std::move(options))) {}

Task<Result<uint64_t>> LedgerClient::add(uint64_t amount, CancelToken token) {
  const Result<Reply> reply =
      co_await client_.call(request(LedgerMethod::kAdd, encode(amount)), {}, token);
  co_return number_of(reply);
}

Task<Result<uint64_t>> LedgerClient::total(CancelToken token) {
  const Result<Reply> reply =
      co_await client_.call(request(LedgerMethod::kTotal), {.repeatable = true}, token);
  co_return number_of(reply);
}

Task<Result<void>> LedgerClient::await_total(uint64_t wanted, CancelToken token) {
  while (true) {
    auto subscription = co_await client_.subscribe(request(LedgerMethod::kFollow), token);
    if (!subscription) co_return fail(subscription.error());
    while (true) {
      const Result<Reply> push = co_await (*subscription)->next(token);
      const Result<uint64_t> total = number_of(push);
      if (total && *total >= wanted) co_return Result<void>{};
      if (token.requested()) co_return fail(token.error());
      // Its connection is gone: another one goes on from the total that is there then.
      if (!total && total.error() == Errc::kReset) break;
      if (!total) co_return fail(total.error());
    }
  }
}

}  // namespace cairn::examples
