// SPDX-License-Identifier: Apache-2.0
// A Store over a State in this process, which a Journal makes durable.
//
// A commit changes the state at once and is answered, and shown to readers and watchers, when its
// mutation is durable: until then they see the revision before. Mutations that come while others
// are being written go together in the next write. When a write fails, so does everything after it:
// the store has to be opened again.
#pragma once

#include <memory>

#include "env/env.h"
#include "meta/journal.h"
#include "meta/state.h"
#include "meta/store.h"

namespace cairn::meta {

// In memory alone.
std::unique_ptr<Store> memory_store(env::Env& env, StateLimits limits = {});
// With a state that the journal has restored.
std::unique_ptr<Store> local_store(env::Env& env, std::unique_ptr<State> state,
                                   std::unique_ptr<Journal> journal);
// With a state that outlives the store, and the crash of its process in a simulation: it is not
// changed any more once the world is asked to end. Leases begin anew.
std::unique_ptr<Store> local_store(env::Env& env, State& state);

}  // namespace cairn::meta
