// The only file that knows threads. One pool for the process: started when first needed, started
// again in a child after fork, never larger than asked for. Results never depend on how many
// threads ran: work is cut into numbered pieces, and what a piece computes depends on its number.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <mutex>

namespace spinney::common {

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

// Gives way to others for as long as `changes` is `seen`.
void wait_for_change(const std::atomic<std::size_t>& changes, std::size_t seen);

// Work that shows up while other work is done, on the caller and up to n_threads-1 others. take()
// hands out the next piece, or null if there is none at the moment; finish(piece) hears that
// run(piece) has ended. take and finish are never called by two threads at once. All is over when
// there is nothing to take and nothing runs.
template <class Take, class Run, class Finish>
void parallel_tasks(int n_threads, const Take& take, const Run& run, const Finish& finish) {
  std::mutex mutex;
  std::size_t n_running = 0;
  bool failed = false;
  std::atomic<std::size_t> changes{0};
  parallel_for(static_cast<std::size_t>(n_threads), n_threads, [&](std::size_t, int) {
    std::unique_lock lock(mutex);
    while (!failed) {
      auto* const piece = take();
      if (piece == nullptr && n_running == 0) return;
      const std::size_t seen = changes.load(std::memory_order_relaxed);
      if (piece != nullptr) ++n_running;
      lock.unlock();
      if (piece == nullptr) {
        wait_for_change(changes, seen);
        lock.lock();
        continue;
      }
      try {
        run(*piece);
      } catch (...) {
        lock.lock();
        failed = true;
        changes.fetch_add(1, std::memory_order_release);
        throw;
      }
      lock.lock();
      --n_running;
      finish(*piece);
      changes.fetch_add(1, std::memory_order_release);
    }
  });
}

// How many threads are worth waking for `nanoseconds` of work: waking one costs microseconds. Where
// one region follows another at once (`awake`), threads still wait for it and less work pays.
int worthwhile_threads(double nanoseconds, int n_threads, bool awake = false);

}  // namespace spinney::common
