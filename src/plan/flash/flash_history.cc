// SPDX-License-Identifier: Apache-2.0
#include "plan/flash/flash_history.h"

namespace cairn::plan {

FlashHistory::FlashHistory(const flash::FlashModel& model) : model_(model) { take(); }

void FlashHistory::completed(const flash::Completion& completion) {
  const uint64_t bytes = uint64_t{completion.sectors} * flash::kSectorBytes;
  if (completion.op == flash::Op::kRead) read_bytes_ += bytes;
  if (completion.op == flash::Op::kWrite) written_bytes_ += bytes;
  if (model_.now() >= next_) take();
}

void FlashHistory::end() {
  if (model_.now() > samples_.back().at) take();
}

void FlashHistory::take() {
  if (samples_.size() == kSamplesMax) {
    for (size_t i = 1; i < kSamplesMax / 2; ++i) samples_[i] = samples_[2 * i];
    samples_.resize(kSamplesMax / 2);
    interval_ *= 2;
  }
  const flash::Counters& counters = model_.counters();
  FlashSample sample{.at = model_.now(),
                     .read_bytes = read_bytes_,
                     .written_bytes = written_bytes_,
                     .user_pages = counters.user_pages_programmed,
                     .collector_pages = counters.gc_pages_programmed,
                     .mapping_pages = counters.mapping_pages_programmed,
                     .blocks_erased = counters.blocks_erased};
  for (uint32_t i = 0; i < model_.geometry().channels(); ++i) {
    sample.channels_busy += model_.channel_busy(i);
  }
  for (uint32_t i = 0; i < model_.geometry().dies(); ++i) sample.dies_busy += model_.die_busy(i);
  samples_.push_back(sample);
  next_ = sample.at + interval_;
}

}  // namespace cairn::plan
