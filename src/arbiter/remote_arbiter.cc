// SPDX-License-Identifier: Apache-2.0
#include "arbiter/remote_arbiter.h"

#include <type_traits>
#include <utility>
#include <variant>

#include "base/bytes.h"

namespace cairn::arbiter {

using task::CancelToken;
using task::Task;
using volume::Mapping;
using volume::Opened;
using volume::Renewed;
using volume::Session;

namespace {

rpc::ClientOptions client_options(RemoteArbiterOptions options) {
  return {.servers = std::move(options.servers),
          .session = {.service = kServiceName, .service_version = {.major = kServiceMajor}},
          .timeout = options.timeout,
          .connect_timeout = options.connect_timeout,
          .security = std::move(options.security),
          .on_refused = std::move(options.on_refused),
          .texts = error_texts()};
}

bool is_repeatable(Call call) {
  return call == Call::kRenew || call == Call::kTable || call == Call::kAsked ||
         call >= Call::kPool;
}

Error refusal_text(Call call, Errc code) {
  switch (code) {
    case Errc::kExists:
      return {code, "somebody else has the volume open"};
    case Errc::kNotFound:
      return {code, "there is no such volume"};
    case Errc::kDenied:
      return {code, call == Call::kOpen
                        ? "the arbiter lets this client look only: its role is reader"
                        : "this opening of the volume is over: somebody else has it"};
    case Errc::kNoSpace:
      return {code, "the pool is full"};
    case Errc::kUnreachable:
      return {code, call == Call::kOpen ? "whoever has the volume open cannot be fenced now"
                                        : "the arbiter cannot do that now"};
    // It was told to end, we were not: as if it were gone.
    case Errc::kClosed:
      return {Errc::kReset, "the arbiter ends"};
    default:
      return {code, "the arbiter"};
  }
}

// What cannot be of a volume is not believed, for a client counts on it.
Result<void> check_volume(uint32_t extents, uint32_t replicas, Duration lease) {
  if (extents <= volume::kFirstDataExtent || extents > volume::kVolumeExtentsMax ||
      lease <= Duration()) {
    return fail(Errc::kCorrupt, "the arbiter describes a volume that cannot be");
  }
  return volume::check_replicas(replicas);
}
Result<void> check(const Opened& opened) {
  const Result<void> pool = volume::check_extent_bytes(opened.pool.extent_bytes);
  return pool ? check_volume(opened.extents, opened.replicas, opened.lease) : pool;
}
Result<void> check(const Renewed& renewed) {
  return check_volume(renewed.extents, renewed.replicas, renewed.lease);
}
template <class T>
Result<void> check(const T&) {
  return {};
}

}  // namespace

rpc::ErrorTexts error_texts() {
  return {.demands_tls = "the arbiter demands TLS: add ?tls_key=FILE&name=NAME to its address",
          .lacks_tls =
              "the arbiter speaks without TLS at this port: leave tls_key out, or give it keys",
          .unknown_key = "the arbiter does not know this client's name, or has another key for it",
          .hung_up = "the arbiter hung up",
          .closed = "the connection to the arbiter was closed",
          .unanswered = "no arbiter answered in time",
          .unreachable = "no arbiter that leads can be reached"};
}

RemoteArbiter::RemoteArbiter(env::Env& env, RemoteArbiterOptions options)
    : client_(env, client_options(std::move(options))) {}

Task<Result<rpc::Reply>> RemoteArbiter::send(CallArgs request, CancelToken token) {
  const Call call = call_of(request);
  rpc::CallOptions options{.repeatable = is_repeatable(call), .elsewhere = kElsewhere};
  // Their time is their owner's: it may take hours to clear a drive.
  if (is_of_operator(call) && !options.repeatable) options.timeout = 24 * 3600_s;
  Result<rpc::Reply> reply = co_await client_.call(
      {.method = static_cast<uint16_t>(call), .body = encode(request)}, options, token);
  co_return reply;
}

template <class T>
Task<Result<T>> RemoteArbiter::ask_link(CallArgs request, CancelToken token) {
  const Call call = call_of(request);
  const Result<rpc::Reply> reply = co_await send(std::move(request), token);
  if (!reply) co_return fail(reply.error());
  if (reply->refusal) {
    if (*reply->refusal == Errc::kDenied) client_.note_refusal();
    co_return fail(refusal_text(call, *reply->refusal));
  }
  Result<Outcome> outcome = decode_outcome(call, as_bytes(reply->body));
  if (!outcome) co_return fail(outcome.error());
  if constexpr (std::is_void_v<T>) {
    co_return Result<void>();
  } else {
    T& answer = std::get<T>(std::get<Answer>(*outcome));
    const Result<void> sound = check(answer);
    if (!sound) co_return fail(sound.error());
    co_return std::move(answer);
  }
}

Task<RemoteArbiter::Said<Answer>> RemoteArbiter::ask_operator(CallArgs request, CancelToken token) {
  const Call call = call_of(request);
  const Result<rpc::Reply> reply = co_await send(std::move(request), token);
  const auto refuse = [](const Error& error) {
    return std::unexpected(Refusal{.code = error.code(), .text = error.what()});
  };
  if (!reply) {
    const Error& error = reply.error();
    co_return std::unexpected(
        Refusal{.code = error.code(), .text = error.what(), .is_unanswered = true});
  }
  if (reply->refusal) {
    if (*reply->refusal == Errc::kDenied) client_.note_refusal();
    if (*reply->refusal == Errc::kDenied) {
      co_return refuse({Errc::kDenied,
                        "the arbiter lets this client look only: its role is "
                        "reader"});
    }
    co_return refuse({*reply->refusal, "the arbiter refuses to do that"});
  }
  Result<Outcome> outcome = decode_outcome(call, as_bytes(reply->body));
  if (!outcome) co_return refuse(outcome.error());
  if (auto* const refusal = std::get_if<Refusal>(&*outcome)) {
    co_return std::unexpected(std::move(*refusal));
  }
  co_return std::move(std::get<Answer>(*outcome));
}

Task<Result<Opened>> RemoteArbiter::open(volume::OpenArgs args, CancelToken token) {
  return ask_link<Opened>(std::move(args), token);
}

Task<Result<Renewed>> RemoteArbiter::renew(Session session, CancelToken token) {
  return ask_link<Renewed>(RenewRequest{session}, token);
}

Task<Result<void>> RemoteArbiter::close(Session session, bool is_clean, CancelToken token) {
  return ask_link<void>(CloseRequest{session, is_clean}, token);
}

Task<Result<std::vector<Mapping>>> RemoteArbiter::table(Session session, uint32_t first,
                                                        CancelToken token) {
  return ask_link<std::vector<Mapping>>(TableRequest{session, first}, token);
}

Task<Result<std::vector<Mapping>>> RemoteArbiter::allocate(Session session,
                                                           std::vector<uint32_t> extents,
                                                           CancelToken token) {
  return ask_link<std::vector<Mapping>>(AllocateRequest{session, std::move(extents)}, token);
}

Task<Result<void>> RemoteArbiter::release(Session session, std::vector<uint32_t> extents,
                                          CancelToken token) {
  return ask_link<void>(ReleaseRequest{session, std::move(extents)}, token);
}

Task<Result<std::vector<Mapping>>> RemoteArbiter::report(Session session,
                                                         std::vector<volume::LegReport> legs,
                                                         CancelToken token) {
  return ask_link<std::vector<Mapping>>(ReportRequest{session, std::move(legs)}, token);
}

Task<Result<Mapping>> RemoteArbiter::relocate(Session session, volume::Relocation what,
                                              CancelToken token) {
  return ask_link<Mapping>(RelocateRequest{session, what}, token);
}

Task<Result<std::vector<volume::CopyPlace>>> RemoteArbiter::begin_copies(
    Session session, std::vector<uint32_t> extents, CancelToken token) {
  return ask_link<CopyPlaces>(BeginCopiesRequest{session, std::move(extents)}, token);
}

Task<Result<std::vector<Mapping>>> RemoteArbiter::end_copies(Session session,
                                                             std::vector<volume::CopyEnd> copies,
                                                             CancelToken token) {
  return ask_link<std::vector<Mapping>>(EndCopiesRequest{session, std::move(copies)}, token);
}

Task<Result<volume::Asked>> RemoteArbiter::asked(Session session, Duration wait,
                                                 CancelToken token) {
  return ask_link<volume::Asked>(AskedRequest{session, wait}, token);
}

Task<Result<void>> RemoteArbiter::freeze(Session session, std::string snapshot, bool is_ready,
                                         CancelToken token) {
  return ask_link<void>(FreezeRequest{session, std::move(snapshot), is_ready}, token);
}

}  // namespace cairn::arbiter
