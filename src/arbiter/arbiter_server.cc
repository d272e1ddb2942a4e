// SPDX-License-Identifier: Apache-2.0
#include "arbiter/arbiter_server.h"

#include <array>
#include <type_traits>
#include <variant>

#include "base/bytes.h"

namespace cairn::arbiter {

using task::CancelToken;
using task::Task;

namespace {

// A drive without discards is cleared block by block before it is a member.
constexpr Duration kCallTimeout = 24 * 3600_s;

constexpr rpc::Method kReads{.verb = "look at the pool", .needs = rpc::Role::kReader};
constexpr rpc::Method kUses{.verb = "use volumes"};
constexpr rpc::Method kChanges{.verb = "change the pool"};

rpc::ServerOptions with_time(rpc::ServerOptions options) {
  options.visit.call_timeout = kCallTimeout;
  return options;
}

// What comes of a call as an answer of the protocol.
template <class T>
Task<Result<Answer>> answer_of(Task<Result<T>> call) {
  Result<T> result = co_await std::move(call);
  if (!result) co_return fail(result.error());
  if constexpr (std::is_void_v<T>) {
    co_return Answer(std::monostate());
  } else {
    co_return Answer(std::move(*result));
  }
}
Task<Result<Answer>> answer_of(Result<Answer> answer) { co_return answer; }

Result<const Volume*> find_volume(Arbiter& arbiter, const std::string& name) {
  for (const auto& [id, volume] : arbiter.pool().volumes()) {
    if (volume.record.name == name) return &volume;
  }
  return fail(Errc::kNotFound,
              "there is no such volume: 'cairn volume list --snapshots' names those there are");
}

Task<Result<Answer>> view_of_made(Arbiter& arbiter, Task<Result<VolumeRecord>> call) {
  const Result<VolumeRecord> made = co_await std::move(call);
  if (!made) co_return fail(made.error());
  const Result<const Volume*> volume = find_volume(arbiter, made->name);
  if (!volume) co_return fail(volume.error());
  co_return Answer(view_of(arbiter.pool(), **volume));
}

}  // namespace

ArbiterServer::ArbiterServer(env::Env& env, ArbiterHost& host, std::string name,
                             rpc::ServerOptions options)
    : host_(host), name_(std::move(name)), server_(env, *this, with_time(std::move(options))) {}

std::optional<rpc::Method> ArbiterServer::find(uint16_t method) const {
  if (method == 0 || method > kLastCall) return std::nullopt;
  const auto call = static_cast<Call>(method);
  if (!is_of_operator(call)) return kUses;
  return call >= Call::kPool ? kReads : kChanges;
}

Task<Result<std::string>> ArbiterServer::call(uint16_t method, std::string body,
                                              rpc::Caller /*caller*/, CancelToken token) {
  const auto call = static_cast<Call>(method);
  Result<CallArgs> request = decode_args(call, as_bytes(body));
  if (!request) co_return fail(request.error());
  const Asked asked = terms_in(*request);
  if (call == Call::kStatus) co_return encode(call, Outcome(Answer(status())));
  const Result<Answer> answered = co_await answer(std::move(*request), token);
  if (answered) co_return encode(call, Outcome(*answered));
  const Error& error = answered.error();
  // What was not carried out because another one leads may be asked there.
  const bool is_elsewhere = error == Errc::kUnreachable && !host_.is_leading();
  if (is_elsewhere) co_return fail(kElsewhere, "another arbiter leads");
  if (is_of_operator(call)) {
    Refusal refusal{.code = error.code(), .text = error.what()};
    const std::optional<std::string> why = refused_terms(asked);
    if (why && error == Errc::kLimit) refusal.text = *why;
    co_return encode(call, Outcome(std::move(refusal)));
  }
  if (error == kElsewhere) co_return fail(Errc::kInvalid, error.what());
  co_return fail(error);
}

Task<Result<Answer>> ArbiterServer::answer(CallArgs request, CancelToken token) {
  const Call call = call_of(request);
  if (!is_of_operator(call)) {
    Result<Answer> answered = co_await link_call(std::move(request), token);
    co_return answered;
  }
  Result<ArbiterHost::Use> arbiter = host_.use();
  if (!arbiter) co_return fail(arbiter.error());
  if (call <= Call::kRemoveDrive || call == Call::kPool) {
    Result<Answer> answered = co_await drive_call(**arbiter, std::move(request), token);
    co_return answered;
  }
  Result<Answer> answered = co_await volume_call(**arbiter, std::move(request), token);
  co_return answered;
}

Task<Result<Answer>> ArbiterServer::link_call(CallArgs request, CancelToken token) {
  switch (call_of(request)) {
    case Call::kOpen:
      return answer_of(host_.open(std::move(std::get<volume::OpenArgs>(request)), token));
    case Call::kRenew:
      return answer_of(host_.renew(std::get<RenewRequest>(request).session, token));
    case Call::kClose: {
      const auto& args = std::get<CloseRequest>(request);
      return answer_of(host_.close(args.session, args.is_clean, token));
    }
    case Call::kTable: {
      const auto& args = std::get<TableRequest>(request);
      return answer_of(host_.table(args.session, args.first, token));
    }
    case Call::kAllocate: {
      auto& args = std::get<AllocateRequest>(request);
      return answer_of(host_.allocate(args.session, std::move(args.extents), token));
    }
    case Call::kRelease: {
      auto& args = std::get<ReleaseRequest>(request);
      return answer_of(host_.release(args.session, std::move(args.extents), token));
    }
    case Call::kReport: {
      auto& args = std::get<ReportRequest>(request);
      return answer_of(host_.report(args.session, std::move(args.legs), token));
    }
    case Call::kRelocate: {
      const auto& args = std::get<RelocateRequest>(request);
      return answer_of(host_.relocate(args.session, args.what, token));
    }
    case Call::kBeginCopies: {
      auto& args = std::get<BeginCopiesRequest>(request);
      return answer_of(host_.begin_copies(args.session, std::move(args.extents), token));
    }
    case Call::kEndCopies: {
      auto& args = std::get<EndCopiesRequest>(request);
      return answer_of(host_.end_copies(args.session, std::move(args.copies), token));
    }
    case Call::kAsked: {
      const auto& args = std::get<AskedRequest>(request);
      return answer_of(host_.asked(args.session, args.wait, token));
    }
    case Call::kFreeze: {
      auto& args = std::get<FreezeRequest>(request);
      return answer_of(host_.freeze(args.session, std::move(args.snapshot), args.is_ready, token));
    }
    default:
      return answer_of(fail(Errc::kInvalid, "this is an operator's call"));
  }
}

Task<Result<Answer>> ArbiterServer::drive_call(Arbiter& arbiter, CallArgs request,
                                               CancelToken token) {
  switch (call_of(request)) {
    case Call::kAddDrive:
      return answer_of(arbiter.add_mega_vol(std::move(std::get<AddArgs>(request)), token));
    case Call::kDrain: {
      const auto& args = std::get<DrainRequest>(request);
      return answer_of(arbiter.drain(args.id, args.is_leaving));
    }
    case Call::kRemoveDrive: {
      const auto& args = std::get<RemoveRequest>(request);
      return answer_of(arbiter.remove_mega_vol(args.id, args.is_lost, token));
    }
    case Call::kPool:
      return answer_of(Answer(view_of(arbiter.pool())));
    default:
      return answer_of(fail(Errc::kInvalid, "this is no call about drives"));
  }
}

Task<Result<Answer>> ArbiterServer::volume_call(Arbiter& arbiter, CallArgs request,
                                                CancelToken token) {
  switch (call_of(request)) {
    case Call::kCreate:
      return view_of_made(arbiter, arbiter.create(std::move(std::get<CreateArgs>(request))));
    case Call::kSnapshot: {
      auto& args = std::get<SnapshotRequest>(request);
      return view_of_made(arbiter,
                          arbiter.snapshot(std::move(args.volume), std::move(args.name), token));
    }
    case Call::kClone: {
      auto& args = std::get<CloneRequest>(request);
      return view_of_made(arbiter, arbiter.clone(std::move(args.snapshot), std::move(args.name)));
    }
    case Call::kResize: {
      auto& args = std::get<ResizeRequest>(request);
      return answer_of(arbiter.resize(std::move(args.name), args.bytes));
    }
    case Call::kSetWeights: {
      auto& args = std::get<WeightsRequest>(request);
      return answer_of(arbiter.set_weights(std::move(args.name), args.weights));
    }
    case Call::kSetReplicas: {
      auto& args = std::get<ReplicasRequest>(request);
      return answer_of(arbiter.set_replicas(std::move(args.name), args.replicas));
    }
    case Call::kSetTerms: {
      auto& args = std::get<TermsRequest>(request);
      return answer_of(arbiter.set_terms(std::move(args.name), args.terms));
    }
    case Call::kDestroy: {
      auto& args = std::get<DestroyRequest>(request);
      return answer_of(arbiter.destroy(std::move(args.name), args.by_force, token));
    }
    case Call::kVolumes:
      return answer_of(
          Answer(volumes_after(arbiter.pool(), std::get<VolumesRequest>(request).after)));
    case Call::kVolume: {
      const Result<const Volume*> volume =
          find_volume(arbiter, std::get<VolumeRequest>(request).name);
      if (!volume) return answer_of(fail(volume.error()));
      return answer_of(Answer(detail_of(arbiter.pool(), **volume)));
    }
    default:
      return answer_of(fail(Errc::kInvalid, "this is no call about volumes"));
  }
}

ArbiterServer::Asked ArbiterServer::terms_in(const CallArgs& request) {
  if (const auto* create = std::get_if<CreateArgs>(&request)) {
    return {.volume = create->name, .terms = create->terms};
  }
  if (const auto* change = std::get_if<TermsRequest>(&request)) {
    return {.volume = change->name, .terms = change->terms};
  }
  return {};
}

// What the judge says of them, as the pool is now.
std::optional<std::string> ArbiterServer::refused_terms(const Asked& asked) {
  const Result<ArbiterHost::Use> arbiter = host_.use();
  if (asked.volume.empty() || !arbiter || (*arbiter)->judge() == nullptr) return std::nullopt;
  const Attempt<void> judged =
      (*arbiter)->judge()->judge((*arbiter)->pool(), asked.volume, asked.terms);
  return judged ? std::nullopt : std::optional(judged.error().text);
}

ArbiterView ArbiterServer::status() const {
  ArbiterView view{.host = name_, .is_leading = host_.is_leading(), .problem = ""};
  if (!view.is_leading && host_.last_error()) view.problem = host_.last_error()->text();
  return view;
}

}  // namespace cairn::arbiter
