#!/bin/sh
# Cross-compiles the core and the C++ tests for Windows (x86-64) with Zig's Clang, and runs the tests if
# Wine is installed. First: pip install ziglang; on Debian: apt-get install wine64.
set -eu
cd "$(dirname "$0")/.."
build=$PWD/build/windows
python=$(command -v python3)
"$python" -m ziglang version > /dev/null 2>&1 || {
  echo "tools/windows.sh needs Zig: pip install ziglang" >&2
  exit 1
}

# CMake takes a compiler as one file.
mkdir -p "$build"
for tool in c++ ar ranlib; do
  target=
  [ "$tool" = c++ ] && target="-target x86_64-windows-gnu"
  printf '#!/bin/sh\nexec "%s" -m ziglang %s %s "$@"\n' "$python" "$tool" "$target" > "$build/zig-$tool"
  chmod +x "$build/zig-$tool"
done

cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_SYSTEM_NAME=Windows \
  -DCMAKE_SYSTEM_PROCESSOR=x86_64 -DCMAKE_CXX_COMPILER="$build/zig-c++" \
  -DCMAKE_AR="$build/zig-ar" -DCMAKE_RANLIB="$build/zig-ranlib" \
  -DSPINNEY_PYTHON=OFF -DSPINNEY_TESTS=ON
cmake --build "$build" "$@"

for wine in wine64 wine; do
  if command -v "$wine" > /dev/null 2>&1; then
    export WINEDEBUG=-all
    "$wine" "$build/spinney_tests.exe"
    # The hashes of the fits; tests/compare_bits.py compares them with those of another build.
    "$wine" "$build/spinney_bits.exe" | tr -d '\r' > "$build/bits.txt"
    # Compare with a Linux build, if there is one: cmake --preset tests && cmake --build --preset tests
    if [ -x build/tests/spinney_bits ]; then
      "$python" tests/compare_bits.py build/tests/spinney_bits "$build/bits.txt"
    fi
    exit
  fi
done
echo "The tests were built but not run: Wine is not installed."
