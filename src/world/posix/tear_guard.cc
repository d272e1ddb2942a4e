// SPDX-License-Identifier: Apache-2.0
#include "world/posix/tear_guard.h"

#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "base/error.h"

namespace cairn::posix {

// Changed by its guard, read by the handler on any thread. `version` is odd while it changes: what
// was read between two equal even versions belongs together.
struct TearGuard::Slot {
  std::atomic<bool> is_taken = false;
  std::atomic<bool> is_torn = false;
  std::atomic<uint64_t> version = 0;
  std::atomic<uintptr_t> begin = 0;
  std::atomic<size_t> size = 0;  // 0: guards nothing
  std::atomic<size_t> page_size = 0;
  std::atomic<int> protection = 0;

  void set(const Mapping& mapping) {
    version.fetch_add(1);
    begin.store(reinterpret_cast<uintptr_t>(mapping.bytes.data()));
    size.store(mapping.bytes.size());
    page_size.store(mapping.page_size);
    protection.store(mapping.protection);
    version.fetch_add(1);
  }
};

namespace {

// A signal handler has no other way to know. Slots are used from the front.
constinit std::array<TearGuard::Slot, TearGuard::kGuardsMax> slots;
constinit std::atomic<size_t> slots_used = 0;

// True: the access can go on.
bool mend(uintptr_t address) {
  const size_t used = slots_used.load();
  for (size_t i = 0; i < used; ++i) {
    TearGuard::Slot& slot = slots[i];
    const uint64_t version = slot.version.load();
    const uintptr_t begin = slot.begin.load();
    const size_t size = slot.size.load();
    const size_t page_size = slot.page_size.load();
    const int protection = slot.protection.load();
    // The slot of memory that is being touched does not change; others may.
    if (version % 2 != 0 || slot.version.load() != version) continue;
    if (address < begin || address - begin >= size) continue;
    slot.is_torn.store(true);
    const size_t offset = (address - begin) / page_size * page_size;
    constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
    return ::mmap(reinterpret_cast<void*>(begin + offset), size - offset, protection, kFlags, -1,
                  0) != MAP_FAILED;
  }
  return false;
}

void on_bus_error(int signal, siginfo_t* info, void*) {
  const int error = errno;
  const bool is_fault = info->si_code == BUS_ADRERR;
  if (is_fault && mend(reinterpret_cast<uintptr_t>(info->si_addr))) {
    errno = error;
    return;
  }
  // Nobody's: it comes again when this returns, and finds the default.
  struct sigaction action{};
  action.sa_handler = SIG_DFL;
  ::sigaction(SIGBUS, &action, nullptr);
  (void)::raise(signal);
}

void install() {
  struct sigaction action{};
  action.sa_sigaction = &on_bus_error;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGBUS, &action, nullptr);
}

}  // namespace

Result<TearGuard> TearGuard::make(const Mapping& mapping) {
  static std::once_flag installed;
  std::call_once(installed, &install);
  for (size_t i = 0; i < kGuardsMax; ++i) {
    Slot& slot = slots[i];
    if (slot.is_taken.exchange(true)) continue;
    slot.is_torn.store(false);
    slot.set(mapping);
    size_t used = slots_used.load();
    while (used < i + 1 && !slots_used.compare_exchange_weak(used, i + 1)) {
    }
    return TearGuard(&slot);
  }
  return fail(Errc::kLimit, "pieces of shared memory mapped by this process",
              static_cast<int32_t>(kGuardsMax));
}

TearGuard::~TearGuard() {
  if (slot_ == nullptr) return;
  slot_->set({});
  slot_->is_taken.store(false);
}

bool TearGuard::is_torn() const { return slot_->is_torn.load(std::memory_order_relaxed); }

}  // namespace cairn::posix
