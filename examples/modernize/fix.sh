#!/bin/sh
# The worker of the example: repairs a node with the Go tools' own fixers and
# says in its result what it did, with the command that proves it. Called as
# `fix.sh sabotage` it also breaks, once, what only the tests of another package see.
set -eu
cd "$MENDFLOW_WORKTREE"

# The node's name says what to repair and where: fix-cmd-hclfmt is `go fix` in ./cmd/hclfmt.
case "$MENDFLOW_NODE" in
*-root) package=. ;;
*) package=./$(echo "${MENDFLOW_NODE#*-}" | tr - /) ;;
esac

case "$MENDFLOW_NODE" in
module)
  go mod edit -go=1.26
  go mod tidy
  proof='["go","mod","tidy","-diff"]' ;;
fix-*)
  go fix "$package"
  # `go fix` replaces io/ioutil and may add an import that only a twin of the call needs.
  go build -o /dev/null "$package" 2>&1 | sed -n 's/^\([^ :]*\):\([0-9]*\):.* imported and not used$/\1 \2/p' | while read -r file line; do
    sed "${line}d" "$file" > "$file.new"
    mv "$file.new" "$file"
  done
  proof="[\"go\",\"fix\",\"-diff\",\"$package\"]" ;;
printf-*)
  go vet -fix -printf "$package"
  proof="[\"go\",\"vet\",\"-printf\",\"$package\"]" ;;
unreachable-*)
  go vet -fix -unreachable "$package"
  git diff --name-only | while read -r file; do gofmt -w "$file"; done
  proof="[\"go\",\"vet\",\"-unreachable\",\"$package\"]" ;;
*)
  echo "no fixer for $MENDFLOW_NODE" >&2
  exit 1 ;;
esac

if [ "${1:-}" = sabotage ] && [ "$MENDFLOW_NODE/$MENDFLOW_ATTEMPT" = fix-root/1 ]; then
  sed 's/"%s: %s; %s"/"%s: %s, %s"/' diagnostic.go > diagnostic.go.new
  mv diagnostic.go.new diagnostic.go
fi

status=resolved
[ -n "$(git status --porcelain)" ] || status=no_change
echo "$MENDFLOW_NODE: $status"
printf '{"items":[{"finding":"%s","status":"%s","evidence":[{"command":%s,"exit_code":0}]}],"summary":"repaired by the Go tools"}\n' \
  "$MENDFLOW_NODE" "$status" "$proof" > "$MENDFLOW_RESULT"
