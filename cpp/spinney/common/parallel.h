// The thread pool, one for the process. It starts when first needed, and again in a child process
// after fork. Results never depend on the number of threads: work is divided into numbered tasks,
// and the result of a task depends only on its number.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <mutex>

namespace spinney::common {

// The CPUs this process may use: the minimum of its affinity mask and its cgroup quota.
int available_cpus();

// The number of threads for n_jobs=None, initially the minimum of available_cpus() and
// OMP_NUM_THREADS.
int get_num_threads();
void set_num_threads(int n_threads);

// Runs body(task, worker) for each task in 0 … n_tasks-1, on the caller and up to n_threads-1 other
// threads. worker is in 0 … n_threads-1, and tasks with the same worker never run at the same time.
// Tasks start in order, as threads become free. The first exception is rethrown on the caller after
// all threads have stopped. A call from inside a task, or while the pool works for another caller,
// runs all tasks on the calling thread.
void parallel_for(std::size_t n_tasks, int n_threads,
                  const std::function<void(std::size_t task, int worker)>& body);

// Waits until `changes` differs from `seen`.
void wait_for_change(const std::atomic<std::size_t>& changes, std::size_t seen);

// Runs tasks that create further tasks, on the caller and up to n_threads-1 other threads. take()
// returns the next task, or null if there is none at the moment. finish(task) is called after
// run(task). Two threads never call take or finish at the same time. The function returns when
// take() returns null and no task runs.
template <class Take, class Run, class Finish>
void parallel_tasks(int n_threads, const Take& take, const Run& run, const Finish& finish) {
  std::mutex mutex;
  std::size_t n_running = 0;
  bool failed = false;
  std::atomic<std::size_t> changes{0};
  parallel_for(static_cast<std::size_t>(n_threads), n_threads, [&](std::size_t, int) {
    std::unique_lock lock(mutex);
    while (!failed) {
      auto* const task = take();
      if (task == nullptr && n_running == 0) return;
      const std::size_t seen = changes.load(std::memory_order_relaxed);
      if (task != nullptr) ++n_running;
      lock.unlock();
      if (task == nullptr) {
        wait_for_change(changes, seen);
        lock.lock();
        continue;
      }
      try {
        run(*task);
      } catch (...) {
        lock.lock();
        failed = true;
        changes.fetch_add(1, std::memory_order_release);
        throw;
      }
      lock.lock();
      --n_running;
      finish(*task);
      changes.fetch_add(1, std::memory_order_release);
    }
  });
}

// The number of threads that pays for `nanoseconds` of work: waking one costs microseconds. If one
// parallel region follows another at once (`awake`), threads still spin and less work pays.
int worthwhile_threads(double nanoseconds, int n_threads, bool awake = false);

}  // namespace spinney::common
