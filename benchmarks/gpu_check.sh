#!/bin/sh
# Builds polyleaf where there is a GPU, checks it against the CPU, looks for errors of memory and races, and times it:
#
#   sh benchmarks/gpu_check.sh [FOLDER FOR THE REPORTS]
#
# No package index is asked: Python must have what pyproject.toml lists (the build requirements too), CuPy, pytest and pandas;
# tests that need another package of the extra "test" are skipped without it. With PYTEST_WORKERS=n (and pytest-xdist) tests run
# n at a time. Without compute-sanitizer that part is left out. Ends with 0 if all went well.
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
out=${1:-$root/build/gpu-check}
mkdir -p "$out"
rm -f "$out"/*.failed

step() {  # step NAME COMMAND...: runs it, keeps what it prints, and says how it ended
  name=$1
  shift
  if "$@" >"$out/$name.log" 2>&1; then
    echo "$name: ok: $(grep -v '^$' "$out/$name.log" | tail -n 1)"
  else
    touch "$out/$name.failed"
    echo "$name: FAILED, see $out/$name.log"
    tail -n 15 "$out/$name.log"
  fi
}

races() {  # CuPy's own kernels are not ours to judge: that of nonzero is reported
  compute-sanitizer --tool racecheck python3 benchmarks/gpu_small_runs.py >"$out/races.txt" 2>&1 || return 1
  grep "Race reported" "$out/races.txt" | grep -v " cupy_" && return 1
  tail -n 1 "$out/races.txt"
}

date -u "+%Y-%m-%d %H:%M UTC"
nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
step build python3 -m pip install --no-index --no-build-isolation --no-deps --quiet --upgrade \
  --target "$root/build/gpu" "$root"
export PYTHONPATH="$root/build/gpu${PYTHONPATH:+:$PYTHONPATH}"
cd "$root" || exit 1
if command -v compute-sanitizer >/dev/null; then
  step memcheck compute-sanitizer --tool memcheck --error-exitcode 1 python3 benchmarks/gpu_small_runs.py &
  step racecheck races &
fi
workers=${PYTEST_WORKERS:+-n $PYTEST_WORKERS}
# shellcheck disable=SC2086
step same-as-the-cpu python3 -m pytest -p no:cacheprovider $workers -m gpu
# shellcheck disable=SC2086
step suite-on-the-gpu python3 -m pytest -p no:cacheprovider $workers --device cuda -m "not gpu"
wait
sed -n '/skipped with --device cuda/,/ in [0-9.]*s/p' "$out/suite-on-the-gpu.log"
step timing python3 benchmarks/gpu.py --quick --out "$out/gpu.md"
for failed in "$out"/*.failed; do
  [ ! -e "$failed" ] || exit 1
done
