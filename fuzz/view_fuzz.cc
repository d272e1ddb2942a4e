// SPDX-License-Identifier: Apache-2.0
// Any bytes as bodies of what agents and the view's controller say to each other: what is
// understood has one form only. Then the same bytes as what an agent that lies says to a
// controller: it answers and stays sound.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/bytes.h"
#include "base/check.h"
#include "view/analysis.h"
#include "view/controller.h"
#include "view/view_wire_format.h"

namespace {

using namespace cairn;
using namespace cairn::view;

template <class T>
Result<T> understood(Bytes body) {
  Result<T> message = decode<T>(body);
  if (message) CHECK(encode(*message) == as_text(body));
  return message;
}

Controller controller() {
  return Controller(1,
                    {{.name = "b1",
                      .ports = 2,
                      .port_bytes_per_s = 1'000'000'000,
                      .drives = {{.name = "d0", .profile = {}}, {.name = "d1", .profile = {}}}}});
}

void lie(const ReportRequest& request) {
  Controller to = controller();
  const Time now{(1_s).ns};
  const AttachRequest attach{
      .incarnation = 5,
      .sessions = {{.id = SessionId(1), .volume = "vol1", .box = "b1", .port = 1}}};
  CHECK(to.attach("host1", attach, now).has_value());
  ReportRequest batch = request;
  batch.controller = 1;
  batch.incarnation = 5;
  batch.number = 1;
  const Result<ReportReply> reply = to.report("host1", batch, now);
  uint64_t counted = 0;
  for (int i = 0; i < 10; ++i) to.advance(now + i * 50_ms);
  const View view = to.view(now + 150_ms);
  for (const ComponentView& component : view.components) {
    if (component.id.kind == Kind::kDrive) counted += component.recency;
  }
  if (reply) CHECK(counted + reply->late + reply->refused == batch.vectors.size());
  if (!reply) CHECK(counted == 0);
  CHECK(understood<View>(as_bytes(encode(view))).has_value());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Bytes bytes = std::as_bytes(std::span(data, size));
  if (bytes.empty()) return 0;
  const Bytes body = bytes.subspan(1);
  switch (std::to_integer<uint8_t>(bytes[0]) % 10) {
    case 0: {
      const Result<AttachRequest> request = understood<AttachRequest>(body);
      Controller to = controller();
      if (request) (void)to.attach("host1", *request, Time{(1_s).ns});
      break;
    }
    case 1:
      (void)understood<AttachReply>(body);
      break;
    case 2: {
      const Result<ReportRequest> request = understood<ReportRequest>(body);
      if (request) lie(*request);
      break;
    }
    case 3:
      (void)understood<ReportReply>(body);
      break;
    case 4: {
      const Result<SyncRequest> request = understood<SyncRequest>(body);
      if (request) (void)controller().sync(*request, Time{(1_s).ns});
      break;
    }
    case 5:
      (void)understood<SyncReply>(body);
      break;
    case 6:
      (void)understood<QueryRequest>(body);
      break;
    case 7: {
      const Result<View> view = understood<View>(body);
      if (!view) break;
      (void)find_bottlenecks(*view);
      for (const FlowView& flow : view->flows) (void)text(*view, explain(*view, flow.volume));
      break;
    }
    case 8: {
      const Result<WatchRequest> request = understood<WatchRequest>(body);
      Controller to = controller();
      if (request) (void)to.watch(*request);
      break;
    }
    case 9:
      (void)understood<Event>(body);
      break;
  }
  return 0;
}
