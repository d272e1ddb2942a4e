// SPDX-License-Identifier: Apache-2.0
#include "world/posix/core.h"

#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <utility>

#include "base/check.h"
#include "task/frame.h"
#include "world/posix/pages.h"

namespace cairn::posix {

namespace {

// Entries of the ready queue to run before looking at the kernel again.
constexpr size_t kReadyBatch = 256;
// Falling asleep and waking takes longer.
constexpr Duration kTooShortToSleep = 3_us;

Time read_clock() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return Time{now.tv_sec * 1'000'000'000 + now.tv_nsec};
}

// What this thread has used.
Duration processor_time() {
  timespec used{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return Duration(used.tv_sec * 1'000'000'000 + used.tv_nsec);
}

uint64_t random_seed() {
  uint64_t seed = 0;
  CHECK(::getrandom(&seed, sizeof(seed), 0) == sizeof(seed));
  return seed;
}

void raise(int event_fd) {
  const uint64_t one = 1;
  // Fails only when the counter is full, and then it is readable already.
  (void)!::write(event_fd, &one, sizeof(one));
}

// Memory that another process tears is mended on the thread that touches it (tear_guard.h).
void unblock_bus_errors() {
  sigset_t bus_error;
  ::sigemptyset(&bus_error);
  ::sigaddset(&bus_error, SIGBUS);
  ::pthread_sigmask(SIG_UNBLOCK, &bus_error, nullptr);
}

Duration spin_limit(CoreId id, const env::WorldOptions& options) {
  const bool polls =
      options.poll ||
      std::ranges::find(options.poll_cpus, options.cpus[id.value()]) != options.poll_cpus.end();
  return polls ? Duration::max() : options.spin;
}

// Pages appear when touched and leave when discarded.
class MappedMemory final : public env::Memory {
 public:
  explicit MappedMemory(MutableBytes mapped) { bytes_ = mapped; }
  ~MappedMemory() override { ::munmap(bytes_.data(), bytes_.size()); }

  void discard(uint64_t offset, uint64_t length) override {
    const uint64_t end = offset + length;
    const PageRange pages = whole_pages(offset, end, page_size_);
    if (pages.begin >= pages.end) return clear(offset, end);
    clear(offset, pages.begin);
    clear(pages.end, end);
    const uint64_t size = pages.end - pages.begin;
    if (::madvise(bytes_.data() + pages.begin, size, MADV_DONTNEED) != 0) {
      clear(pages.begin, pages.end);
    }
  }

 private:
  void clear(uint64_t from, uint64_t to) { std::memset(bytes_.data() + from, 0, to - from); }

  const uint64_t page_size_ = page_size();
};

}  // namespace

Neighbours::Neighbours(size_t count) : cores(count) {
  for (size_t i = 0; i < count; ++i) {
    signals.emplace_back(::eventfd(0, EFD_CLOEXEC));
    CHECK(signals.back().is_open(), "an event descriptor per core");
  }
}

void Neighbours::wake_all() {
  for (const Fd& signal : signals) raise(signal.get());
}

void RingTrace::write(const char* what, uint64_t a, uint64_t b) {
  if (ring_.empty()) ring_.resize(kEvents);
  ring_[count_++ % kEvents] = {.at = clock_.now(), .what = what, .a = a, .b = b};
}

std::vector<env::TraceEvent> RingTrace::events() const {
  std::vector<env::TraceEvent> events;
  for (uint64_t i = count_ > kEvents ? count_ - kEvents : 0; i < count_; ++i) {
    events.push_back(ring_[i % kEvents]);
  }
  return events;
}

CoreEnv::CoreEnv(CoreId id, Neighbours& neighbours, const env::WorldOptions& options)
    : id_(id),
      neighbours_(neighbours),
      spin_(spin_limit(id, options)),
      nap_(options.nap.value_or(Duration{0})),
      governor_(!options.nap.has_value()),
      time_calls_(options.time_calls),
      now_(read_clock()),
      wheel_(now_),
      rng_(random_seed()),
      buffers_(options.buffers),
      trace_(*this, options.trace) {}

CoreEnv::~CoreEnv() { task::trim_frames(); }

WallTime CoreEnv::wall_now() const {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return WallTime{now.tv_sec * 1'000'000'000 + now.tv_nsec};
}

void CoreEnv::fill_secret(MutableBytes bytes) {
  while (!bytes.empty()) {
    const ssize_t got = ::getrandom(bytes.data(), bytes.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    CHECK(got > 0, "the kernel has randomness");
    bytes = bytes.subspan(static_cast<size_t>(got));
  }
}

Result<std::unique_ptr<env::Memory>> CoreEnv::map_memory(uint64_t size, env::MemoryPages pages) {
  if (size == 0) return fail(Errc::kInvalid, "memory of no size");
  void* mapped = ::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return fail(Error::from_errno(errno, "map memory"));
  // Where the kernel has them: a wish.
  const bool large = pages == env::MemoryPages::kLarge;
  (void)!::madvise(mapped, size, large ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  return std::make_unique<MappedMemory>(MutableBytes(static_cast<std::byte*>(mapped), size));
}

void CoreEnv::post(CoreId to, env::Message& message) {
  CHECK(to.value() < neighbours_.cores.size(), "a core of this world");
  neighbours_.cores[to.value()].load(std::memory_order_acquire)->put(message);
}

void CoreEnv::close_connection(int64_t handle) { ::close(static_cast<int>(handle)); }

void CoreEnv::put(env::Message& message) {
  if (mailbox_.put(message)) raise(signal_fd());
}

void CoreEnv::take_signal() {
  uint64_t count = 0;
  (void)!::read(signal_fd(), &count, sizeof(count));
}

void CoreEnv::refresh_clock() { now_ = read_clock(); }

void CoreEnv::run_messages() {
  env::Message* message = mailbox_.take_all();
  while (message != nullptr) {
    env::Message* next = message->next;  // the message may be gone once it has run
    message->run(*message, *this);
    message = next;
  }
}

// False: what was queued was done at once, and there is no reason to rest.
bool CoreEnv::take_nap() {
  turn(Time{0});
  if (!ready_.empty()) return false;
  const timespec length{.tv_sec = 0, .tv_nsec = nap_.length().ns};
  count_system_call();
  ::clock_nanosleep(CLOCK_MONOTONIC, 0, &length, nullptr);
  turn(Time{0});
  return true;
}

// The core has just been woken.
void CoreEnv::govern() {
  if (!governor_.is_on() || !governor_.woke(now_)) return;
  governor_.end_window(now_, {.cpu = processor_time(), .received = received_});
}

// Looks at the pollers. In vain, it looks a few times more before the rest of a turn, which costs
// more than they do; with many pollers that would keep others waiting for too long.
bool CoreEnv::poll() {
  constexpr uint32_t kLooks = 16;
  bool found = false;
  for (uint32_t looks = 0; looks < kLooks && !found; looks += poller_count_) {
    if (pollers_.empty()) return false;
    found = env::poll_all(pollers_);
    if (!ready_.empty() || mailbox_.has_mail()) break;
  }
  return found;
}

void CoreEnv::run(const env::Program* program) {
  unblock_bus_errors();
  const task::ReadyQueue::Scope scope(ready_);
  task::Task<void> main;
  if (program != nullptr) main = (*program)(*this);
  ::prctl(PR_SET_TIMERSLACK, 1);  // else naps are twice as long, and timers 50 us late
  bool napped = false;
  for (;;) {
    refresh_clock();
    if (neighbours_.stop_requested.load(std::memory_order_relaxed)) stop_.request();
    run_messages();
    wheel_.advance(now_);
    const bool polled = poll();
    const bool worked = ready_.run(kReadyBatch) > 0 || polled;
    if (main.is_valid() ? main.is_done() : neighbours_.ended.load(std::memory_order_acquire)) break;
    if (std::exchange(napped, false)) nap_.napped(worked);
    if (spin_.goes_on(worked, now_) || !ready_.empty() || !pollers_.empty() ||
        !mailbox_.fall_asleep()) {
      turn(Time{0});
      continue;
    }
    if (nap_.is_due(worked)) {
      napped = take_nap();
      mailbox_.awake();
      continue;
    }
    // Whoever sets a flag wakes after it, so a flag missed above ends the wait below.
    const bool flagged =
        neighbours_.ended.load() || (neighbours_.stop_requested.load() && !stop_.requested());
    const Time next = wheel_.next();
    if (next != Time::never()) refresh_clock();  // what ran above took time off the wait
    const bool is_near = next != Time::never() && next - now_ < kTooShortToSleep;
    const Time slept_at = now_;
    if (governor_.gathers() && worked && !flagged) {
      if (next == Time::never()) refresh_clock();
      gather(now_ + Governor::kGathering, Governor::kEvents);  // timers wait with the rest
    } else {
      turn(flagged || is_near ? Time{0} : next);
    }
    mailbox_.awake();
    if (spin_.is_on() || nap_.is_on() || governor_.is_on()) {
      refresh_clock();
      spin_.woke(slept_at, now_);
      nap_.waited(now_ - slept_at);
      govern();
    }
  }
  CHECK(pollers_.empty(), "pollers are unlisted before the program ends");
  drain();
}

StreamCall::StreamCall(CoreEnv& core, Kind kind) : core_(core), kind_(kind) {
  core_.count_system_call();
  if (kind == Kind::kSend) core_.count_send();
  if (core_.time_calls_) begin_ = read_clock();
}

StreamCall::~StreamCall() {
  if (!core_.time_calls_) return;
  env::KernelCalls& calls = core_.kernel_calls_;
  (kind_ == Kind::kSend ? calls.sending : calls.receiving) += read_clock() - begin_;
}

}  // namespace cairn::posix
