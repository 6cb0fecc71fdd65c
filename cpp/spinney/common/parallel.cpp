#include "spinney/common/parallel.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "spinney/common/system.h"

namespace spinney::common {

namespace {

int initial_threads() {
  int n = available_cpus();
  if (const char* text = std::getenv("OMP_NUM_THREADS")) {
    const int limit = std::atoi(text);
    if (limit > 0) n = std::min(n, limit);
  }
  return n;
}

std::atomic<int>& thread_setting() {
  static std::atomic<int> n{initial_threads()};
  return n;
}

// One call of parallel_for.
struct Job {
  const std::function<void(std::size_t, int)>* body = nullptr;
  std::size_t n_tasks = 0;
  std::atomic<std::size_t> next{0};
  std::atomic<bool> failed{false};
  std::exception_ptr error;
  std::mutex error_mutex;

  void run(int worker) {
    for (;;) {
      const std::size_t task = next.fetch_add(1, std::memory_order_relaxed);
      if (task >= n_tasks || failed.load(std::memory_order_relaxed)) return;
      try {
        (*body)(task, worker);
      } catch (...) {
        const std::lock_guard lock(error_mutex);
        if (!error) error = std::current_exception();
        failed.store(true, std::memory_order_relaxed);
      }
    }
  }
};

class Pool {
 public:
  ~Pool() {
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
    }
    wake_.notify_all();
    for (auto& thread : threads_) thread.join();
  }

  // False if the pool works for another caller.
  bool try_acquire() { return !busy_.exchange(true, std::memory_order_acquire); }
  void release() { busy_.store(false, std::memory_order_release); }

  void run(Job& job, int n_threads) {
    const int n_helpers = n_threads - 1;
    while (static_cast<int>(threads_.size()) < n_helpers) {
      const int worker = static_cast<int>(threads_.size()) + 1;
      const std::uint64_t seen = generation_.load(std::memory_order_relaxed);
      threads_.emplace_back([this, worker, seen] { work(worker, seen); });
    }
    active_.store(n_helpers, std::memory_order_relaxed);
    {
      const std::lock_guard lock(mutex_);
      job_ = &job;
      n_helpers_ = n_helpers;
      generation_.fetch_add(1, std::memory_order_release);
    }
    wake_.notify_all();
    job.run(0);
    // The other threads finish their last task soon: spinning first saves a wake-up.
    for (int spin = 0; active_.load(std::memory_order_acquire) != 0; ++spin) {
      if (spin > 2000) std::this_thread::yield();
    }
  }

 private:
  void work(int worker, std::uint64_t seen) {
    in_pool() = true;
    for (;;) {
      // Parallel regions follow each other closely while a tree grows: spin before sleeping.
      bool fresh = false;
      const auto deadline = std::chrono::steady_clock::now() + std::chrono::microseconds(40);
      do {
        for (int i = 0; i < 64 && !fresh; ++i) {
          fresh = generation_.load(std::memory_order_acquire) != seen;
        }
      } while (!fresh && std::chrono::steady_clock::now() < deadline);
      std::unique_lock lock(mutex_);
      wake_.wait(lock,
                 [&] { return closing_ || generation_.load(std::memory_order_relaxed) != seen; });
      if (closing_) return;
      seen = generation_.load(std::memory_order_relaxed);
      if (worker > n_helpers_) continue;
      Job* job = job_;
      lock.unlock();
      job->run(worker);
      active_.fetch_sub(1, std::memory_order_release);
    }
  }

 public:
  // Whether this thread is inside a parallel region.
  static bool& in_pool() {
    thread_local bool inside = false;
    return inside;
  }

 private:
  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable wake_;
  Job* job_ = nullptr;
  int n_helpers_ = 0;
  bool closing_ = false;
  std::atomic<std::uint64_t> generation_{0};
  std::atomic<int> active_{0};
  std::atomic<bool> busy_{false};
};

// The pool is never destroyed at exit, when its threads may be asleep. In a child after fork, where
// its threads do not exist, a new pool replaces it.
Pool*& pool_slot() {
  static Pool* slot = nullptr;
  return slot;
}

Pool& pool() {
  static std::once_flag registered;
  std::call_once(registered, [] {
    call_after_fork([] {
      pool_slot() = nullptr;
      Pool::in_pool() = false;
    });
  });
  static std::mutex mutex;
  // Held for the time of a `new` only, so a child process hardly ever inherits it locked.
  const std::lock_guard lock(mutex);
  if (pool_slot() == nullptr) pool_slot() = new Pool;
  return *pool_slot();
}

void run_alone(std::size_t n_tasks, const std::function<void(std::size_t, int)>& body) {
  for (std::size_t task = 0; task < n_tasks; ++task) body(task, 0);
}

}  // namespace

int available_cpus() {
  const int affinity = affinity_cpus();
  const int quota = quota_cpus();
  return quota > 0 ? std::min(affinity, quota) : affinity;
}

int get_num_threads() { return thread_setting().load(std::memory_order_relaxed); }

void set_num_threads(int n_threads) {
  thread_setting().store(std::max(1, n_threads), std::memory_order_relaxed);
}

void parallel_for(std::size_t n_tasks, int n_threads,
                  const std::function<void(std::size_t, int)>& body) {
  n_threads = static_cast<int>(
      std::min<std::size_t>(n_tasks, static_cast<std::size_t>(std::max(1, n_threads))));
  if (n_threads <= 1 || Pool::in_pool()) return run_alone(n_tasks, body);
  Pool& shared = pool();
  if (!shared.try_acquire()) return run_alone(n_tasks, body);
  Job job;
  job.body = &body;
  job.n_tasks = n_tasks;
  {
    // Released also if the system cannot start another thread.
    struct Hold {
      Pool& pool;
      explicit Hold(Pool& held) : pool(held) { Pool::in_pool() = true; }
      ~Hold() {
        Pool::in_pool() = false;
        pool.release();
      }
    } hold(shared);
    shared.run(job, n_threads);
  }
  if (job.error) std::rethrow_exception(job.error);
}

void wait_for_change(const std::atomic<std::size_t>& changes, std::size_t seen) {
  for (int spin = 0; changes.load(std::memory_order_acquire) == seen; ++spin) {
    if (spin > 2000) std::this_thread::yield();
  }
}

int worthwhile_threads(double nanoseconds, int n_threads, bool awake) {
  const double per_thread = awake ? 5'000 : 20'000;  // the cost of a wake-up
  return std::clamp(static_cast<int>(nanoseconds / per_thread), 1, n_threads);
}

}  // namespace spinney::common
