#!/usr/bin/env bash
# What is released, into dist/: packaging/release.sh all, or some of the functions below by
# name. `make release` calls it, and so does the release workflow.
#
# What compiles is pinned in packaging/requirements.txt, cargo's tools are below.
# ARCHES="x86_64 aarch64" selects the architectures. PROFILE=demo builds in a fraction of the
# time, to try what comes after; only the profile `dist` is held to a size.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo_deb=3.8.0
cargo_cyclonedx=0.5.9
# Of a binary; what every download, image and package carries.
max_binary_bytes=30000000
# Older systems than these can run nothing of ours: glibc 2.17 is Rust's own minimum.
manylinux=manylinux_2_17
musllinux=musllinux_1_2

arches=${ARCHES:-x86_64 aarch64}
profile=${PROFILE:-dist}
dist=$(realpath -m "${DIST_DIR:-dist}")
target_dir=${CARGO_TARGET_DIR:-$PWD/target}
stage=$target_dir/release-stage
venv=$target_dir/release-venv
tools=$target_dir/tools
version=$(sed -n '/^\[workspace.package\]/,/^$/s/^version = "\(.*\)"/\1/p' Cargo.toml)
host=$(uname -m)
# The time of the commit is in archives and packages: the same source, the same bytes.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y Cargo.toml)}
export SOURCE_DATE_EPOCH
# No build has the paths of the machine that made it.
export RUSTFLAGS="${RUSTFLAGS:-} --remap-path-prefix=$PWD=/airmile --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo"
# The wheel is of Python's stable interface: no interpreter is asked.
export PYO3_NO_PYTHON=1

skipped() { echo "SKIPPED: $*" >&2; }

compilers() {
  if ! [ -x "$venv/bin/maturin" ]; then
    "${PYTHON:-python3}" -m venv "$venv"
  fi
  "$venv/bin/pip" install --quiet -r packaging/requirements.txt
  export PATH="$venv/bin:$PATH"
}

# A target's standard library, from rustup where the toolchain has none.
has_target() {
  [ -d "$(rustc --print target-libdir --target "$1")" ] || rustup target add "$1"
}

# A tool of cargo's at its version, in target/tools: tool CRATE VERSION
tool() {
  if ! { [ -x "$tools/bin/$1" ] && grep -q "^\"$1 $2 " "$tools/.crates.toml"; }; then
    env -u RUSTFLAGS CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_OPT_LEVEL=0 CARGO_TARGET_DIR="$tools/build" \
      cargo install --quiet --locked --root "$tools" --version "$2" "$1"
  fi
}

# An archive with the same bytes for the same files: pack FILE.tar.gz DIR (below $stage)
pack() {
  tar -C "$stage" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -cf - "$2" | gzip -9n > "$1"
}

# Fails if a binary is too large, or needs a loader or a library.
check_static() {
  local bytes
  bytes=$(stat -c %s "$1")
  if readelf --program-headers --dynamic --wide "$1" | grep -E 'INTERP|\(NEEDED\)'; then
    echo "error: $1 is not static" >&2
    return 1
  fi
  if [ "$profile" = dist ] && [ "$bytes" -gt $max_binary_bytes ]; then
    echo "error: $1 has $bytes bytes, more than $max_binary_bytes" >&2
    return 1
  fi
  echo "$(basename "$(dirname "$(dirname "$1")")"): static, $bytes bytes$([ "$profile" != dist ] || echo " of at most $max_binary_bytes")"
}

built() { echo "$target_dir/$1-unknown-linux-musl/$profile/airmile"; }

# Static binaries, each in an archive with manual, completions and licences.
binaries() {
  compilers
  local arch target name
  for arch in $arches; do
    target=$arch-unknown-linux-musl
    has_target "$target"
    cargo zigbuild --locked --profile "$profile" -p airmile-cli --bin airmile --target "$target"
    check_static "$(built "$arch")"
  done
  manual
  mkdir -p "$dist"
  for arch in $arches; do
    name=airmile-$version-$arch-unknown-linux-musl
    rm -rf "${stage:?}/$name"
    mkdir -p "$stage/$name"
    cp "$(built "$arch")" README.md CHANGELOG.md LICENSE-APACHE LICENSE-MIT "$stage/$name/"
    # The README and messages name pages of docs/.
    cp -r docs "$stage/man" "$stage/completions" "$stage/$name/"
    pack "$dist/$name.tar.gz" "$name"
  done
}

# Manual pages and completions, which the command makes from its own arguments.
manual() {
  local command shell
  command=$(built "$host")
  [ -x "$command" ] || command=${AIRMILE:?"no binary for $host: AIRMILE=... names one that runs here"}
  rm -rf "$stage/man" "$stage/completions" "$stage/systemd"
  mkdir -p "$stage/completions" "$stage/systemd"
  "$command" man "$stage/man" >/dev/null
  for shell in bash zsh fish; do
    "$command" completions $shell > "$stage/completions/airmile.$shell"
  done
  # A package's command is in /usr/bin; who installs by hand has it in /usr/local/bin.
  for unit in packaging/systemd/*.service; do
    sed 's|/usr/local/bin/|/usr/bin/|' "$unit" > "$stage/systemd/$(basename "$unit")"
  done
}

# Debian packages of the static binaries, with services, manual and completions.
deb() {
  tool cargo-deb $cargo_deb
  [ -d "$stage/man" ] || manual
  mkdir -p "$dist"
  local arch
  for arch in $arches; do
    "$tools/bin/cargo-deb" --package airmile-cli --no-build --no-strip --profile "$profile" \
      --target "$arch-unknown-linux-musl" --output "$dist/"
  done
}

# Wheels for glibc and musl, with the command in them.
wheels() {
  compilers
  mkdir -p "$dist"
  local arch
  for arch in $arches; do
    has_target "$arch-unknown-linux-gnu"
    has_target "$arch-unknown-linux-musl"
    maturin build --quiet --locked --profile "$profile" --zig --target "$arch-unknown-linux-gnu" \
      --compatibility $manylinux --out "$dist"
    maturin build --quiet --locked --profile "$profile" --zig --target "$arch-unknown-linux-musl" \
      --compatibility $musllinux --out "$dist"
  done
}

# What the command is made of (CycloneDX), without the paths of this machine.
sbom() {
  tool cargo-cyclonedx $cargo_cyclonedx
  mkdir -p "$dist"
  local arch name bom
  for arch in $arches; do
    name=airmile-$version-$arch-unknown-linux-musl
    env PATH="$tools/bin:$PATH" cargo cyclonedx --quiet --manifest-path crates/airmile-cli/Cargo.toml --format json \
      --spec-version 1.5 --target "$arch-unknown-linux-musl" --override-filename "$name.cdx"
    sed "s|$PWD|/airmile|g" "crates/airmile-cli/$name.cdx.json" > "$dist/$name.cdx.json"
    # It writes one for each crate of the workspace, next to its manifest.
    for bom in crates/*/"$name.cdx.json" benches/"$name.cdx.json" fuzz/"$name.cdx.json" tests/accuracy/"$name.cdx.json"; do
      rm -f "$bom"
    done
  done
}

# The module for web players, as npm takes it.
npm_package() {
  command -v npm >/dev/null || { skipped "no npm: web/keep-warm is not packed"; return; }
  mkdir -p "$dist"
  (cd web/keep-warm && npm pack --silent --pack-destination "$dist" >/dev/null)
}

# An image of each architecture from its static binary; no network, no base image.
container() {
  local arch name root builder
  local -A platform=([x86_64]=amd64 [aarch64]=arm64)
  for builder in podman buildah docker ''; do
    case $builder in
      docker) docker info >/dev/null 2>&1 && break ;;
      ?*) command -v $builder >/dev/null && break ;;
    esac
  done
  [ -n "$builder" ] || { skipped "no podman, no buildah and no docker that runs: no image"; return; }
  rm -rf "$stage/container"
  for arch in $arches; do
    name=airmile-$version-$arch
    root=$stage/container/${platform[$arch]}
    install -D "$(built "$arch")" "$root/usr/bin/airmile"
    mkdir -p "$root/data" "$root/tmp"
    chmod 1777 "$root/tmp"
    $builder build --quiet --target released --platform "linux/${platform[$arch]}" \
      --build-arg "TARGETARCH=${platform[$arch]}" --tag "airmile:$version-${platform[$arch]}" \
      -f packaging/Dockerfile "$stage/container"
    rm -f "$dist/$name-image.tar"
    case $builder in
      docker) docker save -o "$dist/$name-image.tar" "airmile:$version-${platform[$arch]}" ;;
      *) $builder push --quiet "airmile:$version-${platform[$arch]}" "docker-archive:$dist/$name-image.tar:airmile:$version" ;;
    esac
    gzip -9nf "$dist/$name-image.tar"
  done
}

# The sums of all that is there; `sha256sum --check SHA256SUMS` verifies a download.
checksums() {
  (cd "$dist" && rm -f SHA256SUMS && LC_ALL=C sha256sum -- * > "$stage/SHA256SUMS" && mv "$stage/SHA256SUMS" . && sha256sum --quiet --check SHA256SUMS)
  (cd "$dist" && ls -l)
}

all() {
  rm -rf "$dist" "$stage"
  binaries
  deb
  wheels
  sbom
  npm_package
  container
  # The program for routers.
  make --no-print-directory release-qcut "DIST_DIR=$dist"
  checksums
}

for part in "${@:-all}"; do
  case $part in
    all|binaries|manual|deb|wheels|sbom|container|checksums) "$part" ;;
    npm) npm_package ;;
    *) echo "usage: $0 [all|binaries|deb|wheels|sbom|npm|container|checksums]..." >&2; exit 2 ;;
  esac
done
