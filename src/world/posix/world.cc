// SPDX-License-Identifier: Apache-2.0
#include "world/posix/world.h"

#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <latch>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"

namespace cairn::posix {

namespace {

// Pins the calling thread and restores what was there before.
class Pinned {
 public:
  static Result<Pinned> to(int cpu) {
    Pinned pinned;
    if (cpu < 0) return pinned;
    CPU_ZERO(&pinned.before_);
    if (::pthread_getaffinity_np(::pthread_self(), sizeof(cpu_set_t), &pinned.before_) != 0) {
      return fail(Errc::kUnsupported, "ask for the thread's CPUs");
    }
    cpu_set_t wanted;
    CPU_ZERO(&wanted);
    if (cpu >= CPU_SETSIZE) return fail(Errc::kInvalid, "CPU number", cpu);
    CPU_SET(cpu, &wanted);
    if (::pthread_setaffinity_np(::pthread_self(), sizeof(wanted), &wanted) != 0) {
      return fail(Errc::kInvalid, "pin to a CPU this process may not use; CPU number", cpu);
    }
    pinned.is_set_ = true;
    return pinned;
  }
  Pinned(Pinned&& other) noexcept
      : before_(other.before_), is_set_(std::exchange(other.is_set_, false)) {}
  Pinned& operator=(Pinned&&) = delete;
  ~Pinned() {
    if (is_set_) ::pthread_setaffinity_np(::pthread_self(), sizeof(before_), &before_);
  }

 private:
  Pinned() = default;
  cpu_set_t before_{};
  bool is_set_ = false;
};

// The world a signal stops; signal handlers have no other way to know.
std::atomic<ThreadWorld*> signalled_world = nullptr;

void on_signal(int) {
  if (ThreadWorld* world = signalled_world.load()) world->request_stop();
}

}  // namespace

// While in scope, SIGINT and SIGTERM ask the world to stop; a second one ends the process at once.
class ThreadWorld::Signals {
 public:
  explicit Signals(ThreadWorld& world) {
    ThreadWorld* none = nullptr;
    CHECK(signalled_world.compare_exchange_strong(none, &world), "one world handles signals");
    struct sigaction action{};
    action.sa_handler = &on_signal;
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    ::sigaction(SIGINT, &action, &before_interrupt_);
    ::sigaction(SIGTERM, &action, &before_terminate_);
  }
  ~Signals() {
    ::sigaction(SIGINT, &before_interrupt_, nullptr);
    ::sigaction(SIGTERM, &before_terminate_, nullptr);
    signalled_world.store(nullptr);
  }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

 private:
  struct sigaction before_interrupt_{};
  struct sigaction before_terminate_{};
};

ThreadWorld::ThreadWorld(env::WorldOptions options)
    : options_(std::move(options)), neighbours_(options_.cpus.size()) {
  CHECK(!options_.cpus.empty(), "a world has a core");
}

void ThreadWorld::request_stop() {
  neighbours_.stop_requested.store(true);
  neighbours_.wake_all();
}

Result<void> ThreadWorld::run(const env::Program& program) {
  CHECK(!has_run_, "a world runs once");
  has_run_ = true;
  const auto count = static_cast<uint32_t>(options_.cpus.size());
  std::vector<std::optional<Error>> failures(count);
  std::latch made(count);  // every core exists, or has failed, before any runs
  std::latch left(count);  // and none is destroyed while another could still send to it

  auto body = [&](uint32_t index) {
    const Result<Pinned> pinned = Pinned::to(options_.cpus[index]);
    Result<std::unique_ptr<CoreEnv>> core = fail(Errc::kInvalid, "core");
    if (pinned) {
      core = make_core(CoreId(index), neighbours_, options_);
    } else {
      core = fail(pinned.error());
    }
    if (core) {
      neighbours_.cores[index].store(core->get(), std::memory_order_release);
    } else {
      failures[index] = core.error();
    }
    made.arrive_and_wait();
    bool all_made = true;
    for (const auto& failure : failures) all_made = all_made && !failure;
    if (all_made) {
      (*core)->run(index == 0 ? &program : nullptr);
      if (index == 0) {
        neighbours_.ended.store(true);
        neighbours_.wake_all();
      }
    }
    left.arrive_and_wait();
    neighbours_.cores[index].store(nullptr);
  };

  std::optional<Signals> signals;
  if (options_.handle_signals) signals.emplace(*this);
  std::vector<std::thread> threads;
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);  // threads inherit: signals go to the first core
  for (uint32_t i = 1; i < count; ++i) threads.emplace_back(body, i);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  body(0);
  for (std::thread& thread : threads) thread.join();
  for (const auto& failure : failures) {
    if (failure) return fail(*failure);
  }
  return {};
}

}  // namespace cairn::posix
