#!/bin/sh
# Builds the static airmile-qcut for a router's machine.
#
#     build.sh MACHINE OUT
#
# For aarch64 and x86_64 rustup has a standard library with musl, and Rust's own lld links. For
# armv7, mipsel and mips (24KEc class: MIPS32r2, soft float) there is none: the standard library is
# built from its source (rustup's rust-src), and zig has the C library and the linker
# (pip install ziglang). What is not there is told as SKIPPED, and OUT is then not written.
set -eu
machine=$1 out=$2
cargo=${CARGO:-cargo}
tools=$(dirname "$(realpath "$0")")
skip() { echo "SKIPPED: $machine: $1"; exit 0; }

case $machine in
  # OpenWrt has Cortex-A9 without NEON and with 16 registers of VFPv3.
  armv7) target=armv7-unknown-linux-musleabihf zig='arm-linux-musleabihf -mcpu=generic+v7a+vfp3d16-neon-d32' ;;
  mips | mipsel) target=$machine-unknown-linux-musl zig="$machine-linux-musleabi -mcpu=mips32r2+soft_float" ;;
  *) target=$machine-unknown-linux-musl zig= ;;
esac
set -- --locked --profile release-small -p airmile-qcut --bin airmile-qcut --no-default-features --target "$target"
if [ -z "$zig" ]; then
  rustup target list --installed | grep -qx "$target" || rustup target add "$target" >/dev/null 2>&1 ||
    skip "rustup has no standard library for it"
  $cargo build --config "target.$target.linker='rust-lld'" "$@"
else
  [ -e "$(rustc --print sysroot)/lib/rustlib/src/rust/library/Cargo.lock" ] || rustup component add rust-src >/dev/null 2>&1 ||
    skip "the standard library's source is not there (rustup component add rust-src)"
  "${PYTHON:-python3}" -m ziglang version >/dev/null 2>&1 || skip "no C library and linker for it (pip install ziglang)"
  # Building the standard library is not a stable option of cargo.
  export RUSTC_BOOTSTRAP=1 ZIG_TARGET="$zig"
  $cargo build -Zbuild-std=std,panic_abort --config "target.$target.linker='$tools/zig-link.sh'" \
    --config "target.$target.rustflags=['-Ctarget-feature=+crt-static', '-Clink-self-contained=no']" "$@"
fi
cp "${CARGO_TARGET_DIR:-target}/$target/release-small/airmile-qcut" "$out"
