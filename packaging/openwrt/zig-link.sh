#!/bin/sh
# The linker of build.sh: zig's, with its musl. ZIG_TARGET is the target and its processor.
# shellcheck disable=SC2086
exec "${PYTHON:-python3}" -m ziglang cc -target ${ZIG_TARGET} "$@"
