# Cross-compiles for 64-bit ARM on Linux and runs the tests in QEMU (Debian: g++-aarch64-linux-gnu,
# qemu-user). Linked statically, so that QEMU needs no ARM libraries.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_EXE_LINKER_FLAGS_INIT -static)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64)
