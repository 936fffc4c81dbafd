#!/bin/sh
# Builds polyleaf where there is a GPU, checks it against the CPU, looks for errors of memory and races, and times it:
#
#   sh benchmarks/gpu_check.sh [FOLDER FOR THE REPORTS]
#
# No package index is asked: Python must have what pyproject.toml lists (the build requirements too), CuPy and pytest. Without
# compute-sanitizer that part is left out. Ends with 0 if all went well.
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
out=${1:-$root/build/gpu-check}
mkdir -p "$out"
failed=0

step() {  # step NAME COMMAND...: runs it, keeps what it prints, and says how it ended
  name=$1
  shift
  if "$@" >"$out/$name.log" 2>&1; then echo "$name: ok; $(tail -n 1 "$out/$name.log")"; else
    failed=1
    echo "$name: FAILED; see $out/$name.log"
    tail -n 25 "$out/$name.log"
  fi
}

nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
step build python3 -m pip install --no-index --no-build-isolation --no-deps --quiet --upgrade --target "$root/build/gpu" "$root"
export PYTHONPATH="$root/build/gpu${PYTHONPATH:+:$PYTHONPATH}"
cd "$root" || exit 1
step same-as-the-cpu python3 -m pytest -q -p no:cacheprovider tests/gpu
step suite-on-the-gpu python3 -m pytest -q -p no:cacheprovider --device cuda tests/test_estimators.py tests/test_weights.py \
  tests/test_warm_start.py tests/test_callbacks.py tests/test_checkpoint.py tests/test_cv.py tests/test_mixed.py \
  tests/test_losses_with_missing_targets.py tests/test_sketch_and_sampling.py tests/test_importance.py
if command -v compute-sanitizer >/dev/null; then
  step memcheck compute-sanitizer --tool memcheck --error-exitcode 1 python3 benchmarks/gpu_small_runs.py
  step racecheck compute-sanitizer --tool racecheck --error-exitcode 1 python3 benchmarks/gpu_small_runs.py
fi
step timing python3 benchmarks/gpu.py --quick --out "$out/gpu.md"
exit $failed
