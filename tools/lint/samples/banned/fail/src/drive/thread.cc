// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <mutex>
#include <thread>

std::thread a;
std::jthread b;
auto c = std::async([] {});
std::shared_mutex d;
std::lock_guard guard(d);
std::condition_variable e;
std::atomic<int> f;
std::atomic_flag g;
int h = pthread_create(&id, nullptr, run, nullptr);
int i = __atomic_load_n(&x, __ATOMIC_RELAXED);
