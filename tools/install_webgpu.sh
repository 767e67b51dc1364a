#!/usr/bin/env bash
# Installs what WebGPU needs for tests into FOLDER, without touching the system: Dawn (a webgpu.h
# library), Vulkan loaders with drivers that compute on the CPU, and a second WGSL compiler. All come
# from where npm and apt are configured to look.
# Says what it could not get and exits with 1 then; what is there already is left alone.
# usage: install_webgpu.sh FOLDER LOG
set -uo pipefail

readonly folder=$1 log=$2

# Names, versions and contents are pinned.
readonly dawn=bun-webgpu-linux-x64@0.1.7
readonly dawn_sha512=UEP7UZdEhx9otvkZczjsszL8ZVlrODANQvgl+C88/bNVmxDoFi7w1fWzGi1sZyakiETjmtFDq2/xCLhbSZxjqw==
readonly naga=naga-wasm@30.1.0
readonly naga_sha512=uROKRlHP61ZIBab0ztBIFN8dWloDm+fdgO+cg5A7m7KK50HeHECiV0C2HvV1a+XNYiHVQZ6VV7EYGWbW7LS3Ug==
readonly swiftshader=@sparticuz/chromium@147.0.0
readonly swiftshader_sha512=4ZKeAQQa8up2mt675qSitztLdbQrlf8BKdC5naeap+5Mv1OV1OlJdPoU+EJC/p5sQUJUQmN4r+q5+EhaaOUHpQ==

say() { printf '== %s\n' "$*" >&2; }

mkdir -p "$folder" "$(dirname "$log")" || exit 1
work=$(mktemp -d "$folder/.installing.XXXXXX") || exit 1
readonly work
trap 'rm -rf "$work"' EXIT
: >"$log"

# fetch PACKAGE SHA512: the package's files are in $work/package then. Scripts are never run.
fetch() {
  local package=$1 sha512=$2 file
  command -v npm >/dev/null || { echo "there is no npm" >>"$log"; return 1; }
  rm -rf "$work/package" "$work"/*.tgz
  npm pack --silent --ignore-scripts --pack-destination "$work" "$package" >>"$log" 2>&1 || return 1
  file=$(echo "$work"/*.tgz)
  if [[ $(openssl dgst -sha512 -binary "$file" | base64 -w0) != "$sha512" ]]; then
    say "$package is not what it was: its SHA-512 differs"
    return 1
  fi
  tar -xzf "$file" -C "$work" 2>>"$log"
}

install_dawn() {
  [[ -f $folder/libwebgpu_dawn.so ]] && return
  fetch "$dawn" "$dawn_sha512" &&
    mv "$work/package/libwebgpu_wrapper.so" "$folder/libwebgpu_dawn.so"
}

install_naga() {
  [[ -f $folder/naga/dist/node.js ]] && return
  fetch "$naga" "$naga_sha512" && mv "$work/package" "$folder/naga"
}

# use_driver NAME LIBRARY FOUND: makes a folder of it and what it needs of $work; a manifest names it.
use_driver() {
  local name=$1 library=$2 found=$3 made=$work/made needed
  rm -rf "$made"
  mkdir -p "$made/lib"
  cp -L "$found/$library" "$found"/libvulkan.so.1 "$made/lib" 2>>"$log" || return 1
  LD_LIBRARY_PATH=$found ldd "$found/$library" | while read -r _ _ needed _; do
    [[ $needed == "$work"/* ]] && cp -L "$needed" "$made/lib"
  done
  printf '{"file_format_version": "1.0.0", "ICD": {"library_path": "./lib/%s", "api_version": "1.3.0"}}\n' \
    "$library" >"$made/icd.json"
  if LD_LIBRARY_PATH=$made/lib ldd "$made/lib/$library" | grep 'not found' >>"$log"; then return 1; fi
  mv "$made" "$folder/$name"
}

# Mesa's lavapipe, out of Debian's backports: the packages are unpacked, not installed, so that
# neither root nor a changed system is needed. Debian 12's own is too old for Dawn. Backports are
# where this machine gets its release from.
install_lavapipe() {
  [[ -f $folder/lavapipe/icd.json ]] && return
  command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || return 1
  local release mirror key=/usr/share/keyrings/debian-archive-keyring.gpg
  release=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
  [[ $(. /etc/os-release && echo "${ID:-}") == debian && -f $key ]] || return 1
  mirror=$(apt-get indextargets --format '$(RELEASE) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' |
    awk -v release="$release" '$1 == release && $2 == "main" { print $3; exit }')
  [[ $mirror ]] || { echo "apt gets $release from nowhere" >>"$log"; return 1; }
  mkdir -p "$work"/apt/{lists,archives}/partial "$work/root"
  printf "deb [signed-by=$key] %s %s main\n" "$mirror" "$release" "$mirror" "$release-backports" \
    >"$work/apt/sources.list"
  local apt=(apt-get -qq -y -o Dir::Etc::SourceList="$work/apt/sources.list"
             -o Dir::Etc::SourceParts=/dev/null -o Dir::State::Lists="$work/apt/lists"
             -o Dir::Cache="$work/apt" -o Debug::NoLocking=1 -o APT::Sandbox::User="$(id -un)")
  "${apt[@]}" update >>"$log" 2>&1 || return 1
  "${apt[@]}" install --download-only --reinstall --no-install-recommends -t "$release-backports" \
    mesa-vulkan-drivers libvulkan1 >>"$log" 2>&1 || return 1
  local package
  for package in "$work"/apt/archives/*.deb; do dpkg-deb -x "$package" "$work/root" || return 1; done
  use_driver lavapipe libvulkan_lvp.so "$work/root/usr/lib/$(dpkg-architecture -q DEB_HOST_MULTIARCH 2>/dev/null ||
    echo x86_64-linux-gnu)"
}

# SwiftShader, as it comes with a Chromium for servers.
install_swiftshader() {
  [[ -f $folder/swiftshader/icd.json ]] && return
  command -v node >/dev/null || return 1
  fetch "$swiftshader" "$swiftshader_sha512" || return 1
  mkdir -p "$work/swiftshader"
  node -e 'process.stdout.write(require("zlib").brotliDecompressSync(require("fs").readFileSync(process.argv[1])))' \
    "$work/package/bin/swiftshader.tar.br" | tar -x -C "$work/swiftshader" || return 1
  use_driver swiftshader libvk_swiftshader.so "$work/swiftshader"
}

# SwiftShader makes a shader ready in a tenth of lavapipe's time, lavapipe runs it faster: tests of
# many shaders take one of them, tests of models the other, and both what there is.
install_drivers() {
  local models shaders
  install_swiftshader && shaders=swiftshader models=swiftshader
  install_lavapipe && models=lavapipe shaders=${shaders:-lavapipe}
  [[ ${models:-} ]] || return 1
  say "Vulkan drivers in $folder: $shaders for tests of many shaders, $models for tests of models"
  [[ -L $folder/vulkan ]] || rm -rf "$folder/vulkan"
  ln -sfn "$models" "$folder/vulkan" && ln -sfn "$shaders" "$folder/vulkan-many-shaders"
}

missing=0
lack() { say "missing: $*"; missing=1; }

if [[ $(uname -sm) != "Linux x86_64" ]]; then
  say "WebGPU is installed by hand on $(uname -sm): a webgpu.h library that ANNEAL_WEBGPU_LIB names, a Vulkan driver"
  exit 1
fi
install_dawn || lack "a WebGPU library: npm cannot fetch $dawn (see $log)"
install_drivers || lack "a Vulkan driver for the CPU: neither npm ($swiftshader) nor Debian's backports (mesa-vulkan-drivers) can be reached (see $log)"
install_naga || lack "a second WGSL compiler: npm cannot fetch $naga (see $log)"
exit "$missing"
