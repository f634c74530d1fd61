# Sourced by ./run and ./tests/run: a virtual environment at $venv, of $python, wherever Python alone is installed.
# shellcheck shell=bash disable=SC2154

can_install() {
    [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null
}

# --reinstall: what is asked for here was looked for and not found, whatever dpkg believes.
apt_install() {
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --reinstall --no-install-recommends "$@" >/dev/null
}

# Debian has ensurepip in a package of its own.
need_ensurepip() {
    "$python" -c 'import ensurepip, venv' 2>/dev/null && return
    if ! can_install; then
        echo "python3 -m venv needs ensurepip: install the package python3-venv" >&2
        return 1
    fi
    apt-get update -qq && apt_install python3-venv
}

make_venv() {
    [ -x "$venv/bin/python" ] && "$venv/bin/python" -m pip --version >/dev/null 2>&1 && return
    need_ensurepip && "$python" -m venv --clear "$venv"
}
