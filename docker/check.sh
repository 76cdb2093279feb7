#!/bin/sh
# Check what stands here: our own rules everywhere, compose's where its client is. `.ci/containers` builds and runs it.
set -u

cd "$(dirname "$0")" || exit 2
faults=0

fault() {
    echo "docker/$1" >&2
    faults=$((faults + 1))
}

wants() { # FILE PATTERN REASON: the file has such a line
    grep -Eq -- "$2" "$1" || fault "$1: $3"
}

refuses() { # FILE PATTERN REASON: the file has no such line
    if grep -En -- "$2" "$1" >&2; then fault "$1: $3"; fi
}

echo "rules" >&2
wants Dockerfile '^FROM .* AS build$' "build in a stage of its own"
wants Dockerfile '^USER [1-9][0-9]*:[1-9][0-9]*$' "run as a normal user, by number"
wants Dockerfile '^HEALTHCHECK ' "say how its health is checked"
wants Dockerfile '^ENTRYPOINT \[' "start the program itself, not a shell"
wants Dockerfile.dockerignore '^\*$' "send only what is named to the engine"
refuses Dockerfile '^ADD ' "use COPY"
refuses Dockerfile ':latest' "name a version"
refuses Dockerfile '(PASSWORD|TOKEN|SECRET) *=' "keep secrets out of the image"
refuses compose.yaml 'image: ([^:]*|.*:latest)$' "name a version"
refuses compose.yaml 'privileged:|network_mode: *host|docker\.sock' "ask for no rights of the host"
refuses compose.yaml '^ +ports: \["?[0-9]+:' "publish ports on loopback only"
wants compose.yaml 'cap_drop: \[ALL\]' "drop all capabilities"
refuses kubernetes.yaml 'hostNetwork|hostPath|privileged: *true' "ask for no rights of the host"
wants kubernetes.yaml 'runAsNonRoot: true' "run as a normal user"
wants kubernetes.yaml 'readOnlyRootFilesystem: true' "keep the root read-only"
wants kubernetes.yaml 'capabilities: \{drop: \[ALL\]\}' "drop all capabilities"
for script in *.sh; do
    sh -n "$script" || fault "$script: no shell script"
done
for name in *.py; do
    [ ! -e "$name" ] || fault "$name: no Python files here: the folder's name is that of a package"
done
for file in $(sed -n 's/.*\.\/\([a-z.-]*\):\/.*/\1/p' compose.yaml); do
    [ -f "$file" ] || fault "compose.yaml: $file is missing"
done

if command -v hadolint >/dev/null; then
    echo "hadolint" >&2
    hadolint --ignore DL3008 --ignore DL3013 Dockerfile || fault "Dockerfile: hadolint complains"
fi

if command -v kubernetes-validate >/dev/null; then
    echo "kubernetes-validate" >&2
    kubernetes-validate --strict --quiet kubernetes.yaml || fault "kubernetes.yaml: kubernetes-validate complains"
else
    echo "skipped: kubernetes-validate is not on this machine (pip install kubernetes-validate)" >&2
fi

if docker compose version >/dev/null 2>&1; then
    echo "docker compose config" >&2
    docker compose -f compose.yaml --profile oracle --profile spark config --quiet || fault "compose.yaml: compose complains"
else
    echo "skipped: docker compose is not on this machine" >&2
fi

[ "$faults" -eq 0 ]
