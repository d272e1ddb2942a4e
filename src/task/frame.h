// SPDX-License-Identifier: Apache-2.0
// Where coroutine frames live: free lists per thread, so that a call costs a pop and a push.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cairn::task {

// Memory for one coroutine frame. Frames up to 4 KiB come from the thread's free lists and return
// to them; larger ones go to the heap each time. Freed on the thread that allocated them.
void* allocate_frame(size_t size);
void free_frame(void* frame, size_t size);

// Gives the free lists of this thread back to the heap; a back end calls it when a core ends.
void trim_frames();

// How often this thread had to go to the heap for a frame: constant in a steady state.
uint64_t frame_heap_count();

}  // namespace cairn::task
