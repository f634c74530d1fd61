#!/usr/bin/env bash
# What action.yml runs: one command, with annotations on the run and its result in the summary of the step.
set -euo pipefail

# Letters that a workflow command would take for its own.
escaped() {
    local text="${1//%/%25}"
    text="${text//$'\r'/%0D}"
    printf '%s' "${text//$'\n'/%0A}"
}

refuse() {
    printf '::error title=toolmatrix::%s\n' "$(escaped "$1")"
    exit 2
}

[[ $INPUT_COMMAND =~ ^[a-z-]+$ ]] || refuse "\`command\` is not the name of a command: $INPUT_COMMAND"
[[ $INPUT_VERSION =~ ^[0-9a-z.]*$ ]] || refuse "\`version\` is not a release such as 0.3.0: $INPUT_VERSION"

venv="$RUNNER_TEMP/toolmatrix-${INPUT_VERSION:-own}"
if [ ! -x "$venv/bin/toolmatrix" ]; then
    python3 -m venv "$venv"
    if [ -n "$INPUT_VERSION" ]; then what="toolmatrix==$INPUT_VERSION"; else what="$GITHUB_ACTION_PATH"; fi
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "$what"
fi

case "$INPUT_COMMAND" in
# These make annotations, and the summary, by themselves.
audit | check | diagnose | doctor | judge | merge | validate) form=github ;;
diff | env | explain | facts | inventory | list | matrix | news | plan | resolve | search | show | stages | upgrade | what | why-not) form=md ;;
*) form=text ;;
esac
words=("$INPUT_COMMAND" --format "$form")
while IFS= read -r line; do
    [ -z "$line" ] || words+=("$line")
done <<<"${INPUT_ARGUMENTS//$'\r'/}"

result="$(mktemp)" said="$(mktemp)"
trap 'rm -f "$result" "$said"' EXIT
code=0
"$venv/bin/toolmatrix" "${words[@]}" >"$result" 2>"$said" || code=$?
# What is shown may be of strangers: only annotations that were made here are commands to the run.
stop="$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')"
[ "$form" != github ] || cat "$result"
echo "::stop-commands::$stop"
[ "$form" = github ] || cat "$result"
cat "$said"
echo "::$stop::"

case "$form" in
md) cat "$result" >>"$GITHUB_STEP_SUMMARY" ;;
text) printf '~~~~~~text\n$ toolmatrix %s\n%s\n~~~~~~\n' "${words[*]}" "$(cat "$result" "$said")" >>"$GITHUB_STEP_SUMMARY" ;;
esac
case "$code" in
0) why="" ;;
1) if [ "$form" = github ]; then why=""; else why="the answer is no"; fi ;;
4) why="nobody knows" ;;
*) why="$(cat "$said")" ;;
esac
[ -z "$why" ] || printf '::error title=toolmatrix %s::%s\n' "$INPUT_COMMAND" "$(escaped "$why")"
echo "exit-code=$code" >>"$GITHUB_OUTPUT"
exit "$code"
