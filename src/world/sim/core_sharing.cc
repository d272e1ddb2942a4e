// SPDX-License-Identifier: Apache-2.0
// What a simulated core shares with other processes of its machine.
#include <cstdint>
#include <memory>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "env/memory.h"
#include "env/sharing.h"
#include "env/stream.h"
#include "world/sim/core.h"
#include "world/sim/event_queue.h"
#include "world/sim/local_stream.h"
#include "world/sim/machine.h"
#include "world/sim/process.h"
#include "world/sim/shared.h"

namespace cairn::sim {

const EventKind Core::kPoll("core.poll", &Core::on_poll);

Result<env::Descriptor> Core::make_shared_memory(uint64_t size) {
  if (process_.is_dead()) return fail(crashed());
  Result<std::unique_ptr<env::Memory>> memory = env::make_heap_memory(size);
  if (!memory) return fail(memory.error());
  machine().record("share.memory", size);
  auto pages = std::make_shared<SharedPages>(std::move(*memory), size);
  return machine().descriptors().add(process_, std::move(pages));
}

Result<std::unique_ptr<env::SharedMemory>> Core::map_shared(const env::Descriptor& descriptor,
                                                            const env::SharedRange& range) {
  if (process_.is_dead()) return fail(crashed());
  auto pages = std::dynamic_pointer_cast<SharedPages>(Holding::of(descriptor));
  if (pages == nullptr) return fail(Errc::kInvalid, "a descriptor to map is not of memory");
  if (range.offset % SharedPages::kPage != 0) {
    return fail(Errc::kInvalid, "shared memory is mapped from the begin of a page on");
  }
  if (range.size == 0 || range.offset > pages->size() ||
      range.size > pages->size() - range.offset) {
    return fail(Errc::kInvalid, "a range to map is empty or not in the memory");
  }
  machine().record("share.map", range.offset, range.size);
  return std::make_unique<SimMapping>(process_, std::move(pages), range);
}

Result<env::Descriptor> Core::make_signal() {
  if (process_.is_dead()) return fail(crashed());
  machine().record("share.signal");
  return machine().descriptors().add(process_, std::make_shared<Bell>(machine()));
}

Result<std::unique_ptr<env::Signal>> Core::open_signal(const env::Descriptor& descriptor) {
  if (process_.is_dead()) return fail(crashed());
  auto bell = std::dynamic_pointer_cast<Bell>(Holding::of(descriptor));
  if (bell == nullptr)
    return fail(Errc::kInvalid, "a descriptor to raise or wait for is no signal");
  return std::make_unique<SimSignal>(*this, std::move(bell));
}

Result<env::Descriptor> Core::duplicate(const env::Descriptor& descriptor) {
  if (process_.is_dead()) return fail(crashed());
  return machine().descriptors().add(process_, Holding::of(descriptor));
}

Result<std::unique_ptr<env::LocalStream>> Core::open_local(env::Connection connection) {
  return SimLocalStream::open(*this, std::move(connection));
}

void Core::add_poller(env::Poller& poller) {
  CHECK(is_current(), "a poller is listed on its core");
  pollers_.push_back(poller);
  schedule_poll();
}

void Core::remove_poller(env::Poller& poller) {
  poller.unlink();
  if (pollers_.empty()) poll_.cancel();
}

void Core::schedule_poll() {
  // A dead process sees nothing that changes any more.
  if (process_.is_dead() || pollers_.empty() || poll_.is_scheduled()) return;
  process_.schedule(poll_, process_.now() + kPollInterval);
}

void Core::on_poll(Event& event) {
  Core& core = static_cast<CoreEvent&>(event).core;
  core.run_code([&] { env::poll_all(core.pollers_); });
  core.schedule_poll();
}

}  // namespace cairn::sim
