// SPDX-License-Identifier: Apache-2.0
#include "model/flash/workload.h"

#include "base/portable_math.h"

namespace cairn::flash {

namespace {

class Forward final : public CompletionSink {
 public:
  explicit Forward(const OnCompletion& to) : to_(to) {}
  void completed(const Completion& completion) override { to_(completion); }

 private:
  const OnCompletion& to_;
};

// Submits the next request whenever one completes.
class KeepFull final : public CompletionSink {
 public:
  KeepFull(FlashModel& model, SyntheticSource& source, const OnCompletion& to)
      : model_(model), source_(source), to_(to) {}
  void completed(const Completion& completion) override {
    to_(completion);
    if (!source_.exhausted()) model_.submit(source_.next(), model_.now());
  }

 private:
  FlashModel& model_;
  SyntheticSource& source_;
  const OnCompletion& to_;
};

}  // namespace

void run_open_loop(FlashModel& model, const NextRequest& next, const OnCompletion& on_completion) {
  Forward sink(on_completion);
  while (const std::optional<TimedRequest> timed = next()) {
    if (timed->arrival > model.now()) model.advance(timed->arrival - 1, sink);
    model.submit(timed->request, std::max(timed->arrival, model.now()));
  }
  model.advance(kNever, sink);
}

void run_open_loop(FlashModel& model, std::span<const TimedRequest> requests,
                   const OnCompletion& on_completion) {
  auto rest = requests.begin();
  run_open_loop(
      model,
      [&] { return rest == requests.end() ? std::nullopt : std::optional<TimedRequest>(*rest++); },
      on_completion);
}

SyntheticSource::SyntheticSource(const Synthetic& synthetic, uint64_t sectors)
    : synthetic_(synthetic),
      last_(static_cast<uint64_t>(static_cast<double>(sectors - 1) * synthetic.working_set)),
      types_(synthetic.seed),
      addresses_(synthetic.seed + 1) {
  if (synthetic_.pattern == Pattern::kSequential) {
    next_lba_ = addresses_.between(0, last_);
    next_lba_ -= next_lba_ % synthetic_.alignment_sectors;
  }
}

HostRequest SyntheticSource::next() {
  HostRequest request;
  request.cookie = generated_++;
  request.stream = synthetic_.stream;
  request.op = types_.next() <= synthetic_.read_fraction ? Op::kRead : Op::kWrite;
  request.sectors = synthetic_.sectors;
  if (synthetic_.pattern == Pattern::kSequential) {
    request.lba = next_lba_ + request.sectors > last_ ? 0 : next_lba_;
    next_lba_ += request.sectors;
    if (next_lba_ > last_) next_lba_ = 0;
    const uint64_t over = next_lba_ % synthetic_.alignment_sectors;
    if (over != 0) next_lba_ += synthetic_.alignment_sectors - over;
  } else {
    request.lba = addresses_.between(0, last_);
    if (request.lba + request.sectors > last_) request.lba = 0;
  }
  request.lba -= request.lba % synthetic_.alignment_sectors;
  return request;
}

void run_synthetic(FlashModel& model, const Synthetic& synthetic,
                   const OnCompletion& on_completion) {
  SyntheticSource source(synthetic, model.domains()[synthetic.stream].logical_sectors);
  const Nanos start = model.now() + 1;
  if (synthetic.mean_gap_ns <= 0) {
    KeepFull sink(model, source, on_completion);
    for (uint32_t i = 0; i < synthetic.queue_depth && !source.exhausted(); ++i) {
      model.submit(source.next(), start);
    }
    model.advance(kNever, sink);
    return;
  }
  Forward sink(on_completion);
  Mrg32k3a gaps(synthetic.seed + 2);
  Nanos arrival = start;
  while (!source.exhausted()) {
    model.advance(arrival - 1, sink);
    model.submit(source.next(), arrival);
    arrival += static_cast<Nanos>(-synthetic.mean_gap_ns * natural_log(gaps.next()));
  }
  model.advance(kNever, sink);
}

}  // namespace cairn::flash
