# shellcheck shell=sh
# Shared by build, save and load: where a tree lies and what it is called. Sourced with $here set.

cache_dir() { printf '%s\n' "${SANDBOOK_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/sandbook}"; }

# Everything that decides what is in the tree, and the machine type. The rest of this folder
# (this file too) may change without a new tree.
recipe_hash() {
    (
        cd "${here:?}" || exit
        find build manifest.py requirements.lock build.lock packages.txt etc patches -type f |
            LC_ALL=C sort | xargs sha256sum
        uname -m
    ) | sha256sum | cut -c1-16
}

say() { printf '%s\n' "image: $*" >&2; }

die() {
    say "$*"
    exit 1
}

# Two builds (or a build and a load) at once: the second waits, then finds the first one's tree.
take_lock() { # CACHE
    mkdir -p "$1"
    exec 9>"$1/image.lock"
    flock -n 9 && return
    say "another build is running, waiting for it"
    flock 9
}
