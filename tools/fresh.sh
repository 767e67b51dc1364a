#!/usr/bin/env bash
# The README's two commands as a newcomer runs them: a fresh clone of HEAD, an empty home, a bare
# Debian 12 without a single package more. The root is made by debootstrap in a folder and entered by
# chroot; of this machine it takes where apt and npm look for packages, and nothing else.
# usage, as root: fresh.sh FOLDER COMMAND...   (each COMMAND is one line for ./dev)
set -euo pipefail

readonly folder=$1 root=$1/root
shift
source_folder=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly source_folder release=bookworm home=/root

say() { printf '== %s\n' "$*" >&2; }
die() { say "error: $*"; exit 1; }

# Where this machine gets that release from.
mirror() {
  apt-get indextargets --format '$(RELEASE) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' |
    awk -v release=$release '$1 == release && $2 == "main" { print $3; exit }'
}

make_root() {
  local from part
  from=$(mirror)
  [[ $from ]] || die "apt gets $release from nowhere on this machine"
  mkdir -p "$folder"
  say "a bare $release in $root"
  debootstrap --variant=minbase "$release" "$root" "$from" >"$folder/debootstrap.log" 2>&1 ||
    { tail -5 "$folder/debootstrap.log" >&2; die "debootstrap failed (see $folder/debootstrap.log)"; }
  rm -f "$root"/etc/apt/sources.list
  for part in sources.list sources.list.d apt.conf.d preferences.d trusted.gpg.d; do
    [[ -e /etc/apt/$part ]] && cp -r "/etc/apt/$part" "$root/etc/apt/"
  done
  cp /etc/resolv.conf /etc/hosts "$root/etc/"
  [[ ! -f /etc/ssl/certs/ca-certificates.crt ]] ||
    cp /etc/ssl/certs/ca-certificates.crt "$root/etc/hosts-certificates.crt"
}

# A clone, so that what is not committed is not tested.
clone() {
  git -c safe.directory="$source_folder" clone --quiet --no-hardlinks "$source_folder" "$root$home/anneal"
}

# inside COMMAND...: in the root, in namespaces of its own, so that no mount or process is left behind.
inside() {
  local name settings=("HOME=$home" TERM=dumb LANG=C.UTF-8
                       PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin)
  for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY ANNEAL_FUZZ_SECONDS; do
    [[ ! ${!name:-} ]] || settings+=("$name=${!name}")
  done
  ! command -v npm >/dev/null || settings+=("NPM_CONFIG_REGISTRY=$(npm config get registry 2>/dev/null)")
  [[ ! -f $root/etc/hosts-certificates.crt ]] ||
    settings+=(NODE_EXTRA_CA_CERTS=/etc/hosts-certificates.crt NPM_CONFIG_CAFILE=/etc/hosts-certificates.crt)
  unshare --mount --pid --fork --kill-child bash -c '
    root=$1
    shift
    mount --bind "$root" "$root" &&  # a mount of its own, so that tests can unshare theirs
      mount -t proc proc "$root/proc" && mount --rbind /dev "$root/dev" &&
      mount -t tmpfs tmpfs "$root/dev/shm" && exec chroot "$root" env -i "$@"' \
    bash "$root" "${settings[@]}" bash -c "cd $home/anneal && $*" </dev/null
}

# What a test leaves out, it says.
check_skipped() {
  local log=$root$home/anneal/build/Testing/Temporary/LastTest.log
  [[ -f $log ]] || return 0
  ! grep 'skipped: \|(Skipped)' "$log" >&2 || { say "fresh: tests were skipped"; return 1; }
}

rm -rf "$folder"  # a root in which something was installed is bare no more
make_root
clone
failed=()
for command in "$@"; do
  start=$SECONDS
  say "fresh: ./dev $command"
  inside "./dev $command" || failed+=("./dev $command")
  say "fresh: ./dev $command took $((SECONDS - start)) s"
done
check_skipped || failed+=("tests that ran everywhere")
((${#failed[@]} == 0)) || { printf '== fresh: FAILED: %s\n' "${failed[@]}" >&2; exit 1; }
say "fresh: all passed"
