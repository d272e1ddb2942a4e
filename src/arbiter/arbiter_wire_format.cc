// SPDX-License-Identifier: Apache-2.0
#include "arbiter/arbiter_wire_format.h"

#include <array>
#include <optional>
#include <utility>

#include "base/message_coder.h"

namespace cairn::arbiter {

namespace {

using volume::Asked;
using volume::CopyEnd;
using volume::CopyPlace;
using volume::LegReport;
using volume::Mapping;
using volume::MegaVolPool;
using volume::OpenArgs;
using volume::Opened;
using volume::Relocation;
using volume::Renewed;
using volume::Session;
using volume::Weights;

template <class Coder>
struct Layout {
  Coder& coder;
  void operator()(std::monostate&) {}
  void operator()(Uuid& v) { coder.number(v); }
  void operator()(Errc& v) { choice(coder, v, Errc::kInvalid, Errc::kCancelled); }
  void operator()(MapEntry& v) {
    std::array<std::byte, MapEntry::kSize> bytes{};
    if constexpr (Coder::kReads) {
      coder.number(bytes);
      const Result<MapEntry> entry = MapEntry::load(bytes);
      if (!entry) return coder.spoil();
      v = *entry;
    } else {
      v.store(bytes);
      coder.number(bytes);
    }
  }

  // What volumes and drives are made of.
  void operator()(Session& v) { fields(coder, v.volume, v.epoch, v.turn); }
  void operator()(MegaVolPool& v) { fields(coder, v.uuid, v.extent_bytes); }
  void operator()(Weights& v) {
    fields(coder, v.extents, v.used, v.busy, v.fragmentation, v.preference);
  }
  void operator()(MegaVolInfo& v) {
    fields(coder, v.id, v.uuid, v.uri, v.box, v.rack, v.extents, v.preference, v.is_leaving);
  }
  void operator()(share::Terms& v) { fields(coder, v.weight, v.floor, v.cap); }
  void operator()(VolumeRecord& v) {
    fields(coder, v.id, v.name, v.extents, v.replicas, v.weights, v.epoch, v.holder, v.is_clean,
           v.is_leaving, v.family, v.origin, v.is_snapshot, v.made);
  }
  void operator()(Mapping& v) { fields(coder, v.extent, v.entry, v.is_shared); }
  void operator()(CopyPlace& v) { fields(coder, v.now, v.target); }
  void operator()(CopyEnd& v) { fields(coder, v.extent, v.target); }
  void operator()(LegReport& v) { fields(coder, v.extent, v.mega_vol, v.is_stale); }
  void operator()(Relocation& v) { fields(coder, v.extent, v.synced, v.drop, v.add); }

  // Requests.
  void operator()(OpenArgs& v) { fields(coder, v.volume, v.client, v.take_over); }
  void operator()(RenewRequest& v) { field(coder, v.session); }
  void operator()(CloseRequest& v) { fields(coder, v.session, v.is_clean); }
  void operator()(TableRequest& v) { fields(coder, v.session, v.first); }
  void operator()(AllocateRequest& v) { fields(coder, v.session, v.extents); }
  void operator()(ReleaseRequest& v) { fields(coder, v.session, v.extents); }
  void operator()(ReportRequest& v) { fields(coder, v.session, v.legs); }
  void operator()(RelocateRequest& v) { fields(coder, v.session, v.what); }
  void operator()(BeginCopiesRequest& v) { fields(coder, v.session, v.extents); }
  void operator()(EndCopiesRequest& v) { fields(coder, v.session, v.copies); }
  void operator()(AskedRequest& v) { fields(coder, v.session, v.wait); }
  void operator()(FreezeRequest& v) { fields(coder, v.session, v.snapshot, v.is_ready); }
  void operator()(AddArgs& v) { fields(coder, v.uri, v.box, v.rack, v.preference, v.may_format); }
  void operator()(DrainRequest& v) { fields(coder, v.id, v.is_leaving); }
  void operator()(RemoveRequest& v) { fields(coder, v.id, v.is_lost); }
  void operator()(CreateArgs& v) { fields(coder, v.name, v.bytes, v.replicas, v.weights, v.terms); }
  void operator()(ResizeRequest& v) { fields(coder, v.name, v.bytes); }
  void operator()(WeightsRequest& v) { fields(coder, v.name, v.weights); }
  void operator()(ReplicasRequest& v) { fields(coder, v.name, v.replicas); }
  void operator()(DestroyRequest& v) { fields(coder, v.name, v.by_force); }
  void operator()(TermsRequest& v) { fields(coder, v.name, v.terms); }
  void operator()(SnapshotRequest& v) { fields(coder, v.volume, v.name); }
  void operator()(CloneRequest& v) { fields(coder, v.snapshot, v.name); }
  void operator()(PoolRequest&) {}
  void operator()(VolumesRequest& v) { field(coder, v.after); }
  void operator()(VolumeRequest& v) { field(coder, v.name); }
  void operator()(StatusRequest&) {}

  // Answers.
  void operator()(Opened& v) {
    fields(coder, v.session, v.pool, v.extents, v.replicas, v.is_snapshot, v.is_clean, v.lease,
           v.mega_vols, v.unfenced);
  }
  void operator()(Renewed& v) {
    fields(coder, v.lease, v.extents, v.replicas, v.mega_vols, v.unfenced);
  }
  void operator()(Asked& v) { field(coder, v.snapshot); }
  void operator()(DriveView& v) { fields(coder, v.info, v.free, v.legs, v.cleaning, v.unfenced); }
  void operator()(PoolView& v) { fields(coder, v.uuid, v.extent_bytes, v.volumes, v.drives); }
  void operator()(VolumeView& v) {
    fields(coder, v.record, v.terms, v.bytes, v.extent_bytes, v.mapped, v.shared, v.lacking);
  }
  void operator()(VolumePage& v) { fields(coder, v.volumes, v.more); }
  void operator()(DriveShare& v) { fields(coder, v.id, v.extents); }
  void operator()(ScoreRow& v) { fields(coder, v.id, v.factors, v.score, v.is_full, v.is_chosen); }
  void operator()(ScoreMatrix& v) { fields(coder, v.extent, v.rows); }
  void operator()(VolumeDetail& v) { fields(coder, v.volume, v.drives, v.matrices); }
  void operator()(ArbiterView& v) { fields(coder, v.host, v.is_leading, v.problem); }
  void operator()(Refusal& v) { fields(coder, v.code, v.text); }
};

std::unexpected<Error> senseless() {
  return fail(Errc::kCorrupt, "a message about volumes makes no sense");
}

// Where a call's answer stands in Answer.
template <class T>
constexpr size_t index_of() {
  return Answer(std::in_place_type<T>).index();
}

size_t answer_index(Call call) {
  switch (call) {
    case Call::kOpen:
      return index_of<Opened>();
    case Call::kRenew:
      return index_of<Renewed>();
    case Call::kTable:
    case Call::kAllocate:
    case Call::kReport:
    case Call::kEndCopies:
      return index_of<Mappings>();
    case Call::kBeginCopies:
      return index_of<CopyPlaces>();
    case Call::kAsked:
      return index_of<Asked>();
    case Call::kRelocate:
      return index_of<Mapping>();
    case Call::kAddDrive:
      return index_of<MegaVolInfo>();
    case Call::kCreate:
    case Call::kSnapshot:
    case Call::kClone:
      return index_of<VolumeView>();
    case Call::kPool:
      return index_of<PoolView>();
    case Call::kVolumes:
      return index_of<VolumePage>();
    case Call::kVolume:
      return index_of<VolumeDetail>();
    case Call::kStatus:
      return index_of<ArbiterView>();
    case Call::kClose:
    case Call::kRelease:
    case Call::kFreeze:
    case Call::kDrain:
    case Call::kRemoveDrive:
    case Call::kResize:
    case Call::kSetWeights:
    case Call::kSetReplicas:
    case Call::kDestroy:
    case Call::kSetTerms:
      return index_of<std::monostate>();
  }
  return std::variant_size_v<Answer>;
}

constexpr char kAnswered = 0;
constexpr char kRefused = 1;

}  // namespace

std::string encode(const CallArgs& request) { return encode_one_of<Layout>(request); }

std::string encode(Call call, const Outcome& outcome) {
  const auto* const refusal = std::get_if<Refusal>(&outcome);
  if (refusal != nullptr) return kRefused + encode_message<Layout>(*refusal);
  std::string body = encode_one_of<Layout>(std::get<Answer>(outcome));
  if (is_of_operator(call)) body.insert(body.begin(), kAnswered);
  return body;
}

Result<CallArgs> decode_args(Call call, Bytes body) {
  std::optional<CallArgs> request =
      decode_one_of<Layout, CallArgs>(static_cast<size_t>(call) - 1, body);
  if (!request) return senseless();
  return std::move(*request);
}

Result<Outcome> decode_outcome(Call call, Bytes body) {
  if (is_of_operator(call)) {
    if (body.empty()) return senseless();
    const auto kind = static_cast<char>(body[0]);
    body = body.subspan(1);
    if (kind == kRefused) {
      std::optional<Refusal> refusal = decode_message<Layout, Refusal>(body);
      if (!refusal) return senseless();
      return std::move(*refusal);
    }
    if (kind != kAnswered) return senseless();
  }
  std::optional<Answer> answer = decode_one_of<Layout, Answer>(answer_index(call), body);
  if (!answer) return senseless();
  return std::move(*answer);
}

}  // namespace cairn::arbiter
