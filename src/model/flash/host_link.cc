// SPDX-License-Identifier: Apache-2.0
#include "model/flash/host_link.h"

#include "base/check.h"

namespace cairn::flash {

HostLink::HostLink(Shared& shared, RequestSink& sink)
    : parameters_(shared.parameters),
      geometry_(shared.geometry),
      timing_(shared.timing),
      domains_(shared.domains),
      pages_(shared.pages),
      clock_(shared.clock),
      events_(shared.events),
      counters_(shared.counters),
      requests_(shared.requests),
      sink_(sink),
      streams_(parameters_.streams.size()) {}

void HostLink::to_drive(Message message, uint32_t about, Nanos duration) {
  down_.push({message, about}, duration, clock_);
}

void HostLink::to_host(Message message, uint32_t about, Nanos duration) {
  up_.push({message, about}, duration, clock_);
}

void HostLink::submit(const HostRequest& request) {
  CHECK(request.stream < streams_.size(), "the stream exists");
  CHECK(request.sectors > 0 || request.op == Op::kFlush, "a request has a length");
  ++counters_.requests_submitted;
  const uint32_t index = requests_.take();
  RequestState& state = requests_[index];
  state.op = request.op;
  state.stream = request.stream;
  state.sectors = request.sectors;
  state.lba = request.lba;
  state.cookie = request.cookie;
  state.durable = request.durable && !parameters_.cache_protected;
  state.arrival = clock_.now;
  Stream& stream = streams_[request.stream];
  if (stream.waiting.empty() && has_room(stream)) {
    ring(index);
  } else {
    stream.waiting.push(requests_, index);
  }
}

void HostLink::ring(uint32_t request) {
  const uint32_t stream = requests_[request].stream;
  streams_[stream].submitted.push(requests_, request);
  ++streams_[stream].tail;
  to_drive(Message::kDoorbell, stream, timing_.doorbell());
}

void HostLink::fetch(uint32_t index) {
  Stream& stream = streams_[index];
  const uint32_t request = stream.submitted.pop(requests_);
  ++stream.fetched;
  ++stream.in_drive;
  // The page's record is looked up a few events from now, and is hardly ever in the processor's
  // cache at random.
  const Domain& domain = domains_[index];
  const uint64_t page = requests_[request].lba / geometry_.sectors();
  if (page < domain.logical_pages) __builtin_prefetch(&pages_[domain.first_lpa + page]);
  to_host(Message::kFetchEntry, request, timing_.pcie_read_request());
}

// The drive has the whole command; its controller looks at it first.
void HostLink::begin(uint32_t request) {
  if (parameters_.command_ns == 0) return sink_.start_request(request);
  events_.push(clock_.in(parameters_.command_ns), request | kCommandEvent);
}

void HostLink::delivered_to_drive(const Job& job) {
  switch (job.message) {
    case Message::kDoorbell: {
      Stream& stream = streams_[job.request];
      ++stream.visible;
      if (stream.in_drive < parameters_.queue_fetch) fetch(job.request);
      break;
    }
    case Message::kEntry: {
      const RequestState& request = requests_[job.request];
      ++streams_[request.stream].head;
      if (request.op == Op::kWrite) {
        to_host(Message::kFetchData, job.request, timing_.pcie_read_request());
      } else {
        begin(job.request);
      }
      break;
    }
    case Message::kWriteData:
      begin(job.request);
      break;
    default:  // the drive learns that completion entries were read
      break;
  }
}

void HostLink::delivered_to_host(const Job& job, CompletionSink& sink) {
  switch (job.message) {
    case Message::kFetchEntry:
      to_drive(Message::kEntry, job.request, timing_.submission_entry());
      break;
    case Message::kFetchData:
      to_drive(Message::kWriteData, job.request,
               timing_.pcie_payload(requests_[job.request].sectors * kSectorBytes));
      break;
    case Message::kCompletion: {
      const RequestState request = requests_[job.request];
      requests_.give_back(job.request);
      ++counters_.requests_completed;
      Stream& stream = streams_[request.stream];
      stream.head_known = request.queue_head;
      while (!stream.waiting.empty() && has_room(stream)) {
        ring(stream.waiting.pop(requests_));
      }
      to_drive(Message::kCompletionDoorbell, request.stream, timing_.doorbell());
      sink.completed({.cookie = request.cookie,
                      .op = request.op,
                      .stream = request.stream,
                      .lba = request.lba,
                      .sectors = request.sectors,
                      .arrival = request.arrival,
                      .done = clock_.now});
      break;
    }
    default:  // read data needs no answer
      break;
  }
}

// The drive is done: data of a read goes first, then the entry of a request that waited for the
// fetch limit is asked for, then the completion entry.
void HostLink::finish(uint32_t request) {
  RequestState& state = requests_[request];
  Stream& stream = streams_[state.stream];
  --stream.in_drive;
  if (state.op == Op::kRead) {
    counters_.sectors_read += state.sectors;
    to_host(Message::kReadData, request, timing_.pcie_payload(state.sectors * kSectorBytes));
  }
  if (stream.fetched != stream.visible) fetch(state.stream);
  requests_[request].queue_head = stream.head;
  to_host(Message::kCompletion, request, timing_.completion_entry());
}

void HostLink::arrive_down() {
  delivered_to_drive(down_.finish());
  down_.resume(clock_);
}

void HostLink::arrive_up(CompletionSink& sink) {
  delivered_to_host(up_.finish(), sink);
  up_.resume(clock_);
}

void HostLink::clear() {
  down_.clear();
  up_.clear();
  streams_.assign(streams_.size(), Stream{});
}

}  // namespace cairn::flash
