// SPDX-License-Identifier: Apache-2.0
#include "fabric/host/admin.h"

#include <algorithm>

#include "fabric/host/status_error.h"

namespace cairn::fabric {

namespace {

// The answer of a command whose data must have come in full.
Result<void> judge(const Result<nvme::Cqe>& answer, const CommandOp& op, size_t expected) {
  if (!answer) return fail(answer.error());
  if (!answer->get_status().ok()) return fail(error_of(answer->get_status()));
  if (op.moved() != expected) return fail(Errc::kCorrupt, "the target sent less than was asked");
  return {};
}

}  // namespace

task::Task<Result<void>> identify(HostSession& session, IdentifyRequest request, MutableBytes page,
                                  task::CancelToken token) {
  nvme::Sqe sqe = nvme::Sqe::make(nvme::AdminOpcode::kIdentify, request.nsid);
  request.fields.encode(sqe);
  CommandOp op = session.admin(sqe, page, token);
  const Result<nvme::Cqe> answer = co_await op;
  co_return judge(answer, op, page.size());
}

task::Task<Result<void>> get_log(HostSession& session, LogRequest request, MutableBytes into,
                                 task::CancelToken token) {
  const bool has_offsets = (session.identity().log_attributes & nvme::Lpa::kExtendedData) != 0;
  // Without extended data NUMD has 12 bits.
  const uint32_t piece_max = has_offsets ? session.transfer_max() : 16 * 1024;
  const bool needs_offsets = request.offset > 0 || into.size() > piece_max;
  if (needs_offsets && !has_offsets) {
    co_return fail(Errc::kUnsupported, "the controller gives log pages from their start only");
  }
  size_t done = 0;
  while (done < into.size()) {
    const size_t length = std::min<size_t>(into.size() - done, piece_max);
    const bool last = done + length == into.size();
    const nvme::GetLogFields fields{.page = request.page,
                                    .specific = request.specific,
                                    .retain_event = !last || request.retain_event,
                                    .dwords = static_cast<uint32_t>(length / 4 - 1),
                                    .offset = request.offset + done};
    nvme::Sqe sqe = nvme::Sqe::make(nvme::AdminOpcode::kGetLogPage, request.nsid);
    fields.encode(sqe);
    CommandOp op = session.admin(sqe, into.subspan(done, length), token);
    const Result<nvme::Cqe> answer = co_await op;
    if (Result<void> sound = judge(answer, op, length); !sound) co_return sound;
    done += length;
  }
  co_return Result<void>{};
}

task::Task<Result<uint32_t>> set_feature(HostSession& session, nvme::Feature feature,
                                         uint32_t value, task::CancelToken token) {
  nvme::Sqe sqe = nvme::Sqe::make(nvme::AdminOpcode::kSetFeatures);
  nvme::SetFeaturesFields{.feature = feature, .value = value}.encode(sqe);
  const Result<nvme::Cqe> answer = co_await session.admin(sqe, {}, token);
  if (!answer) co_return fail(answer.error());
  if (!answer->get_status().ok()) co_return fail(error_of(answer->get_status()));
  co_return answer->dw0.value();
}

task::Task<Result<uint32_t>> get_feature(HostSession& session, nvme::GetFeaturesFields fields,
                                         task::CancelToken token) {
  nvme::Sqe sqe = nvme::Sqe::make(nvme::AdminOpcode::kGetFeatures);
  fields.encode(sqe);
  const Result<nvme::Cqe> answer = co_await session.admin(sqe, {}, token);
  if (!answer) co_return fail(answer.error());
  if (!answer->get_status().ok()) co_return fail(error_of(answer->get_status()));
  co_return answer->dw0.value();
}

}  // namespace cairn::fabric
