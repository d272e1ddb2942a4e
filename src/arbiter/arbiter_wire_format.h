// SPDX-License-Identifier: Apache-2.0
// What a RemoteArbiter and an ArbiterServer say to each other, as bodies of rpc's calls: the only
// home of their layout, version 3: whoever knew no snapshots would write what others share.
//
// Bodies are fields in the order of the layout (base/message_coder.h); an entry of a map is its 16
// bytes (volume/map_entry_format.h). There is one form for each value and what is not in it is
// kCorrupt.
//
// The reply to a call of ArbiterLink is the answer, or rpc's refusal with the error's code. That to
// an operator's begins with a byte: 0 and the answer, or 1 and a Refusal. Either is refused with
// kElsewhere by an arbiter that does not lead.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "arbiter/arbiter.h"
#include "arbiter/views.h"
#include "base/bytes.h"
#include "base/error.h"
#include "volume/arbiter_link.h"

namespace cairn::arbiter {

inline constexpr const char* kServiceName = "arbiter";
inline constexpr uint16_t kServiceMajor = 3;
// Nothing was done, for another one leads; no call is refused with it otherwise.
inline constexpr Errc kElsewhere = Errc::kUnsupported;

enum class Call : uint8_t {
  kOpen = 1,  // from here on: ArbiterLink
  kRenew,
  kClose,
  kTable,
  kAllocate,
  kRelease,
  kReport,
  kRelocate,
  kBeginCopies,
  kEndCopies,
  kAsked,
  kFreeze,
  kAddDrive,  // from here on: operators
  kDrain,
  kRemoveDrive,
  kCreate,
  kResize,
  kSetWeights,
  kSetReplicas,
  kDestroy,
  kSetTerms,
  kSnapshot,
  kClone,
  kPool,
  kVolumes,
  kVolume,
  kStatus,  // of the one that is asked, whether it leads or not
};
inline constexpr uint8_t kLastCall = static_cast<uint8_t>(Call::kStatus);
inline bool is_of_operator(Call call) { return call >= Call::kAddDrive; }

struct RenewRequest {
  volume::Session session;
};
struct CloseRequest {
  volume::Session session;
  bool is_clean = false;
};
struct TableRequest {
  volume::Session session;
  uint32_t first = 0;
};
struct AllocateRequest {
  volume::Session session;
  std::vector<uint32_t> extents;
};
struct ReleaseRequest {
  volume::Session session;
  std::vector<uint32_t> extents;
};
struct ReportRequest {
  volume::Session session;
  std::vector<volume::LegReport> legs;
};
struct RelocateRequest {
  volume::Session session;
  volume::Relocation what;
};
struct BeginCopiesRequest {
  volume::Session session;
  std::vector<uint32_t> extents;
};
struct EndCopiesRequest {
  volume::Session session;
  std::vector<volume::CopyEnd> copies;
};
struct AskedRequest {
  volume::Session session;
  Duration wait;
};
struct FreezeRequest {
  volume::Session session;
  std::string snapshot;
  bool is_ready = false;
};
struct DrainRequest {
  MegaVolId id;
  bool is_leaving = true;
};
struct RemoveRequest {
  MegaVolId id;
  bool is_lost = false;
};
struct ResizeRequest {
  std::string name;
  uint64_t bytes = 0;
};
struct WeightsRequest {
  std::string name;
  volume::Weights weights;
};
struct ReplicasRequest {
  std::string name;
  uint32_t replicas = 1;
};
struct TermsRequest {
  std::string name;
  share::Terms terms;
};
struct DestroyRequest {
  std::string name;
  bool by_force = false;
};
struct SnapshotRequest {
  std::string volume;
  std::string name;
};
struct CloneRequest {
  std::string snapshot;
  std::string name;
};
struct PoolRequest {};
struct VolumesRequest {
  std::string after;  // names come after this one
};
struct VolumeRequest {
  std::string name;
};
struct StatusRequest {};

// In the order of Call.
using CallArgs =
    std::variant<volume::OpenArgs, RenewRequest, CloseRequest, TableRequest, AllocateRequest,
                 ReleaseRequest, ReportRequest, RelocateRequest, BeginCopiesRequest,
                 EndCopiesRequest, AskedRequest, FreezeRequest, AddArgs, DrainRequest,
                 RemoveRequest, CreateArgs, ResizeRequest, WeightsRequest, ReplicasRequest,
                 DestroyRequest, TermsRequest, SnapshotRequest, CloneRequest, PoolRequest,
                 VolumesRequest, VolumeRequest, StatusRequest>;
using Mappings = std::vector<volume::Mapping>;
using CopyPlaces = std::vector<volume::CopyPlace>;
// monostate: there is nothing to say.
using Answer = std::variant<std::monostate, volume::Opened, volume::Renewed, Mappings,
                            volume::Mapping, CopyPlaces, volume::Asked, MegaVolInfo, VolumeView,
                            PoolView, VolumePage, VolumeDetail, ArbiterView>;

// Why an operator's call was not carried out, in the words of the arbiter.
struct Refusal {
  Errc code = Errc::kInvalid;
  std::string text;
  bool is_unanswered = false;  // no arbiter said so, for none was reached; not on the wire
};
using Outcome = std::variant<Answer, Refusal>;

inline Call call_of(const CallArgs& request) { return static_cast<Call>(request.index() + 1); }

std::string encode(const CallArgs& request);
std::string encode(Call call, const Outcome& outcome);

// kCorrupt.
Result<CallArgs> decode_args(Call call, Bytes body);
Result<Outcome> decode_outcome(Call call, Bytes body);

}  // namespace cairn::arbiter
