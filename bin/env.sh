# Sourced by the launchers beside it, which set `self`. Finds the checkout, makes its .venv when that is not ready,
# puts bin/ on the PATH, for the jobs that name its commands, and sets FLEET_SPOOL. The environment's own bin/ stays
# off it: a job's python3 is its user's. When all is ready this costs one fork.
root=${self%/bin/*}
venv=$root/.venv
: "${extras=}" # bin/test sets it to "dev"

ready() {
    stamp=$venv/.fleetd/${1:-core}
    [ -x "$venv/bin/python" ] && [ -f "$venv/.fleetd/where" ] || return 1
    read -r where <"$venv/.fleetd/where" && [ "$where" = "$root" ] || return 1
    [ -f "$stamp" ] && [ -n "${FLEET_JOB-}" ] || cmp -s "$root/pyproject.toml" "$stamp" # jobs install nothing
}

is_python() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

find_python() {
    for python in "${PYTHON:-python3}" python3 python3.14 python3.13 python3.12 python3.11 /usr/bin/python3; do
        command -v "$python" >/dev/null 2>&1 && is_python "$python" && return
    done
    echo "${self##*/}: no Python 3.11 or newer on the PATH; on Debian: apt install python3 python3-venv" >&2
    exit 69
}

if ! ready "$extras" && { [ -n "$extras" ] || ! ready dev; }; then
    find_python
    "$python" "$root/bin/make-venv" $extras || exit
fi

if [ -z "${FLEET_CALLED+set}" ]; then # how hints name the commands where they are not on the caller's PATH
    FLEET_CALLED=${0%"${0##*/}"}
    case ":$PATH:" in
        *":${FLEET_CALLED%/}:"*) FLEET_CALLED= ;;
    esac
fi
case ":$PATH:" in
    *":$root/bin:"*) ;;
    *) PATH=$PATH:$root/bin ;;
esac
: "${FLEET_SPOOL:=$root/spool}"
export PATH FLEET_SPOOL FLEET_CALLED
