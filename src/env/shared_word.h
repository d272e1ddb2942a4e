// SPDX-License-Identifier: Apache-2.0
// Words in memory that others use at the same time: each is read or written once, whole, and in a
// known order. Everything else in such memory is plain bytes that may change while they are read.
//
// `at` is aligned as T is; whoever takes an address from a guest has checked that.
#pragma once

#include <cstddef>
#include <type_traits>

namespace cairn::env {

// What the writer had written before this word is seen after it.
template <class T>
  requires std::is_integral_v<T>
T load_shared(const std::byte* at) {
  const T* const word = reinterpret_cast<const T*>(at);
  return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

// Whoever reads this word sees all that was written before it.
template <class T>
  requires std::is_integral_v<T>
void store_shared(std::byte* at, T value) {
  T* const word = reinterpret_cast<T*>(at);
  __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

// Between a store and a later load: the other side sees the store, or this side what the other
// stored before it did the same. Who says "I sleep" and then looks once more needs it.
inline void shared_fence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

// Sets bits and leaves the others as they are, whoever changes those meanwhile.
template <class T>
  requires std::is_integral_v<T>
void set_shared_bits(std::byte* at, T bits) {
  __atomic_fetch_or(reinterpret_cast<T*>(at), bits, __ATOMIC_RELAXED);
}

// For memory that outlives this process: if it is killed, what was stored after this is there only
// if what was stored before it is. The processor keeps that order; this keeps the compiler to it.
inline void crash_fence() { __atomic_signal_fence(__ATOMIC_SEQ_CST); }

}  // namespace cairn::env
