// Properties of the process that the operating system knows.
#pragma once

namespace spinney::common {

// The CPUs in the process's affinity mask, or all CPUs where a system has no such mask.
int affinity_cpus();

// The CPUs that the quota of the process's cgroup (Linux) amounts to, rounded; 0 without a quota.
int quota_cpus();

// Calls the function in each child process after fork; nothing on systems without fork.
void call_after_fork(void (*function)());

}  // namespace spinney::common
