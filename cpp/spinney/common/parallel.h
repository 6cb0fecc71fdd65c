// The only file that knows threads. One pool for the process: started when first needed, started
// again in a child after fork, never larger than asked for. Results never depend on how many
// threads ran: work is cut into numbered pieces, and what a piece computes depends on its number.
#pragma once

#include <cstddef>
#include <functional>

namespace spinney {

// CPUs this process may use: the smallest of its affinity mask and its cgroup quota.
int available_cpus();

// What n_jobs=None means: starts as the smallest of available_cpus() and OMP_NUM_THREADS.
int get_num_threads();
void set_num_threads(int n_threads);

// Runs body(piece, worker) for every piece in 0 … n_pieces-1, on the caller and up to n_threads-1
// others; worker is in 0 … n_threads-1 and no two pieces with the same worker run at once. Pieces
// are handed out in order, as threads become free. The first exception is rethrown on the caller
// after all have stopped. Called from inside a piece, or when the pool is busy with another
// caller's work, it runs everything on the calling thread.
void parallel_for(std::size_t n_pieces, int n_threads,
                  const std::function<void(std::size_t piece, int worker)>& body);

// How many threads are worth waking for `nanoseconds` of work: waking one costs microseconds. Where
// one region follows another at once (`awake`), threads still wait for it and less work pays.
int worthwhile_threads(double nanoseconds, int n_threads, bool awake = false);

}  // namespace spinney
